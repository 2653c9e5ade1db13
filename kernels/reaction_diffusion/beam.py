"""The beam's Gaussian, to the bit as the kernels compute it (medium.cuh: ``gaussian``)."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["gaussian_factors", "rate_of"]

Floats = NDArray[np.float32]


def rate_of(radius: float) -> float:
    """sqrt(2) / radius: exp(-(rate * distance)^2) is exp(-2 distance^2 / radius^2), 1/e^2 at ``radius``, both in
    lattice points; rounded to a float32 (the intensity of a TEM00 beam: Siegman, Lasers, chapter 17)."""
    return float(np.float32(np.sqrt(2.0) / radius))


def gaussian_factors(count: int, centre: float, rate: float) -> Floats:
    """The factor of points 0..count-1 along one axis, float32. Every operation is one float32 multiplication or
    addition in the kernels' order, so the bits are theirs."""
    one, t = np.float32(1), (np.arange(count, dtype=np.float32) - np.float32(centre)) * np.float32(rate)
    y = t * t * np.float32(1.44269504)
    inside = y < np.float32(126)
    y = np.where(inside, y, np.float32(0))
    whole = y.astype(np.int32)
    z = (y - whole.astype(np.float32)) * np.float32(-0.693147181)
    series = one + z * (one / np.float32(7))
    for n in range(6, 0, -1):
        series = one + z * series * (one / np.float32(n))
    power = ((127 - whole) << 23).astype(np.int32).view(np.float32)
    return np.where(inside, series * power, np.float32(0)).astype(np.float32)
