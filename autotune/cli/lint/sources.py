"""What can be told from the text of a family's C++: names nothing declares, signatures, launches of another shape,
pointers past a layout.

The rules read text, not C++: comments and strings are blanked out, macros are not expanded, and a kernel whose
parameter list cannot be found is left alone. A compiler call (``autotune sweep FOLDER --static``) sees the rest.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autotune.cli.lint.findings import Declared, Finding, Source
from autotune.compile import enumeration
from autotune.declaration import another_type
from autotune.errors import suggestion


@dataclass(frozen=True)
class _Parameter:
    text: str
    line: int

    @property
    def policy_name(self) -> str:
        """x of ``typename Policy::x`` or, in a source that is compiled as it stands, ``Policy::x``; empty for a plain
        type."""
        match = re.search(r"\b(?:typename\s+\w+|Policy)::(\w+)", self.text)
        return match[1] if match else ""

    @property
    def name(self) -> str:
        """What the kernel calls an array; empty when it has no name there."""
        match = re.search(r"\w+::\w+\s*&?\s*\b(\w+)$", self.text)
        return match[1] if match else ""


def check_sources(declared: Declared) -> Iterator[Finding]:
    yield from _undeclared(declared)
    if not declared.is_plain:
        yield from _enumerations(declared)
    accessors = {name: name for name in declared.data}  # by what a kernel calls it
    for kernel in declared.kernels:
        for source in declared.sources:
            if (parameters := _signature(source, kernel)) is not None:
                yield from _against_arguments(declared, source, kernel, parameters)
                yield from _against_launch(declared, source, kernel)
                accessors |= {
                    p.name: p.policy_name for p in parameters if p.name and p.policy_name in declared.data
                }
                break
        else:
            yield from _without_signature(declared, kernel)
    yield from _past_the_layout(declared, accessors)


def _undeclared(declared: Declared) -> Iterator[Finding]:
    allowed = [*declared.data, *declared.policies, *declared.content.get("options", {})]
    for source in declared.sources:
        for match in re.finditer(r"\bPolicy::(?!template\b)(\w+)", source.code):
            if match[1] not in allowed:
                yield Finding(
                    "undeclared-data",
                    source.path,
                    source.line(match.start()),
                    f"{match[0]}: family.yaml declares no data, policy or option {match[1]!r}"
                    f"{suggestion(match[1], allowed)} (declared: {', '.join(allowed)}); declare it, or mend the name",
                )


def _enumerations(declared: Declared) -> Iterator[Finding]:
    """A choice among words is a value of an enum class, in the policy struct of every configuration, read or not."""
    code = "\n".join(source.code for source in declared.sources)
    for section, name, values in declared.words:
        kind = enumeration(name)
        made = re.search(rf"\benum\s+(?:class\s+|struct\s+)?{kind}\b[^;{{]*{{([^}}]*)}}", code)
        if made is None and re.search(rf"\b{kind}\b", code):
            continue  # a macro may make it
        there = re.findall(r"\w+", made[1]) if made else []
        if missing := [value for value in values if value not in there]:
            wanted = f"enum class {kind} {{ {', '.join(values)} }};"
            what = f"{name} has words as values, and " + (
                f"enum class {kind} of the source has no {', '.join(missing)}"
                if made
                else f"no source has enum class {kind}"
            )
            yield declared.found("missing-enum", f"{what}: write `{wanted}` there", section, name)


def _signature(source: Source, kernel: str) -> list[_Parameter] | None:
    """The parameters of the ``__global__`` function of that name; None when this file has none."""
    match = re.search(rf"\b__global__\b[^;{{}}]*?\b{_last(kernel)}\s*\(", source.code)
    if match is None:
        return None
    parameters, depth, start = [], 0, match.end()
    for position in range(match.end(), len(source.code)):
        character = source.code[position]
        if depth == 0 and character in ",)":
            text = source.code[start:position]
            if text.strip():
                first = start + len(text) - len(text.lstrip())
                parameters.append(_Parameter(" ".join(text.split()), source.line(first)))
            if character == ")":
                return parameters
            start = position + 1
        depth += (character in "(<[{") - (character in ")>]}")
    return None


def _last(kernel: str) -> str:
    """Its name without the namespaces around it."""
    return kernel.rsplit("::", maxsplit=1)[-1]


def _without_signature(declared: Declared, kernel: str) -> Iterator[Finding]:
    if any(re.search(rf"\b{_last(kernel)}\b", source.code) for source in declared.sources):
        return  # a macro may make it
    pattern = r"\b__global__\b[^;{}]*?(\w+)\s*\((?=[^()]*\)\s*\{)"
    there = [name for source in declared.sources for name in re.findall(pattern, source.code)]
    yield declared.found(
        "missing-kernel",
        f"kernel {kernel!r} is not in the sources{suggestion(kernel, there)} "
        f"(__global__ functions there: {', '.join(there) or 'none'}); write it, or correct the name",
        "kernels", kernel,
    )  # fmt: skip


def _against_arguments(
    declared: Declared, source: Source, kernel: str, parameters: list[_Parameter]
) -> Iterator[Finding]:
    arguments = declared.kernels[kernel]["arguments"]
    for parameter, argument in zip(parameters, arguments, strict=False):
        at = (source.path, parameter.line)
        if parameter.policy_name not in ("", argument):
            what = f"takes Policy::{parameter.policy_name} where family.yaml passes {argument!r}: make both agree"
            yield Finding("argument-order", *at, f"kernel {kernel} {what}")
        elif declared.access(argument) == "pointer" and argument in declared.data:
            if parameter.policy_name:
                how = f"declare {argument} with access: accessor, or take a pointer here"
                what = f"takes Policy::{argument}, and family.yaml says that it finds {argument} by a pointer: {how}"
                yield Finding("argument-order", *at, f"kernel {kernel} {what}")
            elif what := _other_type(parameter, declared.data[argument].get("type", ""), is_pointer=True):
                yield Finding("argument-type", *at, f"kernel {kernel} {what}")
        elif argument in declared.numbers and "*" not in parameter.text:
            if what := _other_type(parameter, declared.numbers[argument], is_pointer=False):
                yield Finding("argument-type", *at, f"kernel {kernel} {what}")
        elif not parameter.policy_name and re.search(r"[*\[]", parameter.text):
            how = (
                f"`typename Policy::{argument} {argument}` with {argument}.load(i, …) and .store(value, i, …)"
            )
            if argument not in declared.data:
                how = f"an array that is declared as data; {argument!r} is a number"
            what = f"takes the raw pointer `{parameter.text}`, which knows no layout: take {how}"
            yield Finding("raw-pointer", *at, f"kernel {kernel} {what}")
    if len(parameters) != len(arguments):
        yield declared.found(
            "argument-order",
            f"kernel {kernel} has {len(parameters)} parameters in {source.path.name} and {len(arguments)} arguments "
            "here: list each parameter's data or number, in order",
            "kernels", kernel, "arguments",
        )  # fmt: skip


def _other_type(parameter: _Parameter, declared: str, *, is_pointer: bool) -> str:
    """What is wrong with the parameter's type, where it is one of C++'s own; empty when nothing is."""
    wanted = another_type(parameter.text, declared, is_pointer=is_pointer)
    if not wanted:
        return ""
    return (
        f"takes `{parameter.text}` where family.yaml passes {'an array of ' if is_pointer else ''}{declared}: make it "
        f"{wanted}, or declare the type that the kernel has"
    )


def _body(source: Source, kernel: str) -> tuple[int, int]:
    """Where the kernel's statements begin and end in the text of ``source``; an empty range where there are none."""
    match = re.search(rf"\b__global__\b[^;{{}}]*?\b{_last(kernel)}\s*\([^;{{}}]*\)\s*{{", source.code)
    if match is None:
        return 0, 0
    depth = 1
    for position in range(match.end(), len(source.code)):
        depth += {"{": 1, "}": -1}.get(source.code[position], 0)
        if depth == 0:
            return match.end(), position
    return 0, 0


