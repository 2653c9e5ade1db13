"""The kernel with what a family has no word for written out: a template's parameters are their values, and a struct by
value is its members, each a parameter of its own."""

import re
from collections.abc import Iterator, Sequence

from autotune.adopt.accesses import names_in
from autotune.adopt.elements import type_name
from autotune.adopt.function import Function
from autotune.adopt.host import HostProgram, split
from autotune.adopt.source import CudaSource, Cursor, Span, children, kind, span
from autotune.errors import FamilyError

_MOST_MEMBERS = 64
_MOST_PARAMETERS = 256
_TOKENS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?:(?:\.|->|::)\s*)?\b[A-Za-z_]\w*", re.DOTALL
)


def plain(source: CudaSource, kernel: str, values: Sequence[str]) -> tuple[CudaSource, HostProgram]:
    """``values`` are those of the template as the command line has them. Raises FamilyError."""
    cursor = source.kernel(kernel)
    if (count := len(_parameters(cursor))) > _MOST_PARAMETERS:
        raise FamilyError(
            f"{source.path}: kernel {kernel} takes {count} parameters: at most {_MOST_PARAMETERS} are read"
        )
    if kind(cursor) == "FUNCTION_TEMPLATE":
        used = _host(source, cursor).calls
        given = [call.value(text) for call in used[:1] for text in call.values]
        source = source.with_text(
            _instance(source, cursor, values or given).encode("utf-8", "surrogateescape")
        )
        cursor = source.kernel(kernel)
    host = _host(source, cursor)
    if any(
        c.type.get_canonical().kind.name == "RECORD" and not type_name(c.type) for c in _parameters(cursor)
    ):
        source = source.with_text(_with_members(source, cursor).encode("utf-8", "surrogateescape"))
    return source, host


def _host(source: CudaSource, cursor: Cursor) -> HostProgram:
    parameters = _parameters(cursor)
    numbers = frozenset(c.spelling for c in parameters if "int" in type_name(c.type))
    records = {
        c.spelling: c.type.get_size() for c in children(source.unit.cursor) if kind(c) == "STRUCT_DECL"
    }
    return HostProgram(source, cursor.spelling, [c.spelling for c in parameters], numbers, records)


def _parameters(cursor: Cursor) -> list[Cursor]:
    return [c for c in children(cursor) if kind(c) == "PARM_DECL"]


# -- templates --------------------------------------------------------------------------------------------


def _instance(source: CudaSource, cursor: Cursor, values: Sequence[str]) -> str:
    begin, end = span(cursor)
    text = source.text(begin, end)
    head = _head(text)
    parameters = [c for c in children(cursor) if kind(c).startswith("TEMPLATE_")]
    names = [c.spelling for c in parameters]
    defaults = [item.partition("=")[2].strip() for item in split(text[text.index("<") + 1 : head - 1])]
    found = dict(zip(names, [*values, *defaults[len(values) :]], strict=False))
    for name in names:
        value = found.get(name, "")
        if not value or re.search(rf"\btemplate\s*<[^>]*\b{re.escape(value)}\b", _all(source)):
            some = ", ".join(_example(c) for c in parameters)
            raise FamilyError(
                f"{source.path}: kernel {cursor.spelling} is a template over {', '.join(names)}, and no launch "
                f"in its file gives a value of {name}: add them, as in --kernel '{cursor.spelling}<{some}>'"
            )

    def replaced(match: "re.Match[str]") -> str:
        return str(found.get(match[0], match[0]))

    lines = "\n" * text.count("\n", 0, head)
    return (
        source.text(0, begin)
        + lines
        + _TOKENS.sub(replaced, text[head:])
        + source.text(end, len(source.content))
    )


def _example(parameter: Cursor) -> str:
    """A value that a parameter of a template may have."""
    if kind(parameter) == "TEMPLATE_TYPE_PARAMETER":
        return "float"
    return "4" if type_name(parameter.type) else str(parameter.spelling)


