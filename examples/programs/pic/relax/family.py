"""Inputs and reference of the relaxation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """A grid of ``rows`` x ``columns`` with some 16 electrons a node, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["columns"])
    charge, potential = generator.poisson(16, shape).astype(np.float32), generator.normal(size=shape)
    return {"charge": charge, "potential": potential.astype(np.float32), "weight": 1 / 16}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small grids."""
    for rows, columns in ((1, 1), (2, 33), (17, 65)):
        yield {"rows": rows, "columns": columns, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    potential = arrays["potential"].astype(np.float64)
    around = sum(np.roll(potential, way, axis) for axis in (0, 1) for way in (1, -1))
    source = 1 - float(np.float32(options["weight"])) * arrays["charge"]
    return {"relaxed": ((around + source) / 4).astype(np.float32)}
