"""order and grouping: the two layouts that concern several arrays at once.

An order permutes an index space; every array over it moves and every link into it is renumbered. A group
interleaves arrays over one index space in one buffer.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import FamilyError, WorkloadError
from autotune.layout.arrays import Data
from autotune.layout.layout import Layout
from autotune.layout.stored import Stored

_PART = 1 << 18  # elements that one thread moves at a time


@dataclass(frozen=True, eq=False)
class Order:
    """A permutation of an index space and its inverse: ``old[new]`` and ``new[old]``, both of the space's extent."""

    old: NDArray[np.integer]
    new: NDArray[np.integer]

    @staticmethod
    def make(permutation: Any, extent: int, where: str = "order") -> "Order":
        """From ``permutation[new] = old``. Raises FamilyError when it is no permutation of ``extent`` numbers."""
        old: Any = np.asarray(permutation)
        if old.shape != (extent,) or old.dtype.kind not in "iu":
            raise FamilyError(
                f"{where}: {extent} whole numbers needed, the index that comes first, then the second, ...; found "
                f"{old.dtype} of shape {old.shape}"
            )
        new: Any = np.full(extent, -1, np.int64 if extent > np.iinfo(np.int32).max else np.int32)
        if extent and int(old.min()) >= 0 and int(old.max()) < extent:
            new[old] = np.arange(extent, dtype=new.dtype)
        if extent and int(new.min()) < 0:
            raise FamilyError(f"{where}: {_explain_no_permutation(old, extent)}")
        return Order(old, new)


def _explain_no_permutation(old: NDArray[np.integer], extent: int) -> str:
    """What is wrong with what names no index of ``extent`` once."""
    rule = f"an order is every number from 0 to {extent - 1} once, permutation[new] = old"
    astray = np.flatnonzero((old < 0) | (old >= extent))
    if astray.size:
        return f"{int(old[astray[0]])} at place {int(astray[0])} is none of them; {rule}"
    times = np.bincount(old, minlength=extent)
    return f"{int(times.argmax())} is in it {int(times.max())} times and {int(times.argmin())} is missing; {rule}"


def reorder(data: Data, array: NDArray[Any], orders: Mapping[str, Order]) -> NDArray[Any]:
    """``array`` with each index space in ``orders`` permuted, and links into those spaces renumbered.

    A link value outside the space (a null) stays as it is.
    """
    moved = array
    for axis, space in enumerate(data.shape):
        if space in orders:
            moved = _take(moved, orders[space].old, axis)
    return _renumber_links(
        data, moved, {space: order.new for space, order in orders.items()}, moved is not array
    )


def restore(data: Data, array: NDArray[Any], orders: Mapping[str, Order]) -> NDArray[Any]:
    """The inverse of ``reorder``: index spaces back in place, links back to the old numbers."""
    return reorder(data, array, {space: Order(order.new, order.old) for space, order in orders.items()})


def _take(array: NDArray[Any], places: NDArray[np.integer], axis: int) -> NDArray[Any]:
    """``array.take(places, axis)``. Memory is what it waits for, so several threads move a large array."""
    if axis or len(places) <= _PART:
        return array.take(places, axis=axis)
    moved = np.empty((len(places), *array.shape[1:]), array.dtype)

    def move(part: slice) -> None:
        moved[part] = array[places[part]]  # much faster than take, for records

    _work_in_parts(len(places), move)
    return moved


def _renumber_links(
    data: Data, array: NDArray[Any], numbers: Mapping[str, NDArray[np.integer]], is_own: bool
) -> NDArray[Any]:
    """``array`` with each link into a space of ``numbers`` replaced by ``numbers[space][link]``; a value outside
    the space stays. The caller's array is copied unless it ``is_own``."""
    for field in data.fields:
        if field.link in numbers:
            if not is_own:
                array, is_own = array.copy(), True
            _renumber(array[field.name] if data.record else array, numbers[field.link])
    return array


def _renumber(links: NDArray[Any], known: NDArray[np.integer]) -> None:
    def replace_in(part: slice) -> None:
        some = links[part]
        if some.size and int(some.min()) >= 0 and int(some.max()) < len(known):
            some[...] = known[some]
        else:
            inside = (some >= 0) & (some < len(known))
            some[inside] = known[some[inside]]

    _work_in_parts(len(links), replace_in)


def _work_in_parts(count: int, work: Callable[[slice], None]) -> None:
    """``work`` on the elements 0 to ``count`` in parts, on several threads where there are several parts."""
    parts = [slice(begin, min(count, begin + _PART)) for begin in range(0, count, _PART)]
    if len(parts) < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(min(len(parts), 8, len(os.sched_getaffinity(0)))) as threads:
        list(threads.map(work, parts))


def merge(layouts: Sequence[Layout], arrays: Sequence[NDArray[Any]]) -> list[Stored]:
    """Store arrays of one index space in one buffer (grouping: merged); every Stored shares it.

    The layouts must be alike but for their place in the group. Raises WorkloadError when values differ in size.
    """
    if len({(layout.value_bytes, layout.texel_bytes) for layout in layouts}) != 1:
        sizes = {layout.data.name: layout.value_bytes for layout in layouts}
        raise WorkloadError(f"grouping merged needs records of one size, these have {sizes} bytes")
    line = layouts[0].line(arrays[0].shape)
    for layout, array in zip(layouts, arrays, strict=True):
        layout.write(array, line)
    buffer = layouts[0].plane(line)
    return [
        replace(layout.room(array.shape), buffer=buffer)
        for layout, array in zip(layouts, arrays, strict=True)
    ]


def find_gaps(layouts: Sequence[Layout], shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The runs of bytes (begin, end) that are no element's, where arrays of canonical ``shape`` are stored together as
    ``layouts`` say: padding, and what is left of the last run, row or block. A packed value is whole."""
    first = layouts[0]
    if first.room(shape).texels == math.prod(first.extents(shape)) * first.group[0] * first.parts:
        return ()
    line = first.line(shape)
    for layout in layouts:
        layout.mark(shape, line)
    free = np.flatnonzero(np.diff((first.plane(line) == 0).astype(np.int8), prepend=0, append=0))
    return tuple(zip(free[::2].tolist(), free[1::2].tolist(), strict=True))
