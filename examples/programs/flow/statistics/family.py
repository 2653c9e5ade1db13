"""Inputs and reference of the statistics of a flow."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUMS = np.dtype([(name, np.float32) for name in ("density", "u", "v", "uu", "vv", "uv")])
RIGHT = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
DOWN = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``rows`` x ``columns`` cells and what was summed before, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["columns"])
    sums = np.zeros(shape, SUMS)
    for name in SUMS.names or ():
        sums[name] = generator.normal(size=shape)
    return {"populations": generator.uniform(-0.02, 0.02, (9, *shape)).astype(np.float32), "sums": sums}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small lattices."""
    for rows, columns in ((1, 1), (7, 33), (17, 129)):
        yield {"rows": rows, "columns": columns, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    populations = arrays["populations"].astype(np.float64)
    density = 1 + populations.sum(axis=0)
    u, v = (np.tensordot(way, populations, 1) / density for way in (RIGHT, DOWN))
    after = arrays["sums"].copy()
    for name, value in {"density": density, "u": u, "v": v, "uu": u * u, "vv": v * v, "uv": u * v}.items():
        after[name] = arrays["sums"][name] + value
    return {"sums_after": after}
