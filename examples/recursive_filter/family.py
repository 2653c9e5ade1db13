"""Reference of the recursive_filter family. Its inputs are plain arrays, which a workload file declares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def smoothed(lines: NDArray[np.float64], share: float, passes: int) -> NDArray[np.float64]:
    """Each line along axis 0 smoothed forwards and backwards, so many times: s += share * (x - s)."""
    found = lines.copy()
    for _ in range(passes):
        for line in (found, found[::-1]):
            for i in range(1, len(line)):
                line[i] = line[i - 1] + share * (line[i] - line[i - 1])
    return found


def averaged(image: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """The mean in each point's window, in which what lies outside is the nearest point."""
    side = 2 * reach + 1
    for axis in (1, 2):
        around = [(reach, reach) if each == axis else (0, 0) for each in range(3)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, around, mode="edge"), side, axis)
        image = windows.mean(axis=-1)
    return image


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Columns, then rows, then windows of the image in float64; shares nothing with the kernels."""
    image = arrays["image"].astype(np.float64)
    share, passes = float(np.float32(options["smooth"])), int(options["passes"])
    down = np.moveaxis(smoothed(np.moveaxis(image, 1, 0), share, passes), 0, 1)
    across = np.moveaxis(smoothed(np.moveaxis(down, 2, 0), share, passes), 0, 2)
    return {
        "sharp": (image + options["amount"] * (image - averaged(across, int(options["reach"])))).astype(
            np.float32
        )
    }
