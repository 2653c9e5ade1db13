"""A winner in C++'s words: its policy struct, layouts, constraints, grids."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.export.choices import Winner, identifier
from autotune.export.cpp_expression import Cpp, Kind, translated
from autotune.expression import Expression, Value, parsed
from autotune.layout import Layout
from autotune.variant import Variant

__all__ = ["members", "places_of", "quoted", "winner_parts"]

_WIDEST = 118


def winner_parts(
    winner: Winner, free: Mapping[str, tuple[str, Kind]], declared: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    variant = winner.variant
    family = variant.family
    bound: dict[str, Value] = {**variant.configuration, **dict(variant.options)}

    def whole(expression: Expression) -> str:
        found = translated(expression, bound, free)
        return found.text if isinstance(found.value, int) else f"whole({found.text})"

    def three(items: Sequence[Expression]) -> str:
        return ", ".join([*(whole(item) for item in items), "1", "1"][:3])

    options = ",".join(f"{name}={value}" for name, value in variant.options)
    return {
        "name": winner.name,
        "about": winner.about,
        "id": variant.configuration.id + (f"; {options}" if options else ""),
        "options": places_of(declared, dict(variant.options)),
        "policy": _policy(variant),
        "layouts": [{"cpp": identifier(name), "members": members(item)} for name, item in variant.layouts.items()],
        "buffers": [str(_owner(variant, name)) for name in family.data],
        "constraints": [
            (found.text, quoted(" ".join(constraint.reason.split())))
            for constraint in family.space.constraints
            if (found := translated(constraint.require, bound, free)).value is not True
        ],
        "geometries": [
            {
                "kernel": kernel.name,
                "grid": three(kernel.grid),
                "block": three(kernel.block),
                "shared_bytes": whole(kernel.shared_bytes),
            }
            for kernel in family.kernels.values()
        ],
        "cleared": [
            _truth(translated(parsed(data.zero), bound, free)) if data.zero else "false"
            for data in family.data.values()
        ],
    }  # fmt: skip


def quoted(text: str) -> str:
    """``text`` as a C++ string literal: what is not printable is a question mark."""
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escaped.get(c, c if c.isprintable() else "?") for c in text) + '"'


def _truth(found: Cpp) -> str:
    return found.text if found.kind == "truth" else f"{found.inside()} != 0"


def _owner(variant: Variant, name: str) -> int:
    """The place of the first array of the group that ``name`` is in; its own where it is in none."""
    names = list(variant.family.data)
    group = next((group for group in variant.groups if name in group), (name,))
    return min(names.index(member) for member in group)


def _policy(variant: Variant) -> str:
    lines = variant.source.struct.splitlines()[1:-1]
    return "\n".join(
        line if len(line) <= _WIDEST else line.replace(", autotune::", ",\n      autotune::")
        for line in lines
    )


def members(layout: Layout) -> list[tuple[str, str]]:
    """What ``Layout`` of layout.h has to be told beyond its defaults."""
    data = layout.data
    axes = ", ".join(str(axis) for axis in layout.axes)
    told: list[tuple[str, str, bool]] = [
        ("name", f'"{data.name}"', True),
        ("memory", f"Memory::{layout.memory}", layout.memory != "global"),
        ("dims", f"Dims::{_DIMS[layout.dims]}", layout.dims != "1d"),
        ("element_bytes", str(data.dtype.itemsize), data.dtype.itemsize != 4),
        ("texel_bytes", str(layout.texel_bytes), layout.texel_bytes != 4),
        ("axes", f"{{{axes}}}", layout.axes != (0,)),
        ("padding", str(layout.padding), layout.padding != 1),
        ("lanes", str(layout.lanes), layout.lanes != 1),
        ("members", str(layout.group[0]), layout.group[0] != 1),
        ("member", str(layout.group[1]), layout.group[1] != 0),
        ("plane_width", str(data.plane[0]), layout.dims != "1d"),
        ("plane_rows", str(data.plane[1]), layout.dims != "1d"),
        ("index_bits", str(data.index_bits), data.index_bits != 32),
        ("constant_bytes", str(data.constant_bytes), layout.memory == "constant"),
        ("constant_offset", str(layout.constant_offset), layout.constant_offset != 0),
    ]
    if layout.packing:
        is_signed = np.dtype(data.fields[0].type).kind == "i"
        told += [
            ("packed_axis", str(data.shape.index(data.packed)), True),
            ("is_signed", "true", is_signed),
            ("bits", str(layout.packing.bits), True),
            ("is_planar", "true", layout.packing.planar),
            ("vector", str(layout.vector), layout.vector != 1),
        ]
    return [(name, value) for name, value, is_needed in told if is_needed]


_DIMS = {"1d": "line", "2d": "plane", "2d_pitched": "pitched_plane"}


def places_of(declared: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[str]:
    """Each option's value by its place among the declared ones, as its enumeration counts them."""
    return [str(option["values"].index(str(options[option["declared"]]))) for option in declared]
