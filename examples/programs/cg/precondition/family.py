"""Inputs and reference of block Jacobi."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """Symmetric ``lines`` x ``lines`` blocks for vectors of ``rows`` rows and ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, sides, lines = (int(parameters[name]) for name in ("rows", "sides", "lines"))
    half = generator.normal(size=(-(-rows // lines), lines, lines)).astype(np.float32)
    residual = generator.normal(size=(rows, sides)).astype(np.float32)
    return {"inverse": half + half.swapaxes(1, 2), "residual": residual}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides, and of a last block that is cut off."""
    for rows, sides, lines in ((1, 1, 1), (257, 3, 6), (1000, 2, 7)):
        yield {"rows": rows, "sides": sides, "lines": lines, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    inverse, residual = arrays["inverse"].astype(np.float64), arrays["residual"].astype(np.float64)
    blocks, lines, _ = inverse.shape
    padded = np.zeros((blocks * lines, residual.shape[1]))
    padded[: len(residual)] = residual
    found = (inverse @ padded.reshape(blocks, lines, -1)).reshape(blocks * lines, -1)
    return {"preconditioned": found[: len(residual)].astype(np.float32)}
