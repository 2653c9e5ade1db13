"""``autotune.tune``: any callable through the engine, with the record, proof and report of every other sweep."""

import json
import logging
import math
import os
import pickle
import re
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from autotune.api import SweepResult
from autotune.callables import functions, libraries
from autotune.callables.backend import CallBackend, Calls
from autotune.callables.choices import Alternatives, Condition, Space
from autotune.callables.declared import CALL_FILE, CallArray, Declared, family_name, name_after
from autotune.callables.kept import Crew, crew
from autotune.callables.layouts import Layouts, prove
from autotune.callables.libraries import Kind
from autotune.callables.probing import Roles, roles_of
from autotune.compile import Compiled, Variant
from autotune.declaration import Configuration, Family, Inputs, Workload, bind
from autotune.device import Closing, Execution, LaunchError, Resident, device_names, open_backend
from autotune.engine import (
    OPTIONS,
    Case,
    ProcessWorker,
    Session,
    SharedInputs,
    SweepRequest,
    Swept,
    Watched,
    raise_unless_measured,
    share_arrays,
)  # fmt: skip
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.measure import Protocol
from autotune.report import make_console, show_live

_log = logging.getLogger("autotune")

Check = Callable[..., Any] | Mapping[str, Any] | Any
Within = Mapping[str, float] | float | None
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True)
class TunedCall:
    """The result of ``tune``: the winner's values, as they were given. Called, it is the function with those values.

    ``sweep`` has trials, report and policy file; ``declared`` is how the engine sees the function.
    """

    function: Callable[..., Any]
    configuration: Mapping[str, Any]
    sweep: SweepResult
    declared: Declared
    calls: Calls

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        """The function with these arguments and the winner's values."""
        return self.function(*args, **arguments, **self.configuration)

    @property
    def excluded(self) -> Mapping[str, str]:
        """Return the layouts (``POLICY=VALUE``) with which the function is wrong, and how."""
        return self.declared.excluded

    def bound(self, **inputs: Any) -> "BoundFunction":
        """Return the function bound to inputs in the winner's layouts, for repeated calls. Close it after use."""
        contents = {n: libraries.content(value) for n, value in inputs.items() if n in self.calls.kinds}
        _, found = _bind(self.declared, contents)
        return BoundFunction.make(self.function, self.calls, self.sweep, found)

    def save_policy(self, folder: str | Path | None = None) -> Path:
        """Merge the winner into the policy file below ``folder`` (by default AUTOTUNE_POLICIES, else ./policies), where
        a decorated function finds it. Raises PolicyFileError, StoreError."""
        path = self.sweep.save_policy(folder)
        told = {
            "written": {n: one.role for n, one in self.declared.given.items() if one.role != "input"},
            "returned": {
                n: {**vars(one.kind), "dimensions": len(one.extents)}
                for n, one in self.declared.arrays.items() if n in self.declared.returned
            },
        }  # fmt: skip
        write_text(path.parent / CALL_FILE, json.dumps(told, indent=2, sort_keys=True) + "\n")
        return path


@dataclass(frozen=True)
class BoundFunction(Closing):
    """A function bound to its inputs in the layouts of a winner. ``call`` runs it, ``output`` gives a result with its
    layout undone; ``transform_ms`` is what the layouts took."""

    resident: Resident
    execution: Execution

    @classmethod
    def make(
        cls, function: Callable[..., Any], calls: Calls, sweep: SweepResult, inputs: Inputs
    ) -> "BoundFunction":
        backend: Any = CallBackend(open_backend(sweep.device), calls, function)
        with backend.current():
            resident = Resident(backend, inputs)
            variant = Variant.make(sweep.family, sweep.best.configuration, inputs.options)
            return cls(resident, resident.execution(variant, backend.load(Compiled("", Path(), {}))))

    @property
    def transform_ms(self) -> float:
        return self.execution.transform_ms

    def call(self) -> None:
        """Run the function on the current stream."""
        for one in self.execution.beginnings:
            self.execution.begin(one.name)
        self.execution.run()

    def output(self, name: str) -> Any:
        """Return a result of the latest call as a numpy array, by the argument's name. Raises LaunchError."""
        written = name_after(name) if name_after(name) in self.execution.placed else name
        data = self.execution.variant.family.data[written]
        return self.execution.restore(written, data.shape_for(self.execution.names))

    def close(self) -> None:
        self.resident.close()
        self.resident.backend.close()


