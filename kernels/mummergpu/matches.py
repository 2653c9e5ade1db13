"""The matches of a block of reads, as the kernels find them and the reference does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mems"]


@dataclass(frozen=True, eq=False)
class Mems:
    """One match per index. `reads` ascends and counts the reads of the block; `positions` are those of the
    reference's codes, `starts` in the read (or its reverse complement). All from 0, of any integer dtype."""

    reads: NDArray[np.integer]
    positions: NDArray[np.integer]
    starts: NDArray[np.integer]
    lengths: NDArray[np.integer]
