"""Inputs and reference of the electric field."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIELD = np.dtype([("x", np.float32), ("y", np.float32)])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """A potential on ``rows`` x ``columns`` nodes, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["columns"])
    return {"potential": generator.normal(size=shape).astype(np.float32)}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small grids."""
    for rows, columns in ((1, 1), (2, 33), (17, 65)):
        yield {"rows": rows, "columns": columns, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    potential = arrays["potential"].astype(np.float64)
    field = np.empty(potential.shape, FIELD)
    for name, axis in (("y", 0), ("x", 1)):
        field[name] = (np.roll(potential, 1, axis) - np.roll(potential, -1, axis)) / 2
    return {"field": field}
