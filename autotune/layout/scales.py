"""The scales of numbers that are stored as scaled integers: compiled in, or behind the elements in the same buffer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout.storage import Storage

_BYTES = 4  # of a float, behind the elements


@dataclass(frozen=True)
class Scales:
    """Of an array whose values are declared from ``low`` to ``high``, None where nothing is, in texels of so many
    bytes. ``line`` is its buffer in texels, the first ``texels`` of which are elements; ``shape`` is canonical."""

    storage: Storage
    low: float | None
    high: float | None
    texel_bytes: int

    @cached_property
    def fixed(self) -> NDArray[np.float32] | None:
        """The scale of the declared range, where that gives it; then none is stored."""
        if self.storage.by_row or self.low is None or self.high is None:
            return None
        return self.storage.scale_for(max(abs(self.low), abs(self.high)))

    def tail(self, texels: int, shape: Sequence[int]) -> tuple[int, int, int]:
        """Where stored ones lie (storage.cuh: scale_behind): (texel at which the first begins, how many there are,
        texels from one to the next)."""
        unit = max(1, _BYTES // self.texel_bytes)
        return -(-texels // unit) * unit, shape[0] if self.storage.by_row else 1, unit

    def room(self, line: NDArray[Any], texels: int, shape: Sequence[int]) -> NDArray[np.float32]:
        """The stored ones, one each, to read or write."""
        begin, count, unit = self.tail(texels, shape)
        return line[begin : begin + count * unit].view(np.float32).reshape(count, -1)[:, 0]

    def of(self, line: NDArray[Any], texels: int, shape: Sequence[int]) -> NDArray[np.float32]:
        """Those that hold, stored or not."""
        return self.room(line, texels, shape) if self.fixed is None else self.fixed.reshape(1)

    @property
    def cpp(self) -> str:
        if self.fixed is not None:
            return f"FixedScale<0x{int(self.fixed.view(np.uint32)):08x}u>"
        return "RowScale" if self.storage.by_row else "ArrayScale"
