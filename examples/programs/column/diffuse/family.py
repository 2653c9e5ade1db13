"""Inputs and reference of the heating and mixing of columns."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``columns`` of ``levels`` layers, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    columns, levels = int(parameters["columns"]), int(parameters["levels"])
    made = {
        "flux": generator.uniform(-100, 300, (columns, levels + 1)),
        "ground": generator.uniform(270, 300, columns),
        "temperature": generator.uniform(200, 300, (columns, levels)),
    }
    return {"layer_mass": 1e4 / levels, **{name: array.astype(np.float32) for name, array in made.items()}}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few columns and layers."""
    for columns, levels in ((1, 1), (33, 7), (130, 3)):
        yield {"columns": columns, "levels": levels, "seed": columns}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64, every column's matrix solved as it is; shares nothing with the kernel."""
    flux, ground, temperature = (
        arrays[name].astype(np.float64) for name in ("flux", "ground", "temperature")
    )
    dt, layer_mass, mixing = (float(np.float32(options[name])) for name in ("dt", "layer_mass", "mixing"))
    levels, mixed = temperature.shape[1], dt * mixing
    matrix = np.eye(levels) * (1 + 2 * mixed) - mixed * (np.eye(levels, k=1) + np.eye(levels, k=-1))
    matrix[-1, -1] -= mixed
    right = temperature + dt * (flux[:, :-1] - flux[:, 1:]) / (1004 * layer_mass)
    right[:, 0] += mixed * ground
    return {"temperature_after": np.linalg.solve(matrix, right.T).T.astype(np.float32)}
