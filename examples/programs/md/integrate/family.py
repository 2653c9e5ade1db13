"""Inputs and reference of the leapfrog step."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])
VELOCITY = np.dtype([(axis, np.float32) for axis in "xyz"])
FORCE = np.dtype([(name, np.float32) for name in ("x", "y", "z", "energy")])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``atoms`` by chance (``seed``) in a cube of edge 20, at velocities around 1 and forces around 10."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    atoms = int(parameters["atoms"])
    positions, velocities, force = (
        np.zeros(atoms, POSITION),
        np.zeros(atoms, VELOCITY),
        np.zeros(atoms, FORCE),
    )
    for axis in "xyz":
        positions[axis] = generator.random(atoms) * 19.9
        velocities[axis], force[axis] = generator.normal(size=atoms), 10 * generator.normal(size=atoms)
    positions["kind"] = np.arange(atoms) % 5 == 0
    return {"force": force, "positions": positions, "velocities": velocities, "box": 20.0}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few atoms."""
    for atoms in (1, 127, 257):
        yield {"atoms": atoms, "seed": atoms}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    box, dt = float(np.float32(options["box"])), float(np.float32(options["dt"]))
    positions, velocities = arrays["positions"].copy(), arrays["velocities"].copy()
    for axis in "xyz":
        velocity = arrays["velocities"][axis] + dt * arrays["force"][axis].astype(np.float64)
        velocities[axis] = velocity
        positions[axis] = (arrays["positions"][axis] + dt * velocity) % box
    return {"positions_after": positions, "velocities_after": velocities}
