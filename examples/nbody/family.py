"""Bodies and reference of the nbody example."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

BODY = np.dtype([(name, np.float32) for name in ("x", "y", "z", "mass")])
_INNER = 0.999  # of the mass; the last thousandth of a Plummer sphere reaches out without end
_ROWS, _COLUMNS = 64, 4096  # a tile of pairs: so large that many threads rarely wait for Python's lock


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


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few bodies, around the sizes of blocks."""
    for bodies in (1, 31, 257, 1031):
        yield {"bodies": bodies, "seed": bodies}


def accelerations(bodies: NDArray[Any], softening: float) -> NDArray[np.float64]:
    """The sum in float64 by numpy, in all threads: (bodies, 3). ``softening`` is a length, above 0."""
    places = np.stack([bodies[name] for name in "xyz"]).astype(np.float64)
    mass = bodies["mass"].astype(np.float64)
    count = len(mass)
    total = np.empty((count, 3))
    rows, columns = min(_ROWS, count), min(_COLUMNS, count)
    threads = len(os.sched_getaffinity(0))

    def some(thread: int) -> None:
        tile = np.empty((5, rows, columns))  # made once: a new one each time costs more than the arithmetic
        part = np.empty((3, rows))
        for start in range(thread * rows, count, threads * rows):
            first = min(start, count - rows)  # the last tile does some bodies again
            own = places[:, first : first + rows, None]
            pulled = np.zeros((3, rows))
            for left in range(0, count, columns):
                right = min(left + columns, count)
                used = tile[:, :, : right - left]
                apart, cube, root = used[:3], used[3], used[4]
                np.subtract(places[:, None, left:right], own, out=apart)
                np.einsum("kij,kij->ij", apart, apart, out=cube)  # r^2
                cube += softening**2
                np.sqrt(cube, out=root)
                cube *= root
                pull = np.divide(mass[left:right], cube, out=cube)
                pulled += np.vecdot(apart, pull, out=part)
            total[first : first + rows] = pulled.T

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, range(threads)))
    return total


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy in float64; shares nothing with the kernel."""
    return {"acceleration": accelerations(arrays["bodies"], float(options["softening"])).astype(np.float32)}
