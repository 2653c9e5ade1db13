"""Inputs and reference of the transport of radiation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``columns`` of ``levels`` layers, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["columns"]), int(parameters["levels"])
    weights = generator.uniform(0.5, 1, 16)
    made = {
        "weights": weights / weights.sum(),
        "ground": generator.uniform(270, 300, shape[0]),
        "temperature": generator.uniform(200, 300, shape),
        "depth": generator.exponential(0.3, (16, *shape)),
    }
    return {name: array.astype(np.float32) for name, array in made.items()}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few columns and layers."""
    for columns, levels in ((1, 1), (33, 7), (130, 3)):
        yield {"columns": columns, "levels": levels, "seed": columns}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    passed, weights = np.exp(-1.66 * given["depth"]), given["weights"][:, None]
    columns, levels = given["temperature"].shape
    source = 5.670374e-8 * given["temperature"] ** 4
    flux = np.zeros((columns, levels + 1))
    intensity = np.zeros((16, columns))
    for level in reversed(range(levels)):
        intensity = intensity * passed[:, :, level] + weights * source[:, level] * (1 - passed[:, :, level])
        flux[:, level] -= intensity.sum(axis=0)
    intensity = weights * 5.670374e-8 * given["ground"] ** 4
    flux[:, 0] += intensity.sum(axis=0)
    for level in range(levels):
        intensity = intensity * passed[:, :, level] + weights * source[:, level] * (1 - passed[:, :, level])
        flux[:, level + 1] += intensity.sum(axis=0)
    return {"flux": flux.astype(np.float32)}
