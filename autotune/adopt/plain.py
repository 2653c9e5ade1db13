"""The kernel with what a family has no word for written out: a template's parameters are their values, and a struct by
value is its members, each a parameter of its own."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from autotune.adopt.elements import parts_of, type_name
from autotune.adopt.function import Function
from autotune.adopt.host import HostProgram, find_close, split
from autotune.adopt.rewriting import Text
from autotune.adopt.source import (
    CudaSource,
    Cursor,
    Span,
    children,
    kind,
    names_in,
    parameters,
    span,
    type_kind,
)
from autotune.errors import FamilyError

_MOST_MEMBERS = 64
_MOST_PARAMETERS = 256
_TOKENS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?:(?:\.|->|::)\s*)?\b[A-Za-z_]\w*", re.DOTALL
)


def make_plain(source: CudaSource, kernel: str, values: Sequence[str]) -> tuple[CudaSource, HostProgram]:
    """``values`` are those of the template as the command line has them. Raises FamilyError."""
    cursor = source.kernel(kernel)
    if (count := len(parameters(cursor))) > _MOST_PARAMETERS:
        raise FamilyError(
            f"{source.path}: kernel {kernel} takes {count} parameters: at most {_MOST_PARAMETERS} are read"
        )
    if kind(cursor) == "FUNCTION_TEMPLATE":
        used = _host(source, cursor).calls
        given = [call.value(text) for call in used[:1] for text in call.values]
        source = source.with_text(_instance(source, cursor, values or given))
        cursor = source.kernel(kernel)
    host = _host(source, cursor)
    if any(map(_is_struct, parameters(cursor))):
        source = source.with_text(_expand_structs(source, cursor))
    return source, host


def _host(source: CudaSource, cursor: Cursor) -> HostProgram:
    given = parameters(cursor)
    numbers = frozenset(c.spelling for c in given if "int" in type_name(c.type))
    structs = (c for c in children(source.unit.cursor) if kind(c) == "STRUCT_DECL")
    records = {c.spelling: c.type.get_size() for c in structs}
    return HostProgram(source, cursor.spelling, [c.spelling for c in given], numbers, records)


def _is_struct(parameter: Cursor) -> bool:
    return type_kind(parameter) == "RECORD" and not type_name(parameter.type)


# -- templates --------------------------------------------------------------------------------------------


def _instance(source: CudaSource, cursor: Cursor, values: Sequence[str]) -> str:
    begin, end = span(cursor)
    text = source.text(begin, end)
    opened = text.index("<")
    head = find_close(text, opened, ("<", ">")) + 1  # where `template <...>` ends
    names = {c.spelling: c for c in children(cursor) if kind(c).startswith("TEMPLATE_")}
    defaults = [item.partition("=")[2].strip() for item in split(text[opened + 1 : head - 1])]
    given = dict(zip(names, [*values, *defaults[len(values) :]], strict=False))
    everything = "\n".join(content.decode("utf-8", "replace") for content in source.files.values())
    for name in names:
        value = given.get(name, "")
        if not value or re.search(rf"\btemplate\s*<[^>]*\w\s+{re.escape(value)}\s*[,>=]", everything):
            some = ", ".join(map(_example, names.values()))
            raise FamilyError(
                f"{source.path}: kernel {cursor.spelling} is a template over {', '.join(names)}, and no launch "
                f"in its file gives a value of {name}: add them, as in --kernel '{cursor.spelling}<{some}>'"
            )
    lines = "\n" * text.count("\n", 0, head)
    body = _TOKENS.sub(lambda token: given.get(token[0], token[0]), text[head:])
    return f"{source.text(0, begin)}{lines}{body}{source.text(end)}"


def _example(parameter: Cursor) -> str:
    """A value that a parameter of a template may have."""
    if kind(parameter) == "TEMPLATE_TYPE_PARAMETER":
        return "float"
    return "4" if type_name(parameter.type) else str(parameter.spelling)


# -- structs by value -------------------------------------------------------------------------------------


def _expand_structs(source: CudaSource, cursor: Cursor) -> str:
    function, text, copies = Function(source, cursor), Text(source), ""
    for parameter in filter(_is_struct, function.parameters):
        name, members = parameter.spelling, dict(_members(source, parameter, parameter.type, ""))
        flat = {path: f"{name}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_')}" for path in members}
        text.replace(span(parameter), ", ".join(f"{type_} {flat[path]}" for path, type_ in members.items()))
        written = rf"\b{name}\s*\.\s*[\w.]+(?:\[[^\]]*\])?\s*(?:[-+*/%&|^]?=(?!=)|\+\+|--)"
        is_written = re.search(written, source.text(*span(function.body)))
        whole = bool(is_written)
        for use in (c for c in names_in(function.body) if c.referenced == parameter):
            place, path = _member(function, use)
            if path in members and not is_written and not source.macro_around(place):
                text.replace(place, flat[path])
            else:
                whole = True
        if whole:
            declared = re.sub(r"\bconst\b", "", parameter.type.spelling).strip()
            each = "".join(f" {name}.{path} = {flat[path]};" for path in members)
            copies += f" {declared} {name};{each}"
    begin = span(function.body)[0]
    text.replace((begin, begin + 1), f"{{{copies}")
    return text.read_between(0, len(source.content))


def _member(function: Function, use: Cursor) -> tuple[Span, str]:
    """The place of ``p.a.b`` and its path, of a use of p."""
    node, path, parent = use, list[str](), function.parent(use)
    while kind(parent) in ("MEMBER_REF_EXPR", "UNEXPOSED_EXPR"):
        if kind(parent) == "MEMBER_REF_EXPR":
            path.append(parent.spelling)
            node = parent
        parent = function.parent(parent)
    return span(node), ".".join(path)


def _members(source: CudaSource, parameter: Cursor, record: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """The path and the type of each number in a struct. Raises FamilyError for what is none."""
    for item in record.get_canonical().get_fields():
        (counts, element), paths = parts_of(item.type), [f"{prefix}{item.spelling}"]
        for count in counts:
            paths = [f"{one}[{number}]" for one in paths[: _MOST_MEMBERS + 1] for number in range(count)]
        is_record = element.kind.name == "RECORD"
        for one in paths[: _MOST_MEMBERS + 1]:
            if type_name(element) and not is_record:
                yield one, re.sub(r"\bconst\b", "", element.spelling).strip()
            elif is_record and len(paths) <= _MOST_MEMBERS:
                yield from _members(source, parameter, element, f"{one}.")
            else:
                raise FamilyError(
                    f"{source.path}:{source.line(parameter.location.offset)}: {parameter.type.spelling} "
                    f"{parameter.spelling} is a struct by value whose member {one} ({item.type.spelling}) is no "
                    "number: pass what the kernel needs of it one by one"
                )
