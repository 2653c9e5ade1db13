"""order and grouping: the two layouts that concern several arrays at once.

An order permutes an index space; every array over it moves and every link into it is renumbered. A group
interleaves arrays over one index space in one buffer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.data import Data
from autotune.errors import WorkloadError
from autotune.layout import Layout, Stored

__all__ = ["merged", "reordered", "restored"]


def reordered(data: Data, array: NDArray[Any], orders: Mapping[str, NDArray[np.integer]]) -> NDArray[Any]:
    """``array`` with each index space in ``orders`` permuted, and links into those spaces renumbered.

    ``orders[space][new] = old``. A link value outside the space (a null) stays as it is.
    """
    for axis, space in enumerate(data.shape):
        if space in orders:
            array = array.take(orders[space], axis=axis)
    for field in data.fields:
        if field.link in orders:
            array = array.copy()
            _renumber(array[field.name] if data.record else array, np.argsort(orders[field.link]))
    return array


def restored(data: Data, array: NDArray[Any], orders: Mapping[str, NDArray[np.integer]]) -> NDArray[Any]:
    """The inverse of ``reordered``: index spaces back in place, links back to the old numbers."""
    for axis, space in enumerate(data.shape):
        if space in orders:
            array = array.take(np.argsort(orders[space]), axis=axis)
    for field in data.fields:
        if field.link in orders:
            array = array.copy()
            _renumber(array[field.name] if data.record else array, np.asarray(orders[field.link]))
    return array


def _renumber(links: NDArray[Any], numbers: NDArray[np.integer]) -> None:
    """Replace each link by ``numbers[link]`` in place; a value outside the space (a null) stays."""
    inside = (links >= 0) & (links < len(numbers))
    links[inside] = numbers[links[inside]]


def merged(layouts: Sequence[Layout], arrays: Sequence[NDArray[Any]]) -> list[Stored]:
    """Store arrays of one index space in one buffer (grouping: merged); every Stored shares it.

    The layouts must be alike but for their place in the group. Raises WorkloadError when values differ in size.
    """
    if len({(layout.value_bytes, layout.texel_bytes) for layout in layouts}) != 1:
        sizes = {layout.data.name: layout.value_bytes for layout in layouts}
        raise WorkloadError(f"grouping merged needs records of one size, these have {sizes} bytes")
    buffer = np.zeros(layouts[0].room(arrays[0].shape).nbytes, np.uint8)
    return [layout.apply(array, into=buffer) for layout, array in zip(layouts, arrays, strict=True)]
