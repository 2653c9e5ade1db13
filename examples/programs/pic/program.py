"""The electrons that a plasma begins with, and the same steps by numpy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTICLE = np.dtype([(name, np.float32) for name in "xyuv"])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``rows`` x ``columns`` cells with ``each`` electrons a cell, of thermal speed 1 by ``seed``, a twentieth more of
    them where a wave along x has its crests."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, columns, each = (int(parameters[name]) for name in ("rows", "columns", "each"))
    particles = np.zeros(rows * columns * each, PARTICLE)
    x = generator.random(len(particles)) * columns
    particles["x"] = (x - 0.05 * columns / (2 * np.pi) * np.sin(2 * np.pi / columns * x)) % columns
    particles["y"] = generator.random(len(particles)) * rows
    for name in "uv":
        particles[name] = generator.normal(size=len(particles))
    potential = np.zeros((rows, columns), np.float32)
    return {"particles": particles, "ids": np.arange(len(particles), dtype=np.int32), "potential": potential}


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """``x``, ``y``, ``u``, ``v`` of the particles, the ``potential`` and the field's parts ``field_x`` and ``field_y``,
    in float64 after the program's steps."""
    x, y, u, v = (arrays["particles"][name].astype(np.float64) for name in "xyuv")
    potential, dt = arrays["potential"].astype(np.float64), scalars["dt"]
    field_x = field_y = np.zeros_like(potential)
    rows, columns = potential.shape
    for _ in range(int(scalars["steps"])):
        column, row = x.astype(np.int64), y.astype(np.int64)
        nodes = [
            (
                (row + down) % rows,
                (column + right) % columns,
                abs(1 - down - (y - row)) * abs(1 - right - (x - column)),
            )
            for down in (0, 1)
            for right in (0, 1)
        ]
        charge = np.zeros((rows, columns))
        for one, other, share in nodes:
            np.add.at(charge, (one, other), share)
        for _ in range(2 * int(scalars["sweeps"])):
            around = sum(np.roll(potential, way, axis) for axis in (0, 1) for way in (1, -1))
            potential = (around + 1 - scalars["weight"] * charge) / 4
        field_y, field_x = (
            (np.roll(potential, 1, axis) - np.roll(potential, -1, axis)) / 2 for axis in (0, 1)
        )
        u = u - dt * sum(share * field_x[one, other] for one, other, share in nodes)
        v = v - dt * sum(share * field_y[one, other] for one, other, share in nodes)
        x, y = (x + dt * u) % columns, (y + dt * v) % rows
    return {"x": x, "y": y, "u": u, "v": v, "potential": potential, "field_x": field_x, "field_y": field_y}
