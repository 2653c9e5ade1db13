"""Flows and reference of the lattice Boltzmann example."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

RIGHT = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
DOWN = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
WEIGHT = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
SPEED = 0.05  # of the flow, in cells a step; far below that of sound, 0.577


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``rows`` x ``columns`` cells of a flow: vortices side by side, with noise of ``seed``. Raises WorkloadError."""
    unknown = parameters.keys() - {"rows", "columns", "seed"}
    sizes = [parameters.get(name) for name in ("rows", "columns")]
    if unknown or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise WorkloadError(
            f"parameters {dict(parameters)} do not make an input: give rows and columns, whole numbers of at least 1 "
            "(and seed)"
        )
    rows, columns = (int(size) for size in sizes if size)
    return {"populations": flow(rows, columns, int(parameters.get("seed", 0)))}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of lattices around the sizes of blocks and tiles, and of one that is thinner than a step."""
    for rows, columns in ((1, 2), (7, 33), (17, 129), (40, 15)):
        yield {"rows": rows, "columns": columns, "seed": rows}


def flow(rows: int, columns: int, seed: int) -> NDArray[np.float32]:
    """Populations less their weights, (9, rows, columns): near the equilibrium of a row of vortices."""
    generator = np.random.default_rng(seed)
    y, x = (np.arange(n, dtype=np.float32) * np.float32(2 * np.pi / n) for n in (rows, columns))
    u = np.float32(SPEED) * np.sin(y)[:, None] * np.cos(x)
    v = np.float32(-SPEED) * np.cos(y)[:, None] * np.sin(x)
    density = np.float32(0.01) * np.cos(x + y[:, None])
    made = np.empty((9, rows, columns), np.float32)
    for i in range(9):
        noise = generator.random((rows, columns), np.float32) - np.float32(0.5)
        made[i] = equilibrium(i, density, u, v) + np.float32(0.001) * noise
    return made


def equilibrium(i: int, density: Any, u: Any, v: Any) -> Any:
    """Of direction ``i``, less its weight, where the fluid has the density 1 + ``density`` and the velocity (u, v)."""
    along = 3 * (RIGHT[i] * u + DOWN[i] * v)
    whole = (1 + density) * (1 + along + along * along / 2 - 1.5 * (u * u + v * v))
    return (WEIGHT[i] * (whole - 1)).astype(np.asarray(u).dtype)


def step(populations: NDArray[Any], omega: float) -> NDArray[np.float64]:
    """The lattice after one step, in float64: every population moved, then relaxed."""
    moved = np.stack(
        [np.roll(populations[i].astype(np.float64), (DOWN[i], RIGHT[i]), (0, 1)) for i in range(9)]
    )
    density = moved.sum(axis=0)
    u, v = (np.tensordot(way, moved, 1) / (1 + density) for way in (RIGHT.astype(float), DOWN.astype(float)))
    for i in range(9):
        moved[i] += omega * (equilibrium(i, density, u, v) - moved[i])
    return moved


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """One step in float64; shares nothing with the kernel."""
    return {"streamed": step(arrays["populations"], options["omega"]).astype(np.float32)}
