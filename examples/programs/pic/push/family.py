"""Inputs and reference of the push."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTICLE = np.dtype([(name, np.float32) for name in "xyuv"])
FIELD = np.dtype([("x", np.float32), ("y", np.float32)])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``particles`` by chance (``seed``) on a grid of ``rows`` x ``columns``; ``sorted`` ones row by row."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, columns, count = (int(parameters[name]) for name in ("rows", "columns", "particles"))
    particles, field = np.zeros(count, PARTICLE), np.zeros((rows, columns), FIELD)
    for name, scale in (("x", columns), ("y", rows)):
        particles[name] = generator.random(count, np.float32) * np.float32(scale)
        field[name] = generator.normal(size=field.shape)
    if parameters.get("sorted", False):
        particles = particles[np.lexsort((particles["x"] // 1, particles["y"] // 1))]
    for name in "uv":
        particles[name] = generator.normal(size=count)
    return {"field": field, "particles": particles}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few particles."""
    for particles, rows, columns in ((1, 1, 1), (257, 5, 7), (999, 33, 41)):
        yield {"particles": particles, "rows": rows, "columns": columns, "seed": particles}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    field, moved, dt = arrays["field"], arrays["particles"].copy(), float(np.float32(options["dt"]))
    rows, columns = field.shape
    x, y = (arrays["particles"][name].astype(np.float64) for name in "xy")
    column, row = x.astype(np.int64).clip(0, columns - 1), y.astype(np.int64).clip(0, rows - 1)
    shares_x, shares_y = (1 - (x - column), x - column), (1 - (y - row), y - row)
    for place, speed, length, at in (("x", "u", columns, x), ("y", "v", rows, y)):
        pull = sum(
            field[place][(row + down) % rows, (column + right) % columns].astype(np.float64)
            * shares_y[down]
            * shares_x[right]
            for down in (0, 1)
            for right in (0, 1)
        )
        faster = arrays["particles"][speed] - dt * pull
        moved[speed], moved[place] = faster, (at + dt * faster) % length
    return {"particles_after": moved}
