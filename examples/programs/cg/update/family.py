"""Inputs and reference of the step along directions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """Vectors of ``rows`` rows and ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["sides"])
    names = ("direction", "product", "x", "residual")
    made = {name: generator.normal(size=shape).astype(np.float32) for name in names}
    for name in ("gradient", "curvature"):
        made[name] = generator.uniform(0.5, 2, shape[1]).astype(np.float32)
    made["curvature"][-1] = 0
    return made


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides."""
    for rows, sides in ((1, 1), (257, 3), (1000, 2)):
        yield {"rows": rows, "sides": sides, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    curved = given["curvature"] > 0
    alpha = np.where(curved, given["gradient"] / np.where(curved, given["curvature"], 1), 0)
    x, residual = given["x"] + alpha * given["direction"], given["residual"] - alpha * given["product"]
    return {"x_after": x.astype(np.float32), "residual_after": residual.astype(np.float32)}
