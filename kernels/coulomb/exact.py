"""The potential in float64, in all threads: what the kernels are compared with. Shares nothing with them.

By numpy; a large map by the same sum in C++ (exact.cpp), where there is a compiler: it takes a tenth of the time.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import c_double, c_long, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import CompilerError, library

__all__ = ["SOFTENING", "potential", "potential_at"]

SOFTENING = 1e-8  # square angstrom; chemistry/charges.cuh says why
_ATOMS_AT_ONCE = 256  # so that a row of distances stays in a core's cache
_COMPILED_FROM = 1_000_000_000  # evaluations; fewer take numpy a few seconds

Points = NDArray[np.float64]


def potential(atoms: NDArray[np.void], counts: tuple[int, int, int], spacing: float) -> Points:
    """(nz, ny, nx) float64: the sum of q / sqrt(r * r + SOFTENING); ``atoms`` as the kernel takes them, ``counts`` nx,
    ny, nz."""
    made = np.zeros(counts[::-1])
    place = [atoms[name].astype(np.float64) for name in "xyzq"]
    step = float(np.float32(spacing))
    fill = _by_numpy(place, step, made)
    if made.size * len(atoms) >= _COMPILED_FROM:
        with suppress(CompilerError):
            fill = _by_compiler(place, step, made)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(fill, range(len(made))))
    return made


def _by_numpy(place: list[Points], step: float, made: Points) -> Callable[[int], None]:
    """What fills a slice of ``made`` by its index. ``place``: x, y, z, q (atoms,)."""
    x, y, z, q = place
    _, ny, nx = made.shape

    def fill(k: int) -> None:
        dz2 = (step * k - z) ** 2 + SOFTENING
        # One room for all distances: the system's time for memory adds up.
        room = np.empty((min(len(q), _ATOMS_AT_ONCE), nx))
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

    return fill


def _by_compiler(place: list[Points], step: float, made: Points) -> Callable[[int], None]:
    """The same. Raises CompilerError."""
    source = Path(__file__).with_name("exact.cpp")
    potential_slice = library(source, arithmetic=True, potential_slice=None).potential_slice
    x, y, z, q = (c_void_p(array.ctypes.data) for array in place)
    nx, ny = c_long(made.shape[2]), c_long(made.shape[1])

    def fill(k: int) -> None:
        squares = np.empty(made.shape[2])
        potential_slice(
            c_long(len(place[0])), x, y, z, q, nx, ny, c_double(step), c_double(step * k), c_double(SOFTENING),
            c_void_p(squares.ctypes.data), c_void_p(made[k].ctypes.data),
        )  # fmt: skip

    return fill


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
