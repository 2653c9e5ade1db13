"""Inputs and reference of the reordering of atoms."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])
VELOCITY = np.dtype([(axis, np.float32) for axis in "xyz"])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``atoms`` and a permutation of them, by chance (``seed``): with ``near``, only within runs of that length."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    atoms, near = int(parameters["atoms"]), int(parameters.get("near", 0))
    positions, velocities = np.zeros(atoms, POSITION), np.zeros(atoms, VELOCITY)
    for array in (positions, velocities):
        for axis in "xyz":
            array[axis] = generator.normal(size=atoms)
    positions["kind"] = np.arange(atoms) % 5 == 0
    keys = generator.random(atoms) if not near else np.arange(atoms) // near + generator.random(atoms)
    ids = generator.permutation(atoms).astype(np.int32)
    order = np.argsort(keys).astype(np.uint32)
    return {"order": order, "positions": positions, "velocities": velocities, "ids": ids}


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few atoms."""
    for atoms in (1, 127, 257):
        yield {**parameters, "atoms": atoms, "seed": atoms}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """numpy's take."""
    order = arrays["order"]
    moved = {f"{name}_after": arrays[name][order] for name in ("positions", "velocities", "ids")}
    return {**moved, "order_after": np.arange(len(order), dtype=np.uint32)}
