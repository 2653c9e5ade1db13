"""The potential in float64 by numpy, in all threads: what the kernels are compared with. Shares nothing with them."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SOFTENING", "potential", "potential_at"]

SOFTENING = 1e-8  # square angstrom; atom.cuh says why
_ATOMS_AT_ONCE = 256  # so that a row of distances stays in a core's cache

Points = NDArray[np.float64]


def potential(atoms: NDArray[np.void], counts: tuple[int, int, int], spacing: float) -> Points:
    """(nz, ny, nx) float64: the sum of q / sqrt(r * r + SOFTENING); ``atoms`` as the kernel takes them, ``counts`` nx,
    ny, nz."""
    nx, ny, nz = counts
    x, y, z, q = (atoms[name].astype(np.float64) for name in "xyzq")
    step = float(np.float32(spacing))
    made = np.zeros((nz, ny, nx))

    def rows(k: int) -> None:
        dz2 = (step * k - z) ** 2 + SOFTENING
        room = np.empty(
            (min(len(q), _ATOMS_AT_ONCE), nx)
        )  # one for all: the system's time for memory adds up
        for first in range(0, len(q), _ATOMS_AT_ONCE):
            part = slice(first, first + _ATOMS_AT_ONCE)
            dx2 = (step * np.arange(nx) - x[part, None]) ** 2
            terms = room[: len(dx2)]
            for j in range(ny):
                dyz2 = (step * j - y[part]) ** 2 + dz2[part]
                np.add(dx2, dyz2[:, None], out=terms)
                np.sqrt(terms, out=terms)
                np.divide(q[part, None], terms, out=terms)
                made[k, j] += terms.sum(axis=0)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(rows, range(nz)))
    return made


def potential_at(
    atoms: NDArray[np.void], indices: NDArray[np.integer], spacing: float
) -> tuple[Points, Points]:
    """At the points ``indices`` (points, 3: slice, row, column): V, and the sum of |q| / r, which bounds what rounding
    can do to it."""
    step = float(np.float32(spacing))
    values, sizes = np.empty(len(indices)), np.empty(len(indices))
    position = np.stack([atoms[name].astype(np.float64) for name in "zyx"], axis=1)
    q = atoms["q"].astype(np.float64)
    for n, index in enumerate(indices):
        distance = np.sqrt(((step * index - position) ** 2).sum(axis=1) + SOFTENING)
        values[n], sizes[n] = (q / distance).sum(), (np.abs(q) / distance).sum()
    return values, sizes


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """For family.py: ``options`` has the scalars too."""
    counts = int(options["nx"]), int(options["ny"]), int(options["nz"])
    made = potential(arrays["atoms"], counts, float(options["spacing"]))
    return {"potential": made.astype(np.float32)}
