"""Bodies and reference of the nbody example."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import WorkloadError

BODY = np.dtype([(name, np.float32) for name in ("x", "y", "z", "mass")])
_INNER = 0.999  # of the mass; the last thousandth of a Plummer sphere reaches out without end
_PAIRS = 1 << 15  # at a time, so that temporaries stay in a core's cache


def plummer(count: int, seed: int) -> NDArray[Any]:
    """``count`` equal bodies of total mass 1 as in a Plummer sphere of scale length 1: the radius that holds the share
    X of the mass is (X^(-2/3) - 1)^(-1/2) (Aarseth, Henon, Wielen 1974, appendix). Records ``BODY``, shape (count,)."""
    generator = np.random.default_rng(seed)
    radius = (generator.uniform(1e-6, _INNER, count) ** (-2 / 3) - 1) ** -0.5
    direction = generator.normal(size=(count, 3))
    place = direction * (radius / np.linalg.norm(direction, axis=1))[:, None]
    bodies = np.empty(count, BODY)
    for column, name in enumerate("xyz"):
        bodies[name] = place[:, column]
    bodies["mass"] = 1 / count
    return bodies


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``bodies`` (their number) and ``seed`` of a Plummer sphere. Raises WorkloadError."""
    unknown = parameters.keys() - {"bodies", "seed"}
    count = parameters.get("bodies")
    if unknown or not isinstance(count, int) or count < 1:
        raise WorkloadError(
            f"parameters {dict(parameters)} do not make an input: give bodies, a whole number of at least 1 (and seed)"
        )
    return {"bodies": plummer(count, int(parameters.get("seed", 0)))}


def accelerations(bodies: NDArray[Any], softening: float) -> NDArray[np.float64]:
    """The sum in float64 by numpy, in all threads: (bodies, 3). ``softening`` is a length, above 0."""
    places = [bodies[name].astype(np.float64) for name in "xyz"]
    mass = bodies["mass"].astype(np.float64)
    total = np.empty((len(mass), 3))
    step = max(1, _PAIRS // len(mass))

    def some(start: int) -> None:
        rows = slice(start, start + step)
        apart = [axis - axis[rows, None] for axis in places]
        square = apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2 + softening**2
        pull = mass / (square * np.sqrt(square))
        for axis in range(3):
            total[rows, axis] = (pull * apart[axis]).sum(axis=1)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(some, range(0, len(mass), step)))
    return total


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    return {"acceleration": accelerations(arrays["bodies"], float(options["softening"])).astype(np.float32)}
