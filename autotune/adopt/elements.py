"""What an element of an array is: the number types and the fields of structs, as family.yaml has them."""

import re
from typing import Any

TYPES = {
    "CHAR_S": "int8", "SCHAR": "int8", "UCHAR": "uint8", "CHAR_U": "uint8", "BOOL": "uint8", "SHORT": "int16",
    "USHORT": "uint16", "INT": "int32", "UINT": "uint32", "LONG": "int64", "ULONG": "uint64", "LONGLONG": "int64",
    "ULONGLONG": "uint64", "FLOAT": "float32", "DOUBLE": "float64",
}  # fmt: skip
_HALVES = {"__half": "float16", "__nv_bfloat16": "bfloat16"}
_MOST_PARTS = 64
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


def type_name(cursor_type: Any) -> str:
    """The name that family.yaml has for a C++ number type; empty where it has none."""
    found = cursor_type.get_canonical()
    return TYPES.get(found.kind.name, "") or _HALVES.get(found.get_declaration().spelling, "")


def size_of(type_: str) -> int:
    return _BYTES[re.sub(r"\D", "", type_)]


def record_fields(pointee: Any) -> tuple[dict[str, str], str]:
    """The fields of a struct as family.yaml has them, by name and type, and why they cannot be said. What a compiler
    leaves free is filled; an array or a struct within is as many fields."""
    fields: dict[str, str] = {}
    why = _add_fields(fields, pointee.get_canonical(), 0, "")
    if not why and not fields:
        why = "is not known here"
    if why:
        return {}, why
    end = sum(size_of(type_) for type_ in fields.values())
    _fill(fields, end, pointee.get_canonical().get_size())
    return fields, ""


def _add_fields(fields: dict[str, str], record: Any, begin: int, prefix: str) -> str:
    """Add those of a record that lies at byte ``begin``; returns why that cannot be."""
    for item in record.get_fields():
        if item.is_bitfield():
            return f"has a bit field ({item.spelling})"
        offset = begin + item.get_field_offsetof() // 8
        count, element = 1, item.type.get_canonical()
        while element.kind.name == "CONSTANTARRAY":
            count, element = count * element.element_count, element.element_type.get_canonical()
        if count > _MOST_PARTS:
            return f"has a field of {count} parts ({item.spelling})"
        type_, size = type_name(element), element.get_size()
        for place in range(count):
            name = f"{prefix}{item.spelling}" if count == 1 else f"{prefix}{item.spelling}_{place}"
            at = offset + place * size
            if type_ in _HALVES.values():
                return f"has a field of 16 bits ({item.spelling})"
            if type_:
                _fill(fields, sum(size_of(t) for t in fields.values()), at)
                fields[name] = type_
            elif element.kind.name == "RECORD":
                if why := _add_fields(fields, element, at, f"{name}_"):
                    return why
            else:
                return f"has a field that is no number: {item.type.spelling} {item.spelling}"
    return ""


def _fill(fields: dict[str, str], end: int, offset: int) -> None:
    """Fields that nobody names, up to ``offset``."""
    while end < offset:
        step = next(size for size in (8, 4, 2, 1) if end % size == 0 and end + size <= offset)
        fields[f"unused_{end}"] = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}[step]
        end += step
