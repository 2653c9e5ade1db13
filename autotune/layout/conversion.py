"""Converted views: an array that another kernel reads in a layout of its own.

What a view chooses replaces what its array has, one layout dimension at a time; ``same`` chooses nothing. Where it then
lies as its array does it is the array, read as it is. Elsewhere it is a copy, which a kernel makes by reading through
the one accessor and writing through the other (convert.cuh).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autotune.layout.arrays import Data
from autotune.layout.layout import Layout
from autotune.layout.storage import storage_of

SAME = "same"
CONVERTED_KINDS = ("memory", "axes", "padding", "records", "storage")  # what such a view may choose

ALIAS, SEEN, COPIED = "alias", "seen", "copied"
_LINEAR = ("global", "readonly")
_TILE_BYTES = 40_000  # of the 48 KiB that a block has without asking for more


def converted(data: Data, of: Layout, chosen: Mapping[str, Any]) -> Layout:
    """The layout of the view ``data`` of an array that is stored as ``of``; ``chosen`` are values of layout
    dimensions."""
    own = {kind: value for kind, value in chosen.items() if value != SAME}
    memory = own.pop("memory", "")
    if "axes" in own:
        own["axes"] = tuple(data.shape.index(name) for name in own["axes"])
    if "storage" in own:
        own["storage"] = storage_of(own["storage"], data.fields[0].type)
    alike = replace(of, data=data)
    if all(getattr(of, kind) == value for kind, value in own.items()):
        return replace(alike, memory=memory or of.memory)
    if of.has_scales and "storage" not in own:
        own["storage"] = None  # a scale that the host found in an input is not known to a kernel that writes
    return replace(alike, memory=memory or "global", dims="1d", group=(1, 0), constant_offset=0, **own)


def relation(view: Layout, of: Layout) -> str:
    """Whether the view is its array (``ALIAS``), reads its memory through a texture (``SEEN``) or is a copy of it
    (``COPIED``). An input may come to lie elsewhere at each call, so no texture stays on it."""
    if replace(view, data=of.data, memory=of.memory) != of:
        return COPIED
    if view.memory == of.memory or {view.memory, of.memory} <= {*_LINEAR}:
        return ALIAS
    is_seen = view.memory == "texture" and of.memory == "global" and of.data.role == "scratch"
    return SEEN if is_seen else COPIED


def tile_edge(view: Layout) -> int:
    """The edge of the tiles in which a copy is made."""
    return next(edge for edge in (32, 16, 8, 4, 2, 1) if edge * (edge + 1) * view.value_bytes <= _TILE_BYTES)