def _all(source: CudaSource) -> str:
    return "\n".join(content.decode("utf-8", "replace") for content in source.files.values())


def _head(text: str) -> int:
    """Where ``template <...>`` ends."""
    depth = 0
    for place in range(text.index("<"), len(text)):
        depth += (text[place] == "<") - (text[place] == ">")
        if not depth:
            return place + 1
    return len(text)


# -- structs by value -------------------------------------------------------------------------------------


def _with_members(source: CudaSource, cursor: Cursor) -> str:
    function = Function(source, cursor)
    edits: dict[Span, str] = {}
    copies = ""
    for parameter in function.parameters:
        if parameter.type.get_canonical().kind.name != "RECORD" or type_name(parameter.type):
            continue
        name, members = parameter.spelling, dict(_members(source, parameter, parameter.type, ""))
        edits[span(parameter)] = ", ".join(f"{type_} {_flat(name, path)}" for path, type_ in members.items())
        text = source.text(*span(function.body))
        is_written = re.search(
            rf"\b{name}\s*\.\s*[\w.]+(?:\[[^\]]*\])?\s*(?:[-+*/%&|^]?=(?!=)|\+\+|--)", text
        )
        whole = bool(is_written)
        for use in names_in(function.body):
            if use.referenced is None or use.referenced != parameter:
                continue
            place, path = _member(function, use)
            if path in members and not is_written and not source.macro_around(place):
                edits[place] = _flat(name, path)
            else:
                whole = True
        if whole:
            declared = re.sub(r"\bconst\b", "", parameter.type.spelling).strip()
            each = "".join(f" {name}.{path} = {_flat(name, path)};" for path in members)
            copies += f" {declared} {name};{each}"
    begin = span(function.body)[0] + 1
    edits[(begin, begin)] = copies
    parts, at = [], 0
    for place, text in sorted(edits.items()):
        parts += [source.text(at, place[0]), text]
        at = place[1]
    return "".join([*parts, source.text(at, len(source.content))])


def _flat(name: str, path: str) -> str:
    return f"{name}_{re.sub(r'[^A-Za-z0-9]+', '_', path).strip('_')}"


def _member(function: Function, use: Cursor) -> tuple[Span, str]:
    """The place of ``p.a.b`` and its path, of a use of p."""
    node, path = use, ""
    parent = function.parent(node)
    while parent is not None and kind(parent) in ("MEMBER_REF_EXPR", "UNEXPOSED_EXPR"):
        if kind(parent) == "MEMBER_REF_EXPR":
            path = f"{path}.{parent.spelling}" if path else str(parent.spelling)
            node = parent
        parent = function.parent(parent)
    return span(node), path


def _members(source: CudaSource, parameter: Cursor, record: object, prefix: str) -> Iterator[tuple[str, str]]:
    """The path and the type of each number in a struct. Raises FamilyError for what is none."""
    for item in record.get_canonical().get_fields():  # type: ignore[attr-defined]
        element, path = item.type.get_canonical(), f"{prefix}{item.spelling}"
        paths = [path]
        while element.kind.name == "CONSTANTARRAY":
            paths = [f"{one}[{number}]" for one in paths for number in range(element.element_count)]
            element = element.element_type.get_canonical()
        for one in paths[: _MOST_MEMBERS + 1]:
            if type_name(element) and element.kind.name != "RECORD":
                yield one, re.sub(r"\bconst\b", "", element.spelling).strip()
            elif element.kind.name == "RECORD" and len(paths) <= _MOST_MEMBERS:
                yield from _members(source, parameter, element, f"{one}.")
            else:
                raise FamilyError(
                    f"{source.path}:{source.line(parameter.location.offset)}: {parameter.type.spelling} "
                    f"{parameter.spelling} is a struct by value whose member {one} ({item.type.spelling}) is no "
                    "number: pass what the kernel needs of it one by one"
                )
