"""The pieces of one call that several devices can share, as a family's ``units`` function returns them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import FamilyError, UnknownName


@dataclass(frozen=True)
class Units:
    """The units of one call. ``costs`` (units,) are estimates in any unit; ``run(execution, first, count)`` queues the
    launches of ``count`` units in a row, at most ``batch`` of them.

    ``parts`` has for an output the elements of it, flattened, that each unit writes: unit u those from
    ``parts[name][u]`` to ``parts[name][u + 1]``. ``sums`` are outputs to which units add. ``groups`` (units,) are
    numbers that never decrease: a chunk does not reach from one group into the next.
    """

    costs: NDArray[np.float64]
    run: Callable[[Any, int, int], None]
    batch: int = 1
    parts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    sums: tuple[str, ...] = ()
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.costs)

    def check(self, outputs: Mapping[str, int], where: str) -> None:
        """Raise FamilyError unless this describes ``outputs`` (name: elements) whole."""

        def refuse(what: str) -> None:
            raise FamilyError(f"{where}: units: {what}")

        n = len(self)
        if not n or not np.isfinite(self.costs).all() or float(np.min(self.costs)) < 0:
            refuse(f"costs has {n} values; at least one is needed, none negative or NaN")
        if self.batch < 1:
            refuse(f"batch is {self.batch}; at least 1 is needed")
        for name in (*self.parts, *self.sums):
            if name not in outputs:
                raise UnknownName("output", name, outputs, f"{where}: units")
        for name in outputs:
            if (name in self.parts) == (name in self.sums):
                refuse(f"output {name} must be in parts or in sums, and not in both")
        for name, offsets in self.parts.items():
            ends = [int(offsets[0]), int(offsets[-1])] if len(offsets) else []
            if len(offsets) != n + 1 or ends != [0, outputs[name]] or np.any(np.diff(offsets) < 0):
                refuse(
                    f"parts[{name!r}] has {len(offsets)} offsets, first and last {ends}; {n + 1} rising ones from 0 "
                    f"to {outputs[name]} are needed"
                )
        if self.groups is not None and (len(self.groups) != n or np.any(np.diff(self.groups) < 0)):
            refuse(f"groups has {len(self.groups)} values; {n} that never decrease are needed")
