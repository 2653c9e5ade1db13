"""What an element of an array is: the number types and the fields of structs, as family.yaml has them."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from autotune.adopt.source import Cursor, kind

TYPES = {
    "CHAR_S": "int8", "SCHAR": "int8", "UCHAR": "uint8", "CHAR_U": "uint8", "BOOL": "uint8", "SHORT": "int16",
    "USHORT": "uint16", "INT": "int32", "UINT": "uint32", "LONG": "int64", "ULONG": "uint64", "LONGLONG": "int64",
    "ULONGLONG": "uint64", "FLOAT": "float32", "DOUBLE": "float64",
}  # fmt: skip
_HALVES = {"__half": "float16", "__nv_bfloat16": "bfloat16"}
_MOST_PARTS = 64


class _NoField(Exception):
    """A member that family.yaml has no word for; says why."""


@dataclass(frozen=True)
class Element:
    """A number's ``type``, or a ``record`` with the types of its ``fields`` by name."""

    type: str = ""
    record: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return size_of(self.type) if self.type else sum(map(size_of, self.fields.values()))

    def declare(self) -> str:
        """As family.yaml has it."""
        if self.type:
            return f"type: {self.type}"
        return f"record: {self.record}, fields: {{{', '.join(f'{n}: {t}' for n, t in self.fields.items())}}}"


@dataclass(frozen=True)
class Symbol:
    """An array that a source has itself and a host program fills. ``counts`` are its extents."""

    name: str
    counts: tuple[int, ...]
    element: Element

    @property
    def shape(self) -> list[str]:
        if len(self.counts) == 1:
            return [f"{self.name}_count"]
        return [f"{self.name}_count_{number}" for number in range(len(self.counts))]


def type_name(cursor_type: Any) -> str:
    """The name that family.yaml has for a C++ number type; empty where it has none."""
    found = cursor_type.get_canonical()
    return TYPES.get(found.kind.name, "") or _HALVES.get(found.get_declaration().spelling, "")


def find_half(cursor_type: Any) -> str:
    """What C++ calls a number of 16 bits, which an accessor hands over as a float; empty for all others."""
    name = cursor_type.get_canonical().get_declaration().spelling
    return name if name in _HALVES else ""


def size_of(type_: str) -> int:
    return int(re.sub(r"\D", "", type_)) // 8


def parts_of(cursor_type: Any) -> tuple[list[int], Any]:
    """The extents of an array, which a type may be, and the type of an element."""
    counts, element = [], cursor_type.get_canonical()
    while element.kind.name == "CONSTANTARRAY":
        counts.append(int(element.element_count))
        element = element.element_type.get_canonical()
    return counts, element


def element_of(cursor_type: Any) -> tuple[Element, str]:
    """What family.yaml has for a C++ type; and, where it has nothing, why."""
    canonical = cursor_type.get_canonical()
    if type_ := type_name(canonical):
        return Element(type_), ""
    if canonical.kind.name != "RECORD":
        return Element(), f"{cursor_type.spelling} is no number and no struct"
    record, fields = str(canonical.get_declaration().spelling), dict[str, str]()
    try:
        _add_fields(fields, canonical, 0, "")
    except _NoField as problem:
        return Element(), f"struct {record} {problem}"
    if not fields:
        return Element(), f"struct {record} is not known here"
    _fill(fields, canonical.get_size())
    outer = canonical.get_declaration().semantic_parent
    is_inner = outer is not None and kind(outer) in ("STRUCT_DECL", "CLASS_DECL", "FUNCTION_DECL")
    return Element("", record, fields), f"struct {record} is declared inside another" if is_inner else ""


def _add_fields(fields: dict[str, str], record: Any, begin: int, prefix: str) -> None:
    """Add the fields of a record that begins at byte ``begin``, padding too; an array or a struct becomes several."""
    for item in record.get_fields():
        if item.is_bitfield():
            raise _NoField(f"has a bit field ({item.spelling})")
        counts, element = parts_of(item.type)
        count, whole = math.prod(counts), f"{prefix}{item.spelling}"
        if count > _MOST_PARTS:
            raise _NoField(f"has a field of {count} parts ({item.spelling})")
        at, type_ = begin + item.get_field_offsetof() // 8, type_name(element)
        for name in [whole] if count == 1 else [f"{whole}_{place}" for place in range(count)]:
            if type_ in _HALVES.values():
                raise _NoField(f"has a field of 16 bits ({item.spelling})")
            if type_:
                _fill(fields, at)
                fields[name] = type_
            elif element.kind.name == "RECORD":
                _add_fields(fields, element, at, f"{name}_")
            else:
                raise _NoField(f"has a field that is no number: {item.type.spelling} {item.spelling}")
            at += element.get_size()


def _fill(fields: dict[str, str], offset: int) -> None:
    """Fields that nobody names, up to ``offset``."""
    while (end := sum(map(size_of, fields.values()))) < offset:
        step = next(size for size in (8, 4, 2, 1) if end % size == 0 and end + size <= offset)
        fields[f"unused_{end}"] = f"uint{8 * step}"


def symbols_of(cursors: Iterable[Cursor]) -> tuple[Symbol, ...]:
    """Those whose elements family.yaml has words for."""
    found = ((str(cursor.spelling), *parts_of(cursor.type)) for cursor in cursors)
    known = (Symbol(name, tuple(counts) or (1,), element_of(type_)[0]) for name, counts, type_ in found)
    return tuple(symbol for symbol in known if symbol.element.bytes)
