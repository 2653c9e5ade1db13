"""Inputs and reference of the cells of atoms."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``atoms`` by chance (``seed``) in a ``box`` of ``side`` cells an edge."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    positions = np.zeros(int(parameters["atoms"]), POSITION)
    box = float(parameters["box"])
    for axis in "xyz":
        positions[axis] = generator.random(len(positions), np.float32) * np.float32(box)
    return {"positions": positions, "box": box, "side": int(parameters["side"])}


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few atoms."""
    for atoms in (1, 127, 257):
        yield {**parameters, "atoms": atoms, "seed": atoms}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """In float32 as the kernel: one product and a cut have one result."""
    side = int(options["side"])
    scale = np.float32(side) / np.float32(options["box"])
    x, y, z = ((arrays["positions"][axis] * scale).astype(np.uint32).clip(0, side - 1) for axis in "xyz")
    return {"cell_of": ((z * side + y) * side + x).astype(np.uint32)}
