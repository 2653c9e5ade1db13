"""Reference of the stencil family. Its inputs are plain arrays, which a workload file declares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """One step in float64 by shifted slices of the lattice with a rim of zeros; shares nothing with the kernel."""
    rim = np.pad(arrays["field"].astype(np.float64), 1)
    inner = slice(1, -1)
    sides = sum(np.roll(rim, shift, axis)[inner, inner, inner] for axis in range(3) for shift in (-1, 1))
    result = options["centre"] * rim[inner, inner, inner] + options["side"] * sides
    return {"result": result.astype(np.float32)}
