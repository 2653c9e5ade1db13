"""The atoms that molecular dynamics begins with, and the same dynamics by numpy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSITION = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("kind", np.int32)])
VELOCITY = np.dtype([(axis, np.float32) for axis in "xyz"])
EDGE = 1.5  # of a cell of the crystal, 4 atoms: the density is 1.185
TEMPERATURE = 3.0  # half of which becomes potential energy: a liquid
EPSILON, SIGMA = np.array([1, 1.5, 0.5]), np.array([1, 0.8, 0.88])  # of pairs, by the sum of their kinds


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """A face-centred cubic crystal of ``edge`` x ``edge`` x ``edge`` cells, a fifth of its atoms of the second kind, at
    temperature 3, by ``seed``. ``shuffled`` atoms are numbered at random."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    edge = int(parameters["edge"])
    corners = np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    places = (corners + np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])).reshape(-1, 3)
    if parameters.get("shuffled", False):
        places = generator.permutation(places)
    speeds = generator.normal(scale=TEMPERATURE**0.5, size=places.shape)
    speeds -= speeds.mean(axis=0)
    positions, velocities = np.zeros(len(places), POSITION), np.zeros(len(places), VELOCITY)
    for column, axis in enumerate("xyz"):
        positions[axis] = (places[:, column] + 0.25) * EDGE
        velocities[axis] = speeds[:, column]
    positions["kind"] = generator.random(len(places)) < 0.2
    return {"positions": positions, "velocities": velocities, "ids": np.arange(len(places), dtype=np.int32)}


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Places, speeds (atoms, 3) and energies (atoms,) in float64 after the program's steps, of all pairs, by no list:
    the energies are those of the places before the last step, as the program's."""
    positions, box, cutoff = arrays["positions"], scalars["box"], scalars["cutoff"]
    places, speeds = (
        np.stack([arrays[name][axis].astype(np.float64) for axis in "xyz"], axis=1)
        for name in ("positions", "velocities")
    )
    kinds = positions["kind"][:, None] + positions["kind"]
    epsilon, sigma2 = EPSILON[kinds], SIGMA[kinds] ** 2
    energy = np.zeros(len(places))
    for _ in range(int(scalars["rebuilds"]) * int(scalars["steps"])):
        apart = [place[:, None] - place for place in places.T]
        apart = [each - box * np.round(each / box) for each in apart]
        square = sum(each**2 for each in apart)
        is_near = (square < cutoff**2) & (square > 0)
        square = np.where(is_near, square, 1.0)
        near = (sigma2 / square) ** 3 * is_near
        pull = 24 * epsilon * near * (2 * near - 1) / square
        energy = (2 * epsilon * near * (near - 1)).sum(axis=1)
        speeds = speeds + scalars["dt"] * np.stack([(pull * each).sum(axis=1) for each in apart], axis=1)
        places = (places + scalars["dt"] * speeds) % box
    return {"places": places, "speeds": speeds, "energy": energy}
