"""``autotune lint``: is a family folder one that can be swept, and is the sweep worth its time?

It loads the declaration, whose first mistake comes alone, and reads the rest as text: no GPU, no compiler, and none of
the family's Python is run. What a compiler or the proof of a sweep tells is left to them.
"""

import re
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from autotune.compile import default_header
from autotune.declaration import (
    BASELINE,
    POINTER,
    SYMBOL,
    Family,
    Policy,
    SourceText,
    families,
    kernel_text,
    load_family,
    load_workload,
    workloads,
    yamlfile,
)
from autotune.errors import AutotuneError, FamilyError, UnknownName, suggestion
from autotune.search import list_configurations

Place = tuple[str | int, ...]

_MOST = 5000  # configurations that are looked at: well under a second
_PLACES = {
    **{key: f"{key}s" for key in ("kernel", "extent", "option", "scalar", "feature", "constraint", "preset")},
    **{
        key: key
        for key in ("source", "data", "explore", "launch", "tolerance", "bytes", "operations", "needs")
    },
    "policy": "policies",
}


@dataclass(frozen=True)
class Finding:
    """``rule`` is the mistake's name. An ``error`` keeps the family from working or makes a sweep pointless; a
    ``warning`` may be meant. ``message`` says what, which value and what to do; ``line`` counts from 1."""

    path: Path
    line: int
    severity: str
    rule: str
    message: str

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.severity}: {self.message} [{self.rule}]"


