"""Inputs and reference of the gas optics."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``columns`` of ``levels`` layers around a usual atmosphere, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["columns"]), int(parameters["levels"])
    pressure = 1e5 * (1 - (np.arange(shape[1]) + 0.5) / shape[1]) * generator.uniform(0.9, 1.0, shape)
    made = {
        "pressure": pressure,
        "path": generator.uniform(0.1, 5, shape),
        "temperature": generator.uniform(200, 300, shape),
        "table": generator.uniform(0.01, 1, (16, 32, 12)),
    }
    return {name: array.astype(np.float32) for name, array in made.items()}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few columns and layers."""
    for columns, levels in ((1, 1), (33, 7), (130, 3)):
        yield {"columns": columns, "levels": levels, "seed": columns}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    table = given["table"]
    shares, entries = [], []
    for coordinate, count in (
        ((np.log(given["pressure"]) - options["log_top"]) / options["log_step"], table.shape[1]),
        ((given["temperature"] - options["cold"]) / options["warm_step"], table.shape[2]),
    ):
        inside = coordinate.clip(0, count - 1.001)
        entries.append(inside.astype(np.int64))
        shares.append(inside - entries[-1])
    depth = sum(
        table[:, entries[0] + down, entries[1] + along]
        * np.where(down, shares[0], 1 - shares[0])
        * np.where(along, shares[1], 1 - shares[1])
        for down in (0, 1)
        for along in (0, 1)
    )
    return {"depth": (depth * given["path"]).astype(np.float32)}