@dataclass(frozen=True)
class CallProblem:
    """A function with its arguments as it is to be tuned; what of it makes a family is ``declared`` without roles."""

    function: Callable[..., Any]
    arrays: Mapping[str, Any]
    calls: Calls
    declared: Declared
    named: tuple[str, ...]

    @classmethod
    def make(
        cls, function: Callable[..., Any], choices: Alternatives, inputs: Mapping[str, Any], *,
        outputs: Sequence[str] = (), key: Sequence[str] = (), name: str = "", tolerance: Within = None,
    ) -> "CallProblem":  # fmt: skip
        """Raises UsageError for what cannot be called elsewhere or verified."""
        _check_names(inputs, choices, outputs, key)
        arrays = {each: value for each, value in inputs.items() if libraries.library_of(value)}
        same = _find_aliases(arrays)
        arrays = {each: value for each, value in arrays.items() if each not in same}
        kinds = {each: libraries.kind_of(each, value) for each, value in arrays.items()}
        fixed = {each: value for each, value in inputs.items() if each not in arrays and each not in same}
        decisive = {each: value for each, value in fixed.items() if each in key or not key}
        numbers = {n: v for n, v in decisive.items() if isinstance(v, _NUMBERS) and not isinstance(v, bool)}
        if not arrays and not numbers:
            numbers = {"calls": 1}  # of a family there is something that tells inputs apart
        told = [f"{each}_{value}" for each, value in decisive.items() if each not in numbers]
        within = {"relative": float(tolerance)} if isinstance(tolerance, int | float) else tolerance
        called = name or functions.name_of(function)
        declared = Declared(
            name=family_name(called, kinds, told),
            arrays={each: _array(each, value, kinds[each]) for each, value in arrays.items()},
            numbers=numbers, choices=choices, key=tuple(key),
            digest=f"{getattr(function, 'digest', '') or functions.digest(function)} {told} {sorted(same.items())}",
            tolerance=dict(within or {}),
        )  # fmt: skip
        used = sorted({kind.library for kind in kinds.values()})
        calls = Calls(
            functions.Importable.make(function), choices, kinds, fixed, same,
            tools=libraries.versions([*used, *getattr(function, "tools", ())]),
        )  # fmt: skip
        try:
            pickle.dumps(calls)
        except Exception as problem:
            raise UsageError(
                f"what {called} is called with cannot be sent to a measuring process ({type(problem).__name__}: "
                f"{problem}): arrays, numbers, texts and what pickle takes can"
            ) from problem
        return cls(function, arrays, calls, declared, tuple(outputs))

    @property
    def device(self) -> str:
        """Where the arrays are."""
        return libraries.device_of(self.arrays)

    def with_roles(self, roles: Roles) -> Declared:
        """Declared with what the first call showed."""
        arrays = dict(self.declared.arrays)
        for name, is_read in roles.written.items():
            arrays[name] = replace(arrays[name], role="inout" if is_read else "output")
        for name, kind in roles.returned.items():
            arrays[name] = CallArray(kind, roles.results[name].shape, "output")
        return replace(self.declared, arrays=arrays, returned=tuple(roles.returned))


