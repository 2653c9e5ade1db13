"""A program as it is declared, in Python or in a program.yaml, and its workloads."""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from autotune.declaration import Family, load_family, make_array, yamlfile
from autotune.errors import AutotuneError, FamilyError, UnknownName, UsageError, WorkloadError
from autotune.program.steps import (
    ROLES,
    Choose,
    Either,
    KernelCall,
    ProgramArray,
    Repeat,
    Step,
    check_known,
    steps_of,
    walk,
)

FILE = "program.yaml"

Held = Mapping[str, tuple[Any, ...]]  # the values that policies are held to


@dataclass(frozen=True, kw_only=True)
class Program:
    """Kernels that share arrays, in loops. ``arrays`` has each array, or its role; ``scalars`` are numbers that steps
    and loops name. ``presets`` are assignments to compare with: by step, the values that policies are held to.
    ``folder`` is where families named by a relative path, workloads and policy files are looked for. Raises UsageError,
    UnknownName, FamilyError for what does not fit together."""

    name: str
    arrays: Mapping[str, Any]
    steps: Sequence[Step]
    scalars: Mapping[str, float] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    folder: Path | None = None
    title: str = ""
    default_workload: str = ""

    def __post_init__(self) -> None:
        arrays = {name: _array(name, told, self.name) for name, told in self.arrays.items()}
        object.__setattr__(self, "arrays", arrays)
        object.__setattr__(self, "steps", tuple(map(self._name_calls, self.steps)))
        self._check_names()

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Program":
        """The program of a folder that has a program.yaml, or of that file. Raises UsageError, FamilyError."""
        file = Path(path)
        if file.is_dir() or file.name != FILE:
            file /= FILE
        if not file.is_file():
            raise UsageError(f"{file} is not there: name the folder of a program, which has a {FILE}")
        content = yamlfile.read(file, FamilyError)
        yamlfile.check(content, "program", file, FamilyError)
        kept = ("arrays", "title", "scalars", "presets", "default_workload")
        told: dict[str, Any] = {key: content[key] for key in kept if key in content}
        steps = steps_of(content["steps"], str(file))
        return cls(name=content["program"], folder=file.parent.resolve(), steps=steps, **told)

    @cached_property
    def calls(self) -> Mapping[str, tuple[KernelCall, ...]]:
        """The calls that each step chooses from, by the step's name, in the order of the program."""
        return {step.name: tuple(step.calls) for step in self._kernels}

    @cached_property
    def chosen_periods(self) -> Mapping[str, tuple[int, ...]]:
        """The steps of which the tuner chooses how often they run, with what it chooses from."""
        return {step.name: step.every.values for step in self._kernels if isinstance(step.every, Choose)}

    @property
    def _kernels(self) -> Iterator[KernelCall | Either]:
        return (step for step in walk(self.steps) if isinstance(step, KernelCall | Either))

    @cached_property
    def module(self) -> ModuleType | None:
        """``program.py`` of the folder. Raises FamilyError."""
        file = self.folder / "program.py" if self.folder else None
        if file is None or not file.is_file():
            return None
        spec = importlib.util.spec_from_file_location(f"autotune_program_{self.name}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as problem:
            raise FamilyError(f"{file} cannot be imported: {type(problem).__name__}: {problem}") from problem
        return module

    def family(self, call: KernelCall) -> Family:
        """What ``call`` calls. Raises UnknownName, FamilyError."""
        own = getattr(call.family, "family", call.family)
        if isinstance(own, Family):
            return own
        beside = self.folder / own if self.folder else None
        if beside and (beside / "family.yaml").is_file():
            return load_family(beside)
        try:
            return load_family(own)
        except UnknownName as problem:
            where = f", and {beside} has no family.yaml" if beside else ""
            raise UsageError(f"program {self.name}: {problem}{where}") from None

    def get_held(self, preset: str) -> Mapping[str, Held]:
        """What a preset holds policies to, by step. Raises UnknownName."""
        if preset not in self.presets:
            raise UnknownName("preset", preset, self.presets, f"program {self.name}")
        return {step: parse_held(policies) for step, policies in self.presets[preset].items()}

    def _name_calls(self, step: Step) -> Step:
        """With the family's name for a call that has none of its own."""
        if isinstance(step, Repeat):
            return replace(step, steps=tuple(map(self._name_calls, step.steps)))
        if isinstance(step, KernelCall) and not step.name:
            return replace(step, name=self.family(step).name)
        return step

    def _check_names(self) -> None:
        where, seen = f"program {self.name}", list[str]()
        for step in walk(self.steps):
            if isinstance(step, KernelCall | Either):
                seen.append(step.name)
                if seen.count(step.name) > 1:
                    raise UsageError(
                        f"{where}: two steps are called {step.name}: give one of them another name"
                    )
            elif not isinstance(step, Repeat):
                for name in step.arrays:
                    check_known("array", name, self.arrays, f"{where}: {type(step).__name__.lower()}")
        for array in self.arrays.values():
            check_known(
                "array", array.ordered_by or array.name, self.arrays, f"{where}: {array.name}: ordered_by"
            )
        for preset, steps in self.presets.items():
            for name in steps:
                check_known("step", name, seen, f"{where}: preset {preset}")
        if not seen:
            raise UsageError(f"{where}: it calls no family: a program needs a step with call")


def parse_held(policies: Mapping[str, Any]) -> Held:
    """Policies with the values that each is held to."""
    return {
        name: tuple(each) if isinstance(each, list | tuple) else (each,) for name, each in policies.items()
    }


def _array(name: str, told: Any, program: str) -> ProgramArray:
    if isinstance(told, ProgramArray):
        return told
    about: dict[str, Any] = {"role": told} if isinstance(told, str) else dict(told)
    if about.get("role") not in ROLES:
        raise UnknownName("role", about.get("role"), ROLES, f"program {program}: array {name}")
    far, by = about.get("tolerance"), about.get("ordered_by", "")
    within = (far.get("relative", 0.0), far.get("absolute", 0.0)) if far else None
    return ProgramArray(name=name, role=about["role"], ordered_by=by, tolerance=within)


@dataclass(frozen=True, kw_only=True)
class Given:
    """What one run of a program is given: arrays and scalars by name, under the ``workload``'s name."""

    workload: str
    arrays: Mapping[str, NDArray[Any]]
    scalars: Mapping[str, float]


def workloads(program: Program) -> dict[str, Path]:
    """The program's workload files by name."""
    folder = program.folder / "workloads" if program.folder else None
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))} if folder else {}


