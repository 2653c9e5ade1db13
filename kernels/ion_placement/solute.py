"""The map that ions are placed on: the potential of a structure, with the points near its atoms excluded."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["excluded_near"]


def excluded_near(
    potential: NDArray[np.float64], atoms: NDArray[np.void], spacing: float, distance: float
) -> NDArray[np.float64]:
    """``potential`` (slices, rows, columns) with NaN at the points within ``distance`` angstrom of an atom; ``atoms``
    are records of x, y, z from the lattice's origin."""
    made = potential.copy()
    slices, rows, columns = made.shape
    centres = np.stack([atoms[name].astype(np.float64) for name in "zyx"], axis=1)
    low = np.maximum(np.ceil((centres - distance) / spacing), 0).astype(int)
    high = (
        np.minimum(np.floor((centres + distance) / spacing), np.array([slices, rows, columns]) - 1).astype(
            int
        )
        + 1
    )
    for (z, y, x), (k0, j0, i0), (k1, j1, i1) in zip(
        centres.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        if k0 < k1 and j0 < j1 and i0 < i1:
            away = (
                ((np.arange(k0, k1) * spacing - z) ** 2)[:, None, None]
                + ((np.arange(j0, j1) * spacing - y) ** 2)[:, None]
                + (np.arange(i0, i1) * spacing - x) ** 2
            )
            made[k0:k1, j0:j1, i0:i1][away <= distance * distance] = np.nan
    return made