@dataclass(frozen=True)
class File:
    """A YAML file as it was named, with the line of each key and list item."""

    path: Path
    lines: Mapping[Place, int]

    @classmethod
    def read(cls, path: Path) -> "File":
        """Of what ``yamlfile.read`` has accepted."""
        lines: dict[Place, int] = {}

        def walk(node: yaml.Node, place: Place) -> None:
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    lines[*place, key.value] = key.start_mark.line + 1
                    walk(value, (*place, key.value))
            elif isinstance(node, yaml.SequenceNode):
                for i, value in enumerate(node.value):
                    lines[*place, i] = value.start_mark.line + 1
                    walk(value, (*place, i))

        walk(yamlfile.nodes(path), ())
        return cls(path, lines)

    def report(self, rule: str, message: str, *place: str | int, is_error: bool = True) -> Finding:
        """A finding at a key, or at the nearest one around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return Finding(self.path, self.lines.get(place, 1), "error" if is_error else "warning", rule, message)


def lint(name_or_folder: str) -> list[Finding]:
    """Every mistake that text shows, errors first, then by file and line. Raises UnknownName when there is no such
    family or folder."""
    known = families()
    folder = known.get(name_or_folder) or Path(name_or_folder)
    if not folder.is_dir():
        raise UnknownName("family or folder", name_or_folder, known)
    found = list(dict.fromkeys(_find_mistakes(folder)))
    return sorted(found, key=lambda finding: (not finding.is_error, finding.path, finding.line))


def _find_mistakes(folder: Path) -> Iterator[Finding]:
    """The rules need a declaration of the right shape, so what is malformed comes first and alone."""
    path = folder / "family.yaml"
    if not path.is_file():
        missing = "does not exist: a family is a folder with one; autotune new NAME writes it"
        yield File(path, {}).report("declaration", missing)
        return
    try:
        content = yamlfile.read(path, FamilyError)
    except FamilyError as problem:
        line = re.search(r" line (\d+) column", str(problem))
        message = str(problem).removeprefix(f"{path}: ")
        yield Finding(path, int(line[1]) if line else 1, "error", "declaration", message)
        return
    file = File.read(path)
    if malformed := list(_schema(content, file)):
        yield from malformed
        return
    try:
        family = load_family(folder.resolve())  # a path: a name would mean one that ships
        yield from Rules(folder, family, file).findings()
    except AutotuneError as problem:
        yield file.report("declaration", str(problem), *_place(str(problem), content))
    except (SyntaxError, ValueError) as problem:
        at = getattr(problem, "lineno", None) or 1
        yield Finding(folder / "family.py", at, "error", "declaration", f"{problem}: correct it")


def _schema(content: dict[str, object], file: File) -> Iterator[Finding]:
    for problem in jsonschema.Draft202012Validator(yamlfile.schema("family")).iter_errors(content):
        if unknown := yamlfile.unknown_keys(problem):
            around, messages = unknown
            for key, message in sorted(messages.items()):
                yield file.report("declaration", message, *around, key)
            continue
        best = jsonschema.exceptions.best_match([problem])
        place = tuple(best.absolute_path)
        where = ".".join(map(str, place)) or "top level"
        yield file.report("declaration", f"{where}: {yamlfile.explain(best)}", *place)


def _place(message: str, content: Mapping[str, Any]) -> Place:
    """The key of family.yaml that loading speaks of: ``family f: policy axes: …`` is policies, axes."""
    for section in ("constraints", "explore"):
        for i, rule in enumerate(content.get(section, ())):
            if f"break a constraint: {rule['reason']};" in message:
                return (section, i)
    for match in re.finditer(r": (\w+)(?: (\w+))?(?=[:;]| \(|$)", message):
        if match[1] in _PLACES:
            return (_PLACES[match[1]], match[2] or "")
    return ()


@dataclass(frozen=True)
class Rules:
    """The rules for a family that can be loaded. ``folder`` is its path as the user wrote it."""

    folder: Path
    family: Family
    file: File

    def findings(self) -> Iterator[Finding]:
        """Raises AutotuneError, and SyntaxError of family.py."""
        yield from self._find_unused_data()
        for policy in self.family.space.policies:
            yield from self._find_unread_policy(policy)
        for name, message in self.text.find_unread():
            yield self.file.report("unread-policy", message, "policies", name)
        for path, line, message in self.text.find_redefined():
            yield Finding(path, line, "error", "redefined-policy", message)
        for path, line, is_error, message in self.text.find_misplaced():
            yield Finding(path, line, "error" if is_error else "warning", "argument-order", message)
        yield from self._absent_values()
        yield from self._features()
        yield from self._reference()
        for kernel in self.family.kernels:
            yield from self._arguments(kernel)
        yield from self._workloads()
        yield from self._header()

    @cached_property
    def text(self) -> SourceText:
        return SourceText(self.family, self.folder)

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names that family.py binds at its top level. Raises SyntaxError."""
        file = self.folder / "family.py"
        table = symtable.symtable(file.read_text("utf-8") if file.is_file() else "", str(file), "exec")
        return frozenset(
            name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()
        )

    @cached_property
    def taken(self) -> frozenset[str]:
        """Every argument of every kernel."""
        return frozenset(name for kernel in self.family.kernels.values() for name in kernel.arguments)

    def _find_unused_data(self) -> Iterator[Finding]:
        family = self.family
        filled = {*family.beginnings.values(), *(n for n, how in family.accesses.items() if how == SYMBOL)}
        for name, data in family.data.items():
            if name not in filled | self.taken and not self.text.is_named_in_python(name):
                yield self.file.report(
                    "unused-data",
                    f"no kernel takes the {data.role} {name!r}: add it to a kernel's arguments, or delete it here",
                    "data", name,
                    is_error=data.role == "output",
                )  # fmt: skip

    def _find_unread_policy(self, policy: Policy) -> Iterator[Finding]:
        """A layout policy of data that no kernel takes."""
        family, name = self.family, policy.name
        reached_by: frozenset[str] = self.taken | family.shared.keys()
        if policy.layout == "order":
            data = [family.data[each] for each in self.taken & family.data.keys()]
            reached_by = frozenset(extent for each in data for extent in each.shape)
        if policy.layout and not reached_by & set(policy.data):
            yield self.file.report(
                "unread-policy",
                f"policy {name!r} decides the layout of {', '.join(policy.data)}, which no kernel takes: every "
                "value is the same program; name data that a kernel takes, or delete the policy",
                "policies", name,
            )  # fmt: skip

    def _absent_values(self) -> Iterator[Finding]:
        """Values that the constraints on policies alone leave to no configuration."""
        try:
            left = list_configurations(self.family.space, _MOST)
        except FamilyError as problem:  # a constraint that has no value for some configuration
            yield self.file.report("declaration", f"{problem}; correct it", "constraints")
            return
        for policy in self.family.space.policies if left is not None else ():
            had = {configuration[policy.name] for configuration in left or ()}
            for value in policy.values:
                if value not in had:
                    yield self.file.report(
                        "excluded",
                        f"no configuration has {policy.name}={value}: the constraints exclude it whatever the other "
                        "policies are; delete the value, or loosen a constraint",
                        "policies", policy.name, "values",
                        is_error=False,
                    )  # fmt: skip

    def _features(self) -> Iterator[Finding]:
        """What tells two inputs apart must follow from the shapes of inputs or from scalars that are given."""
        family = self.family
        values = {**family.extents, **{name: scalar.value for name, scalar in family.scalars.items()}}
        varying = {name for name, value in values.items() if value is None}
        for _ in values:  # one may be made of another
            varying |= {name for name, value in values.items() if value and value.names & varying}
        if not any(feature.names & varying for feature in family.features.values()):
            yield self.file.report(
                "no-features",
                f"no feature changes with the input (features: {', '.join(family.features) or 'none'}), so the "
                "dispatcher treats all inputs as equal: give an input an extent that varies, or name features: over "
                "extents and scalars",
                "features",
                is_error=False,
            )

    def _reference(self) -> Iterator[Finding]:
        family = self.family
        if "reference" in self.defined:
            return
        how = (
            "write reference(arrays, options) in family.py, in numpy or another program, from the inputs to every "
            "output"
        )
        rule = "no-reference"
        message = f"there is no reference: {how}, or name a configuration with reference:"
        if family.is_own_reference:
            message = f"there is no reference: each configuration is compared with its own first run; {how}"
        elif family.reference:
            rule = "reference-is-kernel"
            is_other = family.reference == BASELINE
            which = "of baseline" if is_other else f"itself, in configuration {family.reference!r}"
            message = f"the reference is the kernel {which}: a mistake that it shares is never seen; {how}"
        yield self.file.report(rule, message, "reference", is_error=not family.reference)

    def _arguments(self, kernel: str) -> Iterator[Finding]:
        """The parameters of a kernel as its text has them against the arguments: a launch hands over bytes, and no
        compiler compares the two. A kernel whose parameter list cannot be found is left alone."""
        arguments = self.family.kernels[kernel].parameters
        for path, text in self.text.files.items():
            if (defined := kernel_text.definition(text, kernel.rsplit("::", maxsplit=1)[-1])) is None:
                continue
            for parameter, argument in zip(defined.parameters, arguments, strict=False):
                if wrong := self._find_mismatch(parameter, argument):
                    rule, message = wrong
                    line = text.count("\n", 0, parameter.at) + 1
                    yield Finding(path, line, "error", rule, f"kernel {kernel} {message}")
            if len(defined.parameters) != len(arguments):
                yield self.file.report(
                    "argument-order",
                    f"kernel {kernel} has {len(defined.parameters)} parameters in {path.name} and {len(arguments)} "
                    "arguments here: list each parameter's data or number, in order",
                    "kernels", kernel, "arguments",
                )  # fmt: skip
            return

    def _find_mismatch(self, parameter: kernel_text.Parameter, argument: str) -> tuple[str, str] | None:
        """The rule that a parameter breaks, and how. ``Policy::x`` stands for x, with ``typename`` or without."""
        family = self.family
        match = re.search(r"\b(?:typename\s+\w+|Policy)::(\w+)", parameter.text)
        called, number = match[1] if match else "", family.number_type(argument)
        is_pointer = family.accesses.get(argument) == POINTER
        if called not in ("", argument):
            return (
                "argument-order",
                f"takes Policy::{called} where family.yaml passes {argument!r}: make both agree",
            )
        if argument in family.typed_names:  # the source says it in its own way
            return None
        if is_pointer and called:
            how = f"declare {argument} with access: accessor, or take a pointer here"
            what = (
                f"takes Policy::{argument}, and family.yaml says that it finds {argument} by a pointer: {how}"
            )
            return "argument-order", what
        if is_pointer or (number and "*" not in parameter.text):
            data = family.data.get(argument)
            declared = number if data is None else "" if data.record else data.element or data.fields[0].type
            if not (wanted := kernel_text.another_type(parameter.text, declared, is_pointer=is_pointer)):
                return None
            passed = f"{'an array of ' if is_pointer else ''}{declared}"
            how = f"make it {wanted}, or declare the type that the kernel has"
            return "argument-type", f"takes `{parameter.text}` where family.yaml passes {passed}: {how}"
        if called or not re.search(r"[*\[]", parameter.text):
            return None
        how = f"`typename Policy::{argument} {argument}` with {argument}.load(i, …) and .store(value, i, …)"
        if argument not in family.data:
            how = f"an array that is declared as data; {argument!r} is a number"
        return "raw-pointer", f"takes the raw pointer `{parameter.text}`, which knows no layout: take {how}"

    def _workloads(self) -> Iterator[Finding]:
        family = self.family
        known = workloads(family)
        if not known:
            yield self.file.report(
                "no-workload",
                f"there is no workload: write {self.folder / 'workloads'}/NAME.yaml with the arrays to tune on",
            )
        if (default := family.default_workload) and default not in known:
            yield self.file.report(
                "no-workload",
                f"default_workload {default!r} is not there{suggestion(default, known)} (there are: "
                f"{', '.join(known) or 'none'}); correct the name, or write it",
                "default_workload",
            )
        for path in known.values():
            own = path.is_relative_to(family.folder)  # else it ships
            shown = self.folder / path.relative_to(family.folder) if own else path
            try:
                workload = load_workload(family, path)
            except AutotuneError as problem:
                yield File(shown, {}).report("workload", str(problem).removeprefix(f"{path}: "))
                continue
            inputs = [data.name for data in family.inputs]
            for name in workload.arrays:
                if name not in inputs:
                    message = f"array {name}: {UnknownName('input', name, inputs, f'family {family.name}')}"
                    yield File(shown, File.read(path).lines).report("workload", message, "arrays", name)

    def _header(self) -> Iterator[Finding]:
        header = self.folder / "default.cuh"
        if header.is_file() and header.read_text(encoding="utf-8", errors="replace") != default_header(
            self.family
        ):
            how = f"autotune show {self.folder} control --header > {header}"
            message = f"is not what family.yaml makes now: {how}"
            yield File(header, {}).report("stale-header", message, is_error=False)
