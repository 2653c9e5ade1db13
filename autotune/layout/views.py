"""Views: an array read in another way.

A plain view is of a scratch array, and has no memory of its own. It is another accessor onto the array that it is a
view ``of``, with elements of a type of its own, and a texture over that array's memory where a memory policy asks for
one: what earlier launches wrote is read without a copy. A launch that writes the array may not read it through a view
in ``readonly`` or ``texture`` memory, as those reads are not coherent with its writes (CUDA C++ Programming Guide,
"Texture and Surface Memory"). The texture of a view of one extent is linear. That of two extents is a plane with the
view's own rows and columns, so a kernel may ask for indices outside of it: they are clamped to its edges (mapping.cuh:
Coordinates).

A converted view has a layout of its own. What it chooses replaces what its array has, one layout dimension at a time;
``same`` chooses nothing. If its layout is then its array's, the view is the array itself. Otherwise it is a copy, which
a kernel makes by reading through the one accessor and writing through the other (convert.cuh).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autotune.hardware import Limits
from autotune.layout.layout import Layout
from autotune.layout.stored import Stored

SAME = "same"
ALIAS, SEEN, COPIED = "alias", "seen", "copied"
_LINEAR = ("global", "readonly")
_TILE_BYTES = 40_000  # of the 48 KiB that a block has without asking for more


def convert_layout(of: Layout, alike: Layout, memory: str = "") -> Layout:
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


def view_room(layout: Layout, sizes: Mapping[str, Any]) -> Stored:
    """Where the view's elements lie in its array, from the array's begin: rows are ``pitch`` elements apart, or follow
    each other where none is declared. ``sizes`` binds the extents."""
    data = layout.data
    extents = data.shape_for(sizes)
    strides = [1]
    for axis in range(len(extents) - 1, 0, -1):
        is_row = axis == len(extents) - 1
        strides.insert(0, int(sizes[data.pitch]) if is_row and data.pitch else strides[0] * extents[axis])
    reached = 1 + sum((n - 1) * stride for n, stride in zip(extents, strides, strict=True))
    has_plane = layout.memory == "texture" and len(extents) == 2
    return Stored(
        buffer=None,
        nbytes=reached * layout.texel_bytes,
        texel_bytes=layout.texel_bytes,
        memory=layout.memory,
        extents=extents,
        strides=tuple(strides),
        part_stride=reached,
        index_bits=data.index_bits,
        plane=(extents[1], extents[0]) if has_plane else None,
        pitched=has_plane,
        known=layout.known,
    )


def view_refusal(layout: Layout, stored: Stored, of: Stored, limits: Limits) -> str:
    """Why the view does not fit into its array ``of``, or not onto a device with ``limits``; empty when it does."""
    data = layout.data
    if len(stored.extents) > 1 and stored.strides[-2] < stored.extents[-1]:
        return (
            f"{data.name}: rows of {stored.extents[-1]} elements would overlap, {stored.strides[-2]} apart by extent "
            f"{data.pitch}"
        )
    if stored.nbytes > of.nbytes:
        return f"{data.name}: {stored.nbytes} bytes are viewed, and {data.of} has {of.nbytes}"
    pitch = stored.strides[0] * stored.texel_bytes
    if stored.plane and pitch % limits.texture_pitch_bytes:
        return (
            f"{data.name}: rows {pitch} bytes apart, and a texture needs a multiple of {limits.texture_pitch_bytes}; "
            f"round up extent {data.pitch or data.shape[-1]}"
        )
    return stored.explain_refusal(layout.data, limits)
