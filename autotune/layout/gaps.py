"""What lies between the elements of stored arrays."""

import math
from collections.abc import Sequence

import numpy as np

from autotune.layout.layout import Layout


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