def tune(
    function: Callable[..., Any], space: Space, inputs: Mapping[str, Any], *, check: Check = None,
    outputs: Sequence[str] = (), where: Condition | None = None, key: Sequence[str] = (), name: str = "",
    tolerance: Within = None, layouts: Layouts | str | None = None, cold: bool = True,
    progress: bool | Watched = True, **options: Any,
) -> TunedCall:  # fmt: skip
    """Tune a callable: try configurations of ``space`` in processes of their own, verify and time each.

    Args:
        function: is called with each of ``inputs`` and each value of a configuration by its name. It launches on the
            current stream, or works on the host, and gives its results back, or writes them to arrays of ``inputs``. A
            measuring process imports it: it is at the top of a module, or of a program below whose
            ``if __name__ == "__main__":`` the work is done.
        space: values by name, the default first, for all combinations; or a list of configurations.
        inputs: arguments by name: arrays of numpy, torch, cupy, numba or warp, and anything that pickle takes.
        check: what is right: a function of ``inputs`` that gives the outputs back, or the outputs by name; by default
            what the default configuration gives.
        outputs: arrays that the function writes; by default those that the first call changes.
        where: is asked about each combination, a mapping of values by name.
        key: arguments that a policy file tells inputs apart by; by default all.
        name: of the function in records and policy files.
        tolerance: relative, or ``{"relative": …, "absolute": …}``; by default what sums in another order are off by.
        layouts: what may be chosen about how the arrays lie; ``all`` is every order of axes, padding, and inputs of one
            shape together.
        cold: whether the last-level cache is flushed before each sample.
        progress: shows a bar on a terminal and in a notebook.
        options: those of ``autotune.sweep``: ``search``, ``trials``, ``time``, ``seed``, ``device``, ``samples``,
            ``trial_seconds``, ``again``, ``retime``, ``out``, ``store``, ``clocks``, ``processes``.

    Returns:
        The winner's values, with the sweep.

    Raises:
        AutotuneError: nothing could be measured, or something cannot be called in another process.
    """
    functions.refuse_while_loading("autotune.tune")
    choices = Alternatives.read(space, where)
    more: dict[str, Any] = {"name": name, "tolerance": tolerance}
    problem = CallProblem.make(function, choices, inputs, outputs=outputs, key=key, **more)
    return tune_problem(problem, check, inputs, layouts=layouts, cold=cold, progress=progress, **options)


def tune_problem(
    problem: CallProblem, check: Check, inputs: Mapping[str, Any], *, layouts: Layouts | str | None = None,
    cold: bool = True, progress: bool | Watched = True, chosen: Sequence[Configuration] = (), **options: Any,
) -> TunedCall:  # fmt: skip
    """``tune`` of what is known to be callable; ``chosen`` stand in for the whole space."""
    given = _options(options)
    device, out = given.pop("device", "auto"), given.pop("out", None)
    names = device_names(problem.device if device == "auto" else device)
    listed = chosen or tuple(problem.declared.choices.configurations())
    seconds = _Seconds()
    count = _builders(problem, names, listed, given)
    with crew(names, given.get("trial_seconds", 120.0), problem.calls, count) as our:
        contents = {name: libraries.content(value) for name, value in problem.arrays.items()}
        with warnings.catch_warnings(action="ignore"):  # in a notebook tqdm advises to install widgets
            import_module("autotune.engine.sweep")  # and what records, while the devices are opened
        seconds.record_phase("copy")
        our.turn_to(problem.calls)
        seconds.record_phase("start")
        ahead = () if "search" in given else _build_ahead(problem, our, listed)
        our.workers[0].ask(1, _open_libraries)  # while others compile
        seconds.record_phase("libraries")
        wait(ahead[:1], given.get("trial_seconds"))  # the first call finds it in the library's cache
        seconds.record_phase("first_compiled")
        declared, roles = _run_first_call(problem, our.workers[0], contents, listed)
        seconds.record_phase("first_call")
        expected = _compute_expected(check, inputs, declared, roles)
        asked = Layouts.read(layouts, declared.arrays)
        declared = _find_layouts(declared, asked, our.workers[0], contents, expected)
        family, bound = _bind(declared, contents)
        seconds.record_phase("declare")
        request = CallRequest(
            family=family, device=",".join(names), chosen=tuple(listed) or None,
            **{"processes": 0 if our.forks else 1, **given},
            out=Path(out or Path("autotune-results") / family.name).absolute(),
        )  # fmt: skip
        request.check()
        case = Case(workload=_workload(family, bound, cold), inputs=bound, reference=expected)
        swept = _sweep(request, case, our, progress)
        for one in ahead:  # of configurations that a limit left out
            one.cancel()
        seconds.record_phase("sweep")
    seconds.record_phase("end")
    phases = {**seconds.phases, **swept.phases}
    _log.info("%s: %s", family.name, " ".join(f"{name}={spent:.2f}" for name, spent in phases.items()))
    result = SweepResult(family, swept.study, request, swept.wall_s, phases)
    values = declared.choices.get_values(result.best.configuration)
    return TunedCall(problem.function, values, result, declared, problem.calls)


@dataclass(frozen=True, kw_only=True)
class CallRequest(SweepRequest):
    """A sweep whose person waits for the first call: fewer samples of what is far from the best, and shorter turns of
    fewer finalists."""

    def protocol(self, device_kind: str) -> Protocol:
        """How a device of that kind measures."""
        whole = super().protocol(device_kind)
        short = {name: min(value, getattr(whole, name)) for name, value in _SHORT.items()}
        return whole if self.samples else replace(whole, **short)


