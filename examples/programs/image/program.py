"""The same pipeline by numpy and scipy; its image is a plain array, which a workload file declares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """``sharp`` in float64, by scipy's filters; every batch gives the same."""
    image, share, reach = arrays["image"].astype(np.float64), scalars["smooth"], int(scalars["reach"])
    smoothed = image
    for axis in (1, 2):
        for _ in range(2):  # forwards, then backwards: each begins with the value at its end
            first = np.take(smoothed, [0], axis) * (1 - share)
            smoothed = signal.lfilter([share], [1, share - 1], smoothed, axis, first)[0]
            smoothed = np.flip(smoothed, axis)
    mean = ndimage.uniform_filter(smoothed, (0, 2 * reach + 1, 2 * reach + 1), mode="nearest")
    return {"sharp": image + scalars["amount"] * (image - mean)}