def _against_launch(declared: Declared, source: Source, kernel: str) -> Iterator[Finding]:
    """An index that the declared launch leaves at 0, and a grid that ignores how much of the index a block takes."""
    launch = declared.kernels[kernel]
    begin, end = _body(source, kernel)
    body = source.code[begin:end]
    for index, key in (("threadIdx", "block"), ("blockIdx", "grid")):
        for axis in "xyz"[len(launch[key]) :]:
            if match := re.search(rf"\b{index}\s*\.\s*{axis}\b", body):
                what = (
                    f"kernel {kernel} reads {index}.{axis}, which is always 0: its {key} in family.yaml has "
                )
                what += f"{len(launch[key])} of x, y, z; give {key} its {axis}, or do without it"
                yield Finding("launch", source.path, source.line(begin + match.start()), what, is_error=False)
    if re.search(r"\bgridDim\b", body):
        return  # it walks on by the grid, so any will do
    grid = " ".join(map(str, launch["grid"]))
    for statement in re.finditer(r"[^;{}]*\bblockIdx\b[^;{}]*", body):
        for factor in dict.fromkeys(re.findall(r"\*\s*Policy::(\w+)|Policy::(\w+)\s*\*", statement[0])):
            name = factor[0] or factor[1]
            values = declared.policies.get(name, {}).get("values", ())
            if values and all(isinstance(v, int) for v in values) and not re.search(rf"\b{name}\b", grid):
                what = f"kernel {kernel} multiplies its block's index by Policy::{name}, and its grid in family.yaml "
                what += f"({grid}) does not read {name}: blocks would lie idle, or be missing; divide the grid by it"
                line = source.line(begin + statement.start() + statement[0].index("blockIdx"))
                yield Finding("launch", source.path, line, what, is_error=False)


def _past_the_layout(declared: Declared, accessors: dict[str, str]) -> Iterator[Finding]:
    """An accessor whose inside is used: right for one layout, wrong for the next. Without a policy that changes the
    array's layout it is only a warning."""
    driven = {
        name: policy
        for policy, value in declared.policies.items()
        if value.get("layout", "") not in ("", "order")
        for name in value.get("data", ())
    }
    names = "|".join(map(re.escape, sorted(accessors)))
    inside = rf"\b({names})\s*\.\s*(?:memory|mapping|part_stride|handle|base)\b"
    cast = rf"\breinterpret_cast\s*<[^;()]*>\s*\(\s*[&*]*\s*({names})\b(?!\s*\.\s*(?:load|extent)\b)"
    for source in declared.sources:
        matches = (m for pattern in (inside, cast) for m in re.finditer(pattern, source.code))
        for match in sorted(matches, key=lambda m: m.start()):
            array = accessors[match[1]]
            policy = driven.get(array, "")
            consequence = (
                f"policy {policy} changes the layout of {array!r}, so this is wrong for some of its values"
                if policy
                else f"that holds only as long as no policy changes the layout of {array!r}"
            )
            yield Finding(
                "raw-pointer",
                source.path,
                source.line(match.start()),
                f"`{' '.join(match[0].split())}` reaches past the layout of {array!r}: {consequence}; use "
                f"{match[1]}.load(i, …), .store(value, i, …), .add(value, i, …) or .extent(axis)",
                is_error=bool(policy),
            )
