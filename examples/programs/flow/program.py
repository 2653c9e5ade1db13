"""The fluid that the flow begins with, and the same steps by numpy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUMS = np.dtype([(name, np.float32) for name in ("density", "u", "v", "uu", "vv", "uv")])
WAYS = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]  # down, right
WEIGHTS = [4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36]
SPEED = 0.05  # of the flow, in cells a step; far below that of sound, 0.577


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """Two streams of ``rows`` x ``columns`` cells that pass each other, disturbed by ``seed``; nothing summed yet."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, columns = int(parameters["rows"]), int(parameters["columns"])
    height, along = np.arange(rows)[:, None] / rows, np.arange(columns) / columns
    u = SPEED * np.tanh(20 * np.cos(2 * np.pi * height)) + 0 * along
    v = 0.05 * SPEED * np.sin(4 * np.pi * along) + 0.01 * SPEED * generator.normal(size=(rows, columns))
    populations = np.stack([equilibrium(i, 1.0, u, v) - WEIGHTS[i] for i in range(9)])
    return {"populations": populations.astype(np.float32), "sums": np.zeros((rows, columns), SUMS)}


def equilibrium(i: int, density: Any, u: Any, v: Any) -> Any:
    """The population ``i`` of a fluid of that density and velocity."""
    along = 3 * (WAYS[i][0] * v + WAYS[i][1] * u)
    return WEIGHTS[i] * density * (1 + along + along**2 / 2 - 1.5 * (u**2 + v**2))


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """``populations`` less their weights and the ``sums`` by their fields, in float64 after the program's steps."""
    whole = [
        given + weight
        for given, weight in zip(arrays["populations"].astype(np.float64), WEIGHTS, strict=True)
    ]
    sums = {name: arrays["sums"][name].astype(np.float64) for name in SUMS.names or ()}
    for step in range(int(scalars["steps"])):
        moved = [np.roll(each, way, (0, 1)) for each, way in zip(whole, WAYS, strict=True)]
        density, u, v = moments(moved)
        whole = [
            each + scalars["omega"] * (equilibrium(i, density, u, v) - each) for i, each in enumerate(moved)
        ]
        if step % int(scalars["often"]) == 0:
            density, u, v = moments(whole)
            for name, value in {
                "density": density,
                "u": u,
                "v": v,
                "uu": u * u,
                "vv": v * v,
                "uv": u * v,
            }.items():
                sums[name] = sums[name] + value
    populations = np.stack([each - weight for each, weight in zip(whole, WEIGHTS, strict=True)])
    return {"populations": populations, **sums}


def moments(populations: Any) -> tuple[Any, Any, Any]:
    """Density and velocity (u along columns, v along rows) of whole populations."""
    density = sum(populations)
    u, v = (sum(way[axis] * each for way, each in zip(WAYS, populations, strict=True)) for axis in (1, 0))
    return density, u / density, v / density
