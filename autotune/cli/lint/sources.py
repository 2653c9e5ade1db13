"""What can be told from the text of a family's C++, and no compiler says: signatures that family.yaml calls otherwise,
launches of another shape, pointers past a layout.

The rules read text, not C++: comments and strings are blanked out, macros are not expanded, and a kernel whose
parameter list cannot be found is left alone. A compiler call (``autotune sweep FOLDER --static``) sees the rest.
"""

import re
from collections.abc import Iterator

from autotune.cli.lint.findings import Declared, Finding, Source
from autotune.declaration import POINTER, Definition, Parameter, another_type, definition
from autotune.layout import Data


def check_sources(declared: Declared) -> Iterator[Finding]:
    data = declared.family.data
    accessors = {name: name for name in data}  # by what a kernel calls it
    for kernel in declared.family.kernels:
        for source in declared.sources:
            if found := definition(source.code, kernel.rsplit("::", maxsplit=1)[-1]):
                yield from _against_arguments(declared, source, kernel, found.parameters)
                yield from _against_launch(declared, source, kernel, found)
                called = {parameter.name: _policy_name(parameter) for parameter in found.parameters}
                accessors |= {name: array for name, array in called.items() if array in data}
                break
    yield from _past_the_layout(declared, accessors)


def _policy_name(parameter: Parameter) -> str:
    """x of ``typename Policy::x`` or, in a source that is compiled unmodified, ``Policy::x``; empty for a plain
    type."""
    match = re.search(r"\b(?:typename\s+\w+|Policy)::(\w+)", parameter.text)
    return match[1] if match else ""


def _against_arguments(
    declared: Declared, source: Source, kernel: str, parameters: tuple[Parameter, ...]
) -> Iterator[Finding]:
    family, arguments = declared.family, declared.family.kernels[kernel].arguments
    for parameter, argument in zip(parameters, arguments, strict=False):
        at, policy_name = (source.path, source.line(parameter.at)), _policy_name(parameter)
        if policy_name not in ("", argument):
            what = f"takes Policy::{policy_name} where family.yaml passes {argument!r}: make both agree"
            yield Finding("argument-order", *at, f"kernel {kernel} {what}")
        elif family.accesses.get(argument) == POINTER:
            if policy_name:
                how = f"declare {argument} with access: accessor, or take a pointer here"
                what = f"takes Policy::{argument}, and family.yaml says that it finds {argument} by a pointer: {how}"
                yield Finding("argument-order", *at, f"kernel {kernel} {what}")
            elif what := _other_type(parameter, _element(family.data[argument]), is_pointer=True):
                yield Finding("argument-type", *at, f"kernel {kernel} {what}")
        elif (number := family.number_type(argument)) and "*" not in parameter.text:
            if what := _other_type(parameter, number, is_pointer=False):
                yield Finding("argument-type", *at, f"kernel {kernel} {what}")
        elif not policy_name and re.search(r"[*\[]", parameter.text):
            how = (
                f"`typename Policy::{argument} {argument}` with {argument}.load(i, …) and .store(value, i, …)"
            )
            if argument not in family.data:
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


def _element(data: Data) -> str:
    return "" if data.record else data.element or data.fields[0].type


def _other_type(parameter: Parameter, declared: str, *, is_pointer: bool) -> str:
    """What is wrong with the parameter's type, where it is one of C++'s own; empty when nothing is."""
    wanted = another_type(parameter.text, declared, is_pointer=is_pointer)
    if not wanted:
        return ""
    return (
        f"takes `{parameter.text}` where family.yaml passes {'an array of ' if is_pointer else ''}{declared}: make it "
        f"{wanted}, or declare the type that the kernel has"
    )


def _against_launch(declared: Declared, source: Source, kernel: str, found: Definition) -> Iterator[Finding]:
    """An index that the declared launch leaves at 0, and a grid that ignores how much of the index a block takes."""
    launch, policies = declared.family.kernels[kernel], declared.family.space.policies
    numbers = {policy.name for policy in policies if all(isinstance(value, int) for value in policy.values)}
    grid = " ".join(item.text for item in launch.grid)
    begin, body = found.begin, source.code[found.begin : found.end]
    for index, key, sizes in (("threadIdx", "block", launch.block), ("blockIdx", "grid", launch.grid)):
        for axis in "xyz"[len(sizes) :]:
            if match := re.search(rf"\b{index}\s*\.\s*{axis}\b", body):
                what = (
                    f"kernel {kernel} reads {index}.{axis}, which is always 0: its {key} in family.yaml has "
                )
                what += f"{len(sizes)} of x, y, z; give {key} its {axis}, or do without it"
                yield Finding("launch", source.path, source.line(begin + match.start()), what, is_error=False)
    if re.search(r"\bgridDim\b", body):
        return  # it walks on by the grid, so any will do
    for statement in re.finditer(r"[^;{}]*\bblockIdx\b[^;{}]*", body):
        for factor in dict.fromkeys(re.findall(r"\*\s*Policy::(\w+)|Policy::(\w+)\s*\*", statement[0])):
            name = factor[0] or factor[1]
            if name in numbers and not any(name in item.names for item in launch.grid):
                what = f"kernel {kernel} multiplies its block's index by Policy::{name}, and its grid in family.yaml "
                what += f"({grid}) does not read {name}: blocks would lie idle, or be missing; divide the grid by it"
                line = source.line(begin + statement.start() + statement[0].index("blockIdx"))
                yield Finding("launch", source.path, line, what, is_error=False)


def _past_the_layout(declared: Declared, accessors: dict[str, str]) -> Iterator[Finding]:
    """An accessor whose inside is used: right for one layout, wrong for the next. Without a policy that changes the
    array's layout it is only a warning."""
    driven = {
        name: policy.name
        for policy in declared.family.space.policies
        if policy.layout not in ("", "order")
        for name in policy.data
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
