"""Converted views: an array that another kernel reads in a layout of its own.

What a view chooses replaces what its array has, one layout dimension at a time; ``same`` chooses nothing. Where it then
lies as its array does it is the array, read as it is. Elsewhere it is a copy, which a kernel makes by reading through
the one accessor and writing through the other (convert.cuh).
"""

from dataclasses import replace

from autotune.layout.layout import Layout
from autotune.layout.mapping import MAPPING_KINDS

SAME = "same"
CONVERTED_KINDS = ("memory", "axes", *MAPPING_KINDS, "records", "storage")  # what such a view may choose

ALIAS, SEEN, COPIED = "alias", "seen", "copied"
_LINEAR = ("global", "readonly")
_TILE_BYTES = 40_000  # of the 48 KiB that a block has without asking for more


def converted(of: Layout, alike: Layout, memory: str = "") -> Layout:
    """The layout of a view in ``memory`` (its array's where it is the array itself, else global) of an array that is
    stored as ``of``; ``alike`` has what the view chooses, and all else as the array has it."""
    if (
        replace(alike, data=of.data, memory=of.memory, group=of.group, constant_offset=of.constant_offset)
        == of
    ):
        return replace(of, data=alike.data, memory=memory or of.memory)
    # A scale that the host found in an input is not known to a kernel that writes.
    storage = None if alike.stored_scales else alike.storage
    return replace(
        alike, memory=memory or "global", dims="1d", group=(1, 0), constant_offset=0, storage=storage
    )


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
