"""A worker's results and the way to the host: copies of what lies plainly on the device, and the rest by its layout."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.backends.outlet import Copy, Outlet
from autotune.errors import FamilyError
from autotune.execution import Execution
from autotune.layout import Layout
from autotune.spread_memory import Memory
from autotune.spread_plan import Chunk, Units
from autotune.ways import is_reordered

__all__ = ["Results", "rows_of"]


class Results:
    """Of ``execution``, which runs ``units``; they go to ``memory`` in the ``shared`` file. ``sizes`` are the extents'.
    ``are_streamed`` says that all of a chunk's results may leave as soon as it is done.

    Raises FamilyError when an order policy moves the units' own extent.
    """

    def __init__(
        self,
        execution: Execution,
        units: Units,
        memory: Memory,
        shared: NDArray[np.uint8],
        sizes: Mapping[str, int],
    ) -> None:
        self._execution, self._units, self._sizes = execution, units, sizes
        self._sums = {name: place.of(shared) for name, place in memory.sums.items()}
        self._parts = {name: place.of(shared).reshape(-1) for name, place in memory.parts.items()}
        self._rows = {name: self._rows_of_parts(name, place.shape) for name, place in memory.parts.items()}
        self._rows |= {name: self._plain_rows(name, place.shape) for name, place in memory.sums.items()}
        self.are_streamed = all(self._rows.values()) and not self._sums

    def _rows_of_parts(self, name: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
        layout = self._execution.variant.layouts[name]
        if self._execution.orders.keys() & set(layout.data.shape):
            raise FamilyError(
                f"{name} is written in parts by units, so no order policy may move {', '.join(layout.data.shape)}"
            )
        rows = self._plain_rows(name, shape)
        offsets = self._units.parts[name]
        if rows and rows[0] < rows[1] and np.any(offsets * layout.data.dtype.itemsize % rows[0]):
            return None
        return rows

    def _plain_rows(self, name: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """``rows_of``, where no order policy moves or renumbers anything either."""
        variant = self._execution.variant
        return None if is_reordered(variant, name) else rows_of(variant.layouts[name], shape)

    def pin(self, outlet: Outlet) -> bool:
        """Whether all of the memory could be pinned."""
        arrays = [array for array in (*self._parts.values(), *self._sums.values()) if array.size]
        pinned = [outlet.pin(_bytes(array)) for array in arrays]
        return all(pinned)

    def zero_sums(self) -> None:
        for name in self._sums:
            self._execution.zero(name)

    def copies(self, chunk: Chunk) -> Iterable[Copy]:
        """From the device to the host: a chunk's parts of the outputs that lie plainly."""
        for name, target in self._parts.items():
            low, high = self._range(name, chunk)
            if self._rows[name] and low < high:
                yield self._copy(name, low * target.itemsize, _bytes(target[low:high]))

    def copies_of_sums(self) -> Iterable[Copy]:
        """The same for this worker's sums, whole."""
        for name, own in self._sums.items():
            if self._rows[name]:
                yield self._copy(name, 0, _bytes(own))

    def _copy(self, name: str, low: int, target: NDArray[np.uint8]) -> Copy:
        """The bytes from ``low`` on, counted without padding: whole rows where there is some."""
        placed, rows = self._execution.placed[name], self._rows[name]
        assert rows is not None
        width, pitch = rows
        if width < pitch:
            return Copy(placed, low // width * pitch, width, pitch, target)
        return Copy(placed, low, target.size, target.size, target)

    def restore(self, chunks: Sequence[Chunk]) -> None:
        """What no copy takes to the host: these chunks' parts, and this worker's sums."""
        for name, target in self._parts.items():
            if self._rows[name] is None:
                whole = self._restored(name).reshape(-1)
                for low, high in (self._range(name, chunk) for chunk in chunks):
                    target[low:high] = whole[low:high]
        for name, own in self._sums.items():
            if self._rows[name] is None:
                own[...] = self._restored(name)

    def _range(self, name: str, chunk: Chunk) -> tuple[int, int]:
        offsets = self._units.parts[name]
        return int(offsets[chunk.first]), int(offsets[chunk.first + chunk.count])

    def _restored(self, name: str) -> NDArray[Any]:
        shape = self._execution.variant.family.data[name].shape
        return self._execution.restore(name, tuple(self._sizes[extent] for extent in shape))


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Its memory."""
    return array.reshape(-1).view(np.uint8)


def rows_of(layout: Layout, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """(bytes in a row, bytes from one row to the next) of a canonical array of ``shape`` as it lies on a device, or
    None when it does not lie in the canonical order."""
    plain = (
        layout.dims == "1d"
        and layout.axes == tuple(range(len(shape)))
        and not layout.packing
        and layout.group == (1, 0)
        and (layout.lanes == 1 or (layout.lanes == 0 and layout.parts == 1))
    )
    if not plain or not prod(shape):
        return None
    width = shape[-1] * layout.value_bytes
    return width, -(-shape[-1] // layout.padding) * layout.padding * layout.value_bytes
