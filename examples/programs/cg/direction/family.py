"""Inputs and reference of the next directions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """Vectors of ``rows`` rows and ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = int(parameters["rows"]), int(parameters["sides"])
    made = {name: generator.normal(size=shape).astype(np.float32) for name in ("preconditioned", "direction")}
    for name in ("gradient", "gradient_before"):
        made[name] = generator.uniform(0.5, 2, shape[1]).astype(np.float32)
    made["gradient_before"][-1] = 0
    return made


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides."""
    for rows, sides in ((1, 1), (257, 3), (1000, 2)):
        yield {"rows": rows, "sides": sides, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    is_known = given["gradient_before"] > 0
    beta = np.where(is_known, given["gradient"] / np.where(is_known, given["gradient_before"], 1), 0)
    return {"direction_after": (given["preconditioned"] + beta * given["direction"]).astype(np.float32)}