_SHORT: Mapping[str, Any] = {
    "abandon": 1.5, "most": 30, "seconds": 0.1, "finalists": 5, "rounds": 10, "finalist_seconds": 0.4,
}  # fmt: skip


class _Seconds:
    """Wall seconds by what they were spent on."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._mark = time.perf_counter()

    def record_phase(self, phase: str) -> None:
        """On ``phase``, since the one before."""
        now = time.perf_counter()
        self.phases[phase], self._mark = now - self._mark, now


def _run_first_call(
    problem: CallProblem, worker: ProcessWorker, contents: Mapping[str, Any], listed: Sequence[Configuration]
) -> tuple[Declared, Roles]:
    """The first call, by a configuration of ``listed``, with every array as one that may be read and written."""
    open_arrays = {name: replace(array, role="inout") for name, array in problem.declared.arrays.items()}
    asked = replace(problem.declared, arrays=open_arrays or dict(_NOTHING), layouts={})
    family = asked.family
    inputs = bind(family, contents or _NO_CONTENT, {}, asked.scalars)
    with share_arrays(inputs.arrays) as place, TemporaryDirectory("autotune") as folder:
        shared = SharedInputs.make(family, inputs, place)
        roles = roles_of(
            worker, family, shared, Path(folder), problem.named, problem.declared.name, contents, listed
        )
    return problem.with_roles(roles), roles


_NOTHING = {"nothing": CallArray(Kind("numpy", "uint8"), (1,), "inout")}  # of a call without arrays
_NO_CONTENT = {"nothing": [0]}


def _bind(declared: Declared, contents: Mapping[str, Any]) -> tuple[Family, Inputs]:
    """The family with this call's inputs."""
    family = declared.family
    arrays = {data.name: contents[data.name] for data in family.inputs if data.name in contents}
    return family, bind(family, arrays, {}, declared.scalars)


