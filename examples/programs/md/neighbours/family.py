"""Inputs and reference of the neighbour lists."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])
_GRID = (
    1 / 256
)  # coordinates are multiples: squares of distances are then exact in float32, in any order of the sum


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``atoms`` by chance (``seed``) in a box of ``side`` cells of edge 3, with a ``reach`` and ``slots``."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    side = int(parameters["side"])
    positions = np.zeros(int(parameters["atoms"]), POSITION)
    for axis in "xyz":
        positions[axis] = generator.integers(0, int(3 * side / _GRID), len(positions)) * _GRID
    x, y, z = ((positions[axis] / 3).astype(np.int64) for axis in "xyz")
    cell = (z * side + y) * side + x
    begins = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=side**3))])
    return {
        "positions": positions,
        "begins": begins.astype(np.uint32),
        "order": np.argsort(cell, kind="stable").astype(np.uint32),
        "box": 3.0 * side,
        "side": side,
        "reach": float(parameters["reach"]),
        "slots": int(parameters["slots"]),
    }


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few atoms, and of lists that are full."""
    for atoms, slots in ((1, 3), (127, 40), (333, 5)):
        yield {**parameters, "atoms": atoms, "side": 3, "slots": slots, "seed": atoms}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Every atom of the 27 cells around each, by numpy in float64."""
    side, box, slots = int(options["side"]), float(options["box"]), int(options["slots"])
    places = np.stack([arrays["positions"][axis].astype(np.float64) for axis in "xyz"], axis=1)
    begins, order = arrays["begins"].astype(np.int64), arrays["order"].astype(np.int64)
    reach = float(np.float32(options["reach"]))
    counts = np.zeros(len(places), np.uint32)
    lists = np.zeros((len(places), slots), np.uint32)
    steps = [(dz, dy, dx) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    for cell in np.flatnonzero(np.diff(begins)):
        z, y, x = cell // side**2, cell // side % side, cell % side
        around = [(((z + c) % side) * side + (y + b) % side) * side + (x + a) % side for c, b, a in steps]
        near = np.concatenate([order[begins[one] : begins[one + 1]] for one in around])
        own = order[begins[cell] : begins[cell + 1]]
        apart = places[near] - places[own, None]
        apart -= box * np.round(apart / box)
        is_near = ((apart**2).sum(axis=2) < reach**2) & (near != own[:, None])
        slot = is_near.cumsum(axis=1) - 1
        which, found = np.nonzero(is_near & (slot < slots))
        lists[own[which], slot[which, found]] = near[found]
        counts[own] = np.minimum(is_near.sum(axis=1), slots)
    return {"counts": counts, "neighbours": lists}
