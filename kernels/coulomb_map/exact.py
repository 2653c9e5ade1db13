"""What a map is compared with: the coulomb family's float64 potential, of a large map at random points."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import family_module

__all__ = ["least_size", "potential_at", "reference"]

_WHOLE = 20_000_000_000  # evaluations; of a larger map some points are compared
_POINTS = 1024


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """For family.py: ``options`` has the scalars too. Points that are not compared are NaN. Of the bounds and the share
    it gives half of what is asked, which with a tolerance of as much stands for 0 to what is asked."""
    counts = int(options["nx"]), int(options["ny"]), int(options["nz"])
    atoms, spacing, accuracy = arrays["atoms"], float(options["spacing"]), float(options["accuracy"])
    values, sizes = _sums(atoms, counts, spacing, options["bounds"] == "points")
    bound = np.zeros((1, 1, 1)) if sizes is None else accuracy / 2 * sizes
    return {
        "potential": values.astype(np.float32),
        "bound": bound.astype(np.float32),
        "share": np.full(1, 0.5, np.float32),
    }


def _sums(
    atoms: NDArray[np.void], counts: tuple[int, int, int], spacing: float, with_sizes: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The potential, and where it is asked for the sum of |q| / r."""
    exact = family_module("coulomb", "exact")
    shape = counts[::-1]
    if len(atoms) * np.prod(counts, dtype=np.int64) <= _WHOLE:
        values = exact.potential(atoms, counts, spacing)
        return values, exact.potential(_sizes(atoms), counts, spacing) if with_sizes else None
    chosen = np.random.default_rng(0).integers(0, shape, (_POINTS, 3))
    chosen[0], chosen[1] = 0, np.array(shape) - 1
    values, sizes = np.full(shape, np.nan), np.full(shape if with_sizes else (1, 1, 1), np.nan)
    at = tuple(chosen.T)
    values[at], some = potential_at(atoms, chosen, spacing)
    if not with_sizes:
        return values, None
    sizes[at] = some
    return values, sizes


def potential_at(
    atoms: NDArray[np.void], indices: NDArray[np.integer], spacing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As the coulomb family's, in all threads: V and the sum of |q| / r at points (slice, row, column)."""
    at = family_module("coulomb", "exact").potential_at
    parts = np.array_split(indices, max(1, len(indices) // 16))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        made = list(threads.map(lambda part: at(atoms, part, spacing), parts))
    values, sizes = zip(*made, strict=True)
    return np.concatenate(values), np.concatenate(sizes)


def _sizes(atoms: NDArray[np.void]) -> NDArray[np.void]:
    made = atoms.copy()
    made["q"] = np.abs(atoms["q"])
    return made


def least_size(atoms: NDArray[np.void], counts: NDArray[np.integer], spacing: float) -> float:
    """No point's sum of |q| / r is less: every atom as far as the corner that is farthest from it."""
    top = (counts - 1) * float(np.float32(spacing))
    square = np.zeros(len(atoms))
    for axis, name in enumerate("xyz"):
        at = atoms[name].astype(np.float64)
        square += np.maximum(np.abs(at), np.abs(top[axis] - at)) ** 2
    return float((np.abs(atoms["q"].astype(np.float64)) / np.sqrt(square + 1e-8)).sum())
