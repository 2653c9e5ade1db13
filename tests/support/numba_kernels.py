"""Kernels of Numba that tests tune; its simulator runs them without a GPU (NUMBA_ENABLE_CUDASIM=1)."""

import numpy as np
from numba import cuda

TILE = 4


@cuda.jit
def scaled(x, y, factor):  # type: ignore[no-untyped-def]
    """A tile of shared memory whose size is a constant of this module."""
    tile = cuda.shared.array(TILE, np.float32)
    place = cuda.threadIdx.x % TILE
    index = cuda.grid(1)
    if index < x.size:
        tile[place] = factor
        y[index] = x[index] * tile[place]
