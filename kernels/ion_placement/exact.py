"""Ion placement by numpy, an ion at a time over the whole map: what the kernels are compared with."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOWHERE", "placed", "reference"]

NOWHERE = 2**32 - 1


def placed(
    potential: NDArray[np.float64], charges: NDArray[np.float64], spacing2: float, exclusion2: float
) -> NDArray[np.uint32]:
    """The place of each ion as an index into the flattened map, NOWHERE where no point was left. ``potential`` is
    (slices, rows, columns), NaN where no ion may be; ``spacing2`` in square angstrom, ``exclusion2`` in points."""
    current = potential.copy()
    slices, rows, columns = current.shape
    places = np.full(len(charges), NOWHERE, np.uint32)
    threads = len(os.sched_getaffinity(0))
    # Many slices at once, so that threads rarely wait for the interpreter: with single ones that takes twice the time.
    at_once = max(1, min(-(-slices // threads), (1 << 19) // (rows * columns)))
    slabs = [slice(first, min(first + at_once, slices)) for first in range(0, slices, at_once)]
    room = np.empty((2, *current.shape))  # made once: the system's time for memory adds up

    def best(slab: slice, sign: float) -> tuple[float, int]:
        score = np.multiply(current[slab], sign, out=room[0, slab]).reshape(-1)
        score[np.isnan(score)] = np.inf
        first = int(score.argmin())
        return float(score[first]), slab.start * rows * columns + first

    def add(slab: slice, place: int, charge: float) -> None:
        at_slice, line = divmod(place, rows * columns)
        at_row, at_column = divmod(line, columns)
        squares, terms = room[0, slab], room[1, slab]
        away = (np.arange(slab.start, slab.stop, dtype=np.float64)[:, None, None] - at_slice) ** 2
        flat = (np.arange(rows, dtype=np.float64)[:, None] - at_row) ** 2 + away
        np.add((np.arange(columns, dtype=np.float64) - at_column) ** 2, flat, out=squares)
        np.multiply(squares, spacing2, out=terms)
        np.sqrt(terms, out=terms)
        with np.errstate(divide="ignore"):  # at the ion itself, which is excluded
            np.divide(charge, terms, out=terms)
        current[slab] += terms
        if away.min() <= exclusion2:
            current[slab][squares <= exclusion2] = np.nan

    with ThreadPoolExecutor(threads) as pool:
        for number, charge in enumerate(charges):
            sign = 1.0 if charge > 0 else -1.0
            score, place = min(pool.map(best, slabs, repeat(sign)))
            if score == np.inf:
                break
            places[number] = place
            list(pool.map(add, slabs, repeat(place), repeat(float(charge))))
    return places


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """For family.py: ``options`` has the scalars too."""
    return {
        "places": placed(
            arrays["potential"], arrays["charges"], float(options["spacing2"]), float(options["exclusion2"])
        )
    }
