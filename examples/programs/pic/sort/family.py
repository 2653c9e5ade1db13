"""Inputs and reference of the sort of particles."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTICLE = np.dtype([(name, np.float32) for name in "xyuv"])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``particles`` by chance (``seed``) on a grid of ``rows`` x ``columns``."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, columns, count = (int(parameters[name]) for name in ("rows", "columns", "particles"))
    particles = np.zeros(count, PARTICLE)
    for name, scale in (("x", columns), ("y", rows), ("u", 1), ("v", 1)):
        particles[name] = generator.random(count, np.float32) * np.float32(scale)
    return {"particles": particles, "ids": np.arange(count, dtype=np.int32), "rows": rows, "columns": columns}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few particles."""
    for particles, rows, columns in ((1, 1, 1), (257, 5, 7), (999, 33, 41)):
        yield {"particles": particles, "rows": rows, "columns": columns, "seed": particles}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """numpy's stable sort."""
    rows, columns = int(options["rows"]), int(options["columns"])
    particles = arrays["particles"]
    row, column = particles["y"].astype(np.int64), particles["x"].astype(np.int64)
    order = np.argsort(row.clip(0, rows - 1) * columns + column.clip(0, columns - 1), kind="stable")
    return {"particles_after": particles[order], "ids_after": arrays["ids"][order]}
