"""Reference of the sharpening. Its inputs are plain arrays, which a workload file declares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64, windows along one axis and then the other; shares nothing with the kernel."""
    image, mean, reach = (
        arrays["image"].astype(np.float64),
        arrays["smoothed"].astype(np.float64),
        int(options["reach"]),
    )
    for axis in (1, 2):
        around = [(reach, reach) if each == axis else (0, 0) for each in range(3)]
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(mean, around, mode="edge"), 2 * reach + 1, axis
        )
        mean = windows.mean(axis=-1)
    amount = float(np.float32(options["amount"]))
    return {"sharp": (image + amount * (image - mean)).astype(np.float32)}
