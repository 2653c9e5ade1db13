"""Inputs and reference of the scalar products."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """Vectors of ``rows`` rows and ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["sides"])
    return {name: generator.normal(size=shape).astype(np.float32) for name in ("first", "second")}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides."""
    for rows, sides in ((1, 1), (257, 3), (1000, 2)):
        yield {"rows": rows, "sides": sides, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernels."""
    first, second = (arrays[name].astype(np.float64) for name in ("first", "second"))
    return {"sums": (first * second).sum(axis=0).astype(np.float32)}
