"""Reference of the recursive filter. Its inputs are plain arrays, which a workload file declares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64, all lines at a time; shares nothing with the kernel."""
    axis, share = 1 if options["direction"] == "down" else 2, float(np.float32(options["smooth"]))
    lines = np.moveaxis(arrays["source"].astype(np.float64), axis, 0).copy()
    for line in (lines, lines[::-1]):
        for i in range(1, len(line)):
            line[i] = line[i - 1] + share * (line[i] - line[i - 1])
    return {"smoothed": np.moveaxis(lines, 0, axis).astype(np.float32)}