def _find_layouts(
    declared: Declared, layouts: Layouts, worker: ProcessWorker, contents: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> Declared:  # fmt: skip
    """With the layouts that the function is right with: each value is proved with the defaults."""
    spaced = replace(declared, spaces=layouts.extents, links=layouts.links)
    extents = {name: spaced.extents(name) for name in spaced.arrays}
    whole = replace(spaced, layouts=layouts.policies(spaced.arrays, extents))
    if not whole.layouts:
        return whole
    family, inputs = _bind(whole, contents)
    control, excluded = family.space.control, {}
    with share_arrays(inputs.arrays) as place, TemporaryDirectory("autotune") as folder:
        for name, array in expected.items():
            np.save(Path(folder) / f"{name}.npy", array, allow_pickle=False)
        given = SharedInputs.make(family, inputs, place)
        others = [(name, value) for name, one in whole.layouts.items() for value in one["values"][1:]]
        for policy, value in others:
            try:
                reason = worker.ask(1, prove, given, Path(folder), Configuration({**control, policy: value}))
            except LaunchError as problem:
                reason = str(problem)
            if reason:
                excluded[f"{policy}={value}"] = f"the function is wrong with {policy}={value}: {reason}"
    return replace(whole, excluded=excluded)


def _compute_expected(
    check: Check, inputs: Mapping[str, Any], declared: Declared, roles: Roles
) -> Mapping[str, Any]:
    """What is right, by the names of the family's outputs. Raises UsageError."""
    outputs = {
        name: name_after(name) if array.role == "inout" else name
        for name, array in declared.arrays.items()
        if array.role != "input"
    }
    if check is None:
        return {named: roles.results[name] for name, named in outputs.items()}
    made = check(**inputs) if callable(check) else check
    if not isinstance(made, Mapping):
        several = made if isinstance(made, tuple | list) and len(outputs) > 1 else [made]
        if len(several) != len(outputs) or made is None:
            raise UsageError(
                f"check= gives {'nothing' if made is None else f'{len(several)} results'}, and the function has "
                f"{len(outputs)}: give {', '.join(outputs)} by name"
            )
        made = dict(zip(outputs, several, strict=True))
    if missing := [name for name in outputs if name not in made]:
        raise UsageError(f"check= gives no {missing[0]!r}: give each of {', '.join(outputs)}")
    arrays = {name: libraries.content(made[name]) for name in outputs}
    return {
        named: arrays[name] if declared.arrays[name].shape else arrays[name].reshape(1)
        for name, named in outputs.items()
    }


def _builders(
    problem: CallProblem, names: Sequence[str], listed: Sequence[Configuration], given: Mapping[str, Any]
) -> int:
    """How many processes compile; 0 where nothing is compiled ahead."""
    cores = given.get("processes", 0) or len(os.sched_getaffinity(0))
    count = min(cores, len(listed) or math.prod(map(len, problem.declared.choices.values.values())))
    return 0 if names[0] == "cpu" or count < 2 or not hasattr(problem.function, "build") else cores


_BUILT_AHEAD = 500  # configurations, while the function is called for the first time


def _build_ahead(
    problem: CallProblem, our: Crew, listed: Sequence[Configuration]
) -> Sequence["Future[None]"]:
    """Into the library's cache, where the sweep finds what was built."""
    choices, arch = problem.declared.choices, our.workers[0].device.arch
    forks = our.forks
    values = map(choices.get_values, listed[:_BUILT_AHEAD])
    return [forks.submit(problem.calls.build, arch, one) for one in values] if forks else ()


def _open_libraries(measuring: Any) -> None:
    """Have the function make what it makes once in a process, if anything."""
    getattr(measuring.swept.backend.function, "open_libraries", lambda: None)()


def _sweep(request: SweepRequest, case: Case, our: Crew, progress: bool | Watched) -> Swept:
    """A whole sweep, with something measured. Raises KeyboardInterrupt, NothingMeasured."""
    from autotune.record import Store

    watch = progress if callable(progress) else partial(show_live, err=make_console(progress))
    store = Store(request.store or request.folder)
    session = Session(request, (case,), our.workers, our.forks, store, "", watch, lambda _text: None)
    sweeps = cast("Generator[Swept, None, None]", session.sweeps())
    with closing(sweeps):  # which would end the workers after the last
        swept = next(sweeps)
    if swept.interrupted:
        raise KeyboardInterrupt(f"{swept.interrupted}; the same call resumes from there")
    raise_unless_measured([swept.study], f"the record ({request.store or request.folder})")
    return swept


_NOT_TAKEN = {"workload", "preset", "set", "compiler", "sanitize"}


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raises UsageError for what is none."""
    known = sorted({one.argument for one in OPTIONS.values()} - _NOT_TAKEN)
    if unknown := [name for name in given if name not in known]:
        raise UsageError(f"autotune.tune has no {unknown[0]}=; it has {', '.join(known)}")
    return {name: value for name, value in given.items() if value is not None}


def _workload(family: Family, inputs: Inputs, cold: bool) -> Workload:
    sizes = "x".join(str(size) for size in dict.fromkeys(inputs.sizes.values()))
    name = f"given-{sizes[:40]}-{inputs.digest[:8]}"
    return Workload(name=name, family=family.name, scalars=dict(inputs.scalars), cold=cold)


def _check_names(
    inputs: Mapping[str, Any], choices: Alternatives, outputs: Sequence[str], key: Sequence[str]
) -> None:
    for name in inputs:
        if not _NAME.fullmatch(str(name)):
            raise UsageError(f"{name!r} in inputs= is not an argument's name")
        if name in choices.values:
            raise UsageError(f"{name} is in inputs= and in space=: an argument is given, or chosen")
    for what, names in (("outputs", outputs), ("key", key)):
        if unknown := [name for name in names if name not in inputs]:
            raise UsageError(f"{unknown[0]!r} in {what}= is none of the inputs ({', '.join(inputs)})")


def _find_aliases(arrays: Mapping[str, Any]) -> dict[str, str]:
    """The arguments that are the very array of an earlier one."""
    first: dict[int, str] = {}
    for name, value in arrays.items():
        first.setdefault(id(value), name)
    return {name: first[id(value)] for name, value in arrays.items() if first[id(value)] != name}


def _array(name: str, value: Any, kind: Kind) -> CallArray:
    shape = tuple(int(extent) for extent in value.shape)
    if kind.vector:
        shape = libraries.content(value).shape
    if 0 in shape:
        raise UsageError(f"{name} has shape {shape}: an array without elements has nothing to tune for")
    axes = None if kind.vector else libraries.axes_of(value)
    return CallArray(kind, shape, axes=axes or ())
