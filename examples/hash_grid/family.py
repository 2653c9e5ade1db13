"""Inputs and reference of the hash_grid family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

POINT = np.dtype([(axis, np.float32) for axis in "xyz"])
FEATURE = np.dtype([("u", np.float32), ("v", np.float32)])
_COARSEST, _FINEST = 16, 2048  # cells along an edge, as in the paper's table 1
_PRIMES = (1, 2654435761, 805459861)
_STEPS = 64  # points of a ray
_PART = 1 << 17  # points at a time

Positions = NDArray[np.float32]


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``points`` points, ``levels`` grids and ``log2_entries``: each level has 2 to that power features, uniform
    between -1 and 1, from ``seed``. Points are uniform in the unit cube; with ``rays: true`` they follow each other
    along rays. Raises WorkloadError for other parameters."""
    unknown = parameters.keys() - {"points", "levels", "log2_entries", "seed", "rays"}
    sizes = [parameters.get(name, 0) for name in ("points", "levels", "log2_entries")]
    if unknown or not all(isinstance(size, int) and 0 < size < 1 << 31 for size in sizes) or sizes[2] > 24:
        raise WorkloadError(
            f"parameters {dict(parameters)} do not make an input: give points, levels and log2_entries, whole numbers "
            "of at least 1, the last at most 24 (with seed, rays)"
        )
    count, levels, log2_entries = sizes
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    table = generator.uniform(-1, 1, (levels, 1 << log2_entries, 2)).astype(np.float32)
    found = (
        _along_rays(generator, count)
        if parameters.get("rays", False)
        else generator.random((count, 3), np.float32)
    )
    return {"points": found.view(POINT).reshape(-1), "table": table.view(FEATURE)[..., 0], **grids(levels)}


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few points: less than a block, one more than one, a single level."""
    rays = parameters.get("rays", False)
    for points, levels in ((1, 1), (127, 3), (257, 5), (513, 2)):
        yield {"points": points, "levels": levels, "log2_entries": 9, "seed": points, "rays": rays}


def grids(levels: int) -> dict[str, NDArray[Any]]:
    """``scale`` (float32) and ``resolution`` (uint32) of so many levels, (levels,): from 16 to 2048 cells along an
    edge, each level finer by the same factor (the paper's equations 2 and 3)."""
    growth = np.exp2(np.arange(levels) * np.log2(_FINEST / _COARSEST) / max(1, levels - 1))
    scale = (_COARSEST * growth - 1).astype(np.float32)
    return {"scale": scale, "resolution": (np.ceil(scale) + 2).astype(np.uint32)}


def _along_rays(generator: np.random.Generator, count: int) -> Positions:
    """``count`` points, float32 (count, 3): each 64 of them from a random place straight to another."""
    rays = -(-count // _STEPS)
    begin, end = generator.random((2, rays, 1, 3))
    share = (np.arange(_STEPS) + 0.5) / _STEPS
    along = (begin + share[:, None] * (end - begin)).reshape(-1, 3)[:count]
    return np.ascontiguousarray(np.minimum(along, np.nextafter(1, 0)), np.float32)


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy, weights and sums in float64."""
    points = arrays["points"].view(np.float32).reshape(-1, 3)
    table = arrays["table"].view(np.float32).reshape(*arrays["table"].shape, 2)
    found = np.empty((len(points), len(table), 2), np.float32)
    for level, (scale, side) in enumerate(zip(arrays["scale"], arrays["resolution"], strict=True)):
        for begin in range(0, len(points), _PART):
            part = slice(begin, begin + _PART)
            found[part, level] = interpolated(table[level], points[part], scale, int(side))
    return {"encoding": found.view(FEATURE)[..., 0]}


def interpolated(
    features: NDArray[np.float32], points: Positions, scale: np.float32, side: int
) -> NDArray[np.float64]:
    """The features (entries, 2) of one level at ``points`` (n, 3): float64 (n, 2)."""
    place = points * scale + np.float32(0.5)
    cell = np.floor(place).astype(np.uint32)
    inside = place.astype(np.float64) - cell
    total = np.zeros((len(points), 2))
    for corner in range(8):
        step = np.array([corner & 1, corner >> 1 & 1, corner >> 2], np.uint32)
        weight = np.where(step == 1, inside, 1 - inside).prod(axis=1)
        total += weight[:, None] * features[_entries(cell + step, side, len(features))]
    return total


def _entries(corners: NDArray[np.uint32], side: int, entries: int) -> NDArray[np.int64]:
    """Which entry each corner (n, 3) of a grid of ``side`` corners along an edge has."""
    if side**3 <= entries:
        strides = np.array([1, side, side * side])
        return np.asarray(corners.astype(np.int64) @ strides)
    hashed = corners * np.array(_PRIMES, np.uint32)
    return np.asarray(np.bitwise_xor.reduce(hashed, axis=1).astype(np.int64) & (entries - 1))
