"""Work-units in tiles: some bras and some kets of a run of pairs. The same arithmetic as in tiles.cuh."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .expansion import Run, runs_of

__all__ = ["PAIR_RUN", "Shape", "runs_array"]

PAIR_RUN = np.dtype([(name, "u4") for name in ("first_bra", "bras", "first_ket", "kets", "count", "each")])

_PRIMITIVE_PAIRS = 128  # of the bras of a tile, at once
_COMPONENTS = 1296  # of a ket with all bras of a tile, where they are more than one


def runs_array(counts: NDArray[Any]) -> NDArray[Any]:
    """Every work-unit of pairs with so many primitive pairs each, once they are sorted: records as in tiles.cuh, the
    runs with the most components first."""
    runs = runs_of(np.sort(counts).astype(np.int64))
    return np.array(
        [(run.first_bra, run.bras, run.first_ket, run.kets, run.count, run.each) for run in runs], PAIR_RUN
    )


@dataclass(frozen=True)
class Shape:
    """What a block has: ``bras`` at most, with ``block_size / split`` kets."""

    block_size: int
    split: int
    bras: int

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> "Shape":
        return cls(names["block_size"], names["split"], names["bras"])

    @property
    def width(self) -> int:
        return self.block_size // self.split

    def each(self, run: Run) -> int:
        """Bras of a tile of a run."""
        bras = self.bras
        while bras > 1 and (bras * run.count > _PRIMITIVE_PAIRS or bras * run.each > _COMPONENTS):
            bras //= 2
        return bras

    def tiles(self, run: Run) -> int:
        """Tiles of a run."""
        each = self.each(run)
        rows = -(-run.bras // each)
        if run.kets:
            return rows * -(-run.kets // self.width)
        together = self.width // each
        groups, rest = divmod(rows, together)
        return together * (groups * (groups + 1) // 2) + rest * (groups + 1)
