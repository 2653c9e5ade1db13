"""Inputs and reference of the deposit of charge."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTICLE = np.dtype([(name, np.float32) for name in "xyuv"])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``particles`` by chance (``seed``) on a grid of ``rows`` x ``columns``; ``sorted`` ones row by row."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, columns, count = (int(parameters[name]) for name in ("rows", "columns", "particles"))
    particles = np.zeros(count, PARTICLE)
    for name, scale in (("x", columns), ("y", rows)):
        particles[name] = generator.random(count, np.float32) * np.float32(scale)
    if parameters.get("sorted", False):
        particles = particles[np.lexsort((particles["x"] // 1, particles["y"] // 1))]
    return {"particles": particles, "rows": rows, "columns": columns}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few particles."""
    for particles, rows, columns in ((1, 1, 1), (257, 5, 7), (999, 33, 41)):
        yield {"particles": particles, "rows": rows, "columns": columns, "seed": particles}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    rows, columns = int(options["rows"]), int(options["columns"])
    x, y = (arrays["particles"][name].astype(np.float64) for name in "xy")
    column, row = x.astype(np.int64).clip(0, columns - 1), y.astype(np.int64).clip(0, rows - 1)
    charge = np.zeros((rows, columns))
    for down, share_y in ((0, 1 - (y - row)), (1, y - row)):
        for right, share_x in ((0, 1 - (x - column)), (1, x - column)):
            np.add.at(charge, ((row + down) % rows, (column + right) % columns), share_y * share_x)
    return {"charge": charge.astype(np.float32)}