def load_given(program: Program, name: str, root: Path) -> Given:
    """The arrays and scalars of a workload: the one of that name or file, else the program's default; its data lie
    below ``root``. Raises UsageError, UnknownName, WorkloadError."""
    known = workloads(program)
    called = name or program.default_workload or (next(iter(known)) if len(known) == 1 else "")
    if not called:
        raise UsageError(
            f"program {program.name} has no default workload: name one of {', '.join(known) or '(none)'}"
        )
    if called not in known and not Path(called).is_file():
        raise UnknownName("workload", called, known, f"program {program.name}")
    path = known.get(called) or Path(called)
    content = yamlfile.read(path, WorkloadError)
    yamlfile.check(content, "program_workload", path, WorkloadError)
    if (of := content["program"]) != program.name:
        raise WorkloadError(f"{path} is a workload of program {of!r}, not of {program.name!r}")
    given = content.get("arrays", {}).items()
    arrays: dict[str, Any] = {
        name: make_array(told, root, path, f"{path}: array {name}") for name, told in given
    }
    if (maker := getattr(program.module, "inputs", None)) is not None:
        try:
            arrays = {**maker(content.get("parameters", {}), root), **arrays}
        except AutotuneError:
            raise
        except Exception as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise WorkloadError(f"{path}: the inputs function of program.py failed: {what}") from problem
    elif content.get("parameters"):
        raise WorkloadError(
            f"{path}: parameters need a function inputs in program.py; without one, give arrays"
        )
    scalars = {name: float(arrays.pop(name)) for name in program.scalars if name in arrays}
    scalars |= content.get("scalars", {})
    return Given(workload=content["workload"], arrays=arrays, scalars=scalars)
