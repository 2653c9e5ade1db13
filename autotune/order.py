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

__all__ = ["merged", "reordered"]


def reordered(data: Data, array: NDArray[Any], orders: Mapping[str, NDArray[np.integer]]) -> NDArray[Any]:
    """``array`` with each index space in ``orders`` permuted, and links into those spaces renumbered.

    ``orders[space][new] = old``. A link value outside the space (a null) stays as it is.
    """
    for axis, space in enumerate(data.shape):
        if space in orders:
            array = array.take(orders[space], axis=axis)
    for field in data.fields:
        if field.link in orders:
            order = orders[field.link]
            renumber = np.empty(len(order), np.int64)
            renumber[order] = np.arange(len(order))
            array = array.copy()
            column = array[field.name] if data.record else array
            inside = (column >= 0) & (column < len(order))
            column[inside] = renumber[column[inside]]
    return array


def merged(layouts: Sequence[Layout], arrays: Sequence[NDArray[Any]]) -> list[Stored]:
    """Store arrays of one index space in one buffer (grouping: merged); every Stored shares it.

    The layouts must be alike but for their place in the group. Raises WorkloadError when values differ in size.
    """
    if len({(layout.value_bytes, layout.texel_bytes) for layout in layouts}) != 1:
        sizes = {layout.data.name: layout.value_bytes for layout in layouts}
        raise WorkloadError(f"grouping merged needs records of one size, these have {sizes} bytes")
    buffer = np.zeros(layouts[0].room(arrays[0].shape).nbytes, np.uint8)
    return [layout.apply(array, into=buffer) for layout, array in zip(layouts, arrays, strict=True)]
