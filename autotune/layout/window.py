"""Arrays in constant memory: where each begins there, and one that is taken a window at a time: where it is cut, and
how a device holds the windows.

Each window is laid out for itself, padded with zeros to the size of a whole one, so that one address formula serves
all of them. All windows lie one behind the other in the device's memory; a plan copies them to constant memory in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.hardware import Limits
from autotune.layout.layout import Layout
from autotune.layout.stored import Stored

_ALIGNMENT = 256  # bytes: where a window begins in the device's memory
_TEXEL = 16  # bytes of the widest: where an array begins in constant memory


@dataclass(frozen=True)
class Window:
    """Elements ``first`` .. ``first + count - 1`` of the windowed extent; ``begin`` is where their bytes lie in the
    copy on the device, ``stored`` how they lie in constant memory."""

    first: int
    count: int
    begin: int
    stored: Stored


def constant_places(layouts: Mapping[str, Layout], sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """(where it begins, the most it may take), in bytes, of each array in constant memory. The places are compiled in,
    for every input alike, so what is known counts: each array's ``constant_bytes``, and where these are too much
    together, its size where ``sizes`` (of the extents that no input changes) give it. Those of which something is known
    are served first, the smallest ahead; what is left is divided evenly among the others."""
    there = {name: layout for name, layout in layouts.items() if layout.memory == "constant"}
    most = {name: layout.data.constant_bytes for name, layout in there.items()}
    whole = Limits().constant_bytes
    if sum(map(_round_up_to_texel, most.values())) > whole:
        for name, layout in there.items():
            if sizes.keys() >= set(layout.data.shape):
                size = layout.room(layout.data.shape_for(sizes)).nbytes
                most[name] = min(most[name], size)
    parts, left = {}, whole
    unknown = sum(size >= whole for size in most.values())
    for name in sorted(most, key=most.__getitem__):
        share = left if most[name] < whole else left // unknown // _TEXEL * _TEXEL
        unknown -= most[name] >= whole
        parts[name] = min(most[name], share)
        left -= _round_up_to_texel(parts[name])
    places, offset = {}, 0
    for name in there:
        places[name] = offset, parts[name]
        offset += _round_up_to_texel(parts[name])
    return places


def _round_up_to_texel(size: int) -> int:
    return -(-size // _TEXEL) * _TEXEL


def limit_shape(layout: Layout, extent: str, shape: tuple[int, ...], limits: Limits) -> tuple[int, ...]:
    """As much of an array of ``shape`` as a kernel sees at once: all of it, but no more than fits where it is in
    constant memory and windowed along ``extent`` (one element, where not even that fits; an empty extent is none)."""
    if layout.memory != "constant" or not extent:
        return shape
    axis = layout.data.shape.index(extent)
    most = min(layout.data.constant_bytes, limits.constant_bytes - layout.constant_offset)

    def fits(count: int) -> bool:
        return layout.room((*shape[:axis], count, *shape[axis + 1 :])).nbytes <= most

    low, high = 1, shape[axis]  # low is taken to fit; the room grows with the count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return (*shape[:axis], low, *shape[axis + 1 :])


def steps(
    layouts: Mapping[str, Layout], windowed: Mapping[str, str], sizes: Mapping[str, int], limits: Limits
) -> dict[str, int]:
    """Return the elements in a window by extent: as many as the most demanding array that is ``windowed`` (name:
    extent) along it allows. Extents without an array in constant memory are left out."""
    by_extent: dict[str, int] = {}
    for name, extent in windowed.items():
        layout = layouts[name]
        if layout.memory == "constant":
            count = limit_shape(layout, extent, layout.data.shape_for(sizes), limits)[
                layout.data.shape.index(extent)
            ]
            by_extent[extent] = min(count, by_extent.get(extent, count))
    return by_extent


def cut(layout: Layout, extent: str, array: NDArray[Any], step: int) -> tuple[Stored, tuple[Window, ...]]:
    """What goes to the device's memory (``array`` in windows of ``step`` along ``extent``), and the windows."""
    axis = layout.data.shape.index(extent)
    length = array.shape[axis]
    whole = layout.room((*array.shape[:axis], step, *array.shape[axis + 1 :]))
    stride = -(-whole.nbytes // _ALIGNMENT) * _ALIGNMENT
    buffer = np.zeros(-(-length // step) * stride, np.uint8)
    windows = []
    for number, first in enumerate(range(0, length, step)):
        piece = np.take(array, np.arange(first, min(first + step, length)), axis)
        count = piece.shape[axis]
        gap = [(0, step - count if other == axis else 0) for other in range(array.ndim)]
        stored = layout.apply(np.pad(piece, gap) if count < step else piece)
        assert stored.buffer is not None
        buffer[number * stride : number * stride + stored.nbytes] = stored.buffer
        extents = layout.extents(piece.shape)
        windows.append(Window(first, count, number * stride, replace(stored, buffer=None, extents=extents)))
    everything = replace(whole, buffer=buffer, nbytes=buffer.size, memory="global", plane=None, texel_bytes=1)
    return everything, tuple(windows)
