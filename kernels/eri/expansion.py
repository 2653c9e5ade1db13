"""What the host makes of the order of the pairs: runs of work-units with equally many components, and lists of
work-units and of components. Records are as in expansion.cuh."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COMPONENT",
    "SORTED",
    "WORK_UNIT",
    "Run",
    "components_of",
    "orders",
    "runs_of",
    "subclasses",
    "work_units_of",
]

WORK_UNIT = np.dtype([(name, "u4") for name in ("bra", "ket", "i", "j", "k", "l", "target", "components")])
COMPONENT = np.dtype([(name, "u4") for name in ("a", "b", "c", "d", "i", "j", "k", "l", "target")])

# Orders in which pairs of equally many primitives lie together.
SORTED = ("subclass", "schwarz", "place", "decade")

Positions = NDArray[np.int64]

_CURVE_BITS = 16


# ---- orders of the pairs, for family.py's ``orders``


def _by_class(arrays: dict[str, NDArray[Any]]) -> Positions:
    return np.arange(len(arrays["pairs"]))  # all of class (ss|ss), in the order of generation


def _by_subclass(arrays: dict[str, NDArray[Any]]) -> Positions:
    """By primitive pairs, the fewest first; among equals by the exponents of both shells."""
    pairs, shells = arrays["pairs"], arrays["shells"]
    kinds = arrays["primitives"]["kind"][shells["first"]]
    return np.lexsort((kinds[pairs["j"]], kinds[pairs["i"]], pairs["count"]))


def _by_bound(arrays: dict[str, NDArray[Any]]) -> Positions:
    """By primitive pairs, then by Schwarz bound, the largest first."""
    return np.lexsort((-arrays["pairs"]["bound"], arrays["pairs"]["count"]))


def _by_place(arrays: dict[str, NDArray[Any]]) -> Positions:
    """By primitive pairs, then by where the product of the two most diffuse primitives has its centre, along a Z-order
    curve: the kets of a warp are then all near their bra, or all far from it."""
    pairs, shells = arrays["pairs"], arrays["shells"]
    diffuse = np.minimum.reduceat(arrays["primitives"]["exponent"], shells["first"])
    a, b = diffuse[pairs["i"]], diffuse[pairs["j"]]
    left, right = shells[pairs["i"]], shells[pairs["j"]]
    centres = np.stack([(a * left[axis] + b * right[axis]) / (a + b) for axis in "xyz"])
    return np.lexsort((_curve(centres), pairs["count"]))


def _curve(centres: NDArray[np.float64]) -> Positions:
    """Where points (3, n) are along a Z-order curve."""
    low, wide = centres.min(axis=1, keepdims=True), max(float(np.ptp(centres, axis=1).max()), 1e-300)
    cells = ((centres - low) / wide * (2**_CURVE_BITS - 1)).astype(np.int64)
    place = np.zeros(centres.shape[1], np.int64)
    for bit, axis in itertools.product(range(_CURVE_BITS), range(3)):
        place |= (cells[axis] >> bit & 1) << (3 * bit + axis)
    return place


def _by_decade(arrays: dict[str, NDArray[Any]]) -> Positions:
    """By primitive pairs, then by decades of the Schwarz bound, the largest first, and in each by place: what screening
    leaves of a bra's kets lies together, and so do neighbours."""
    pairs = arrays["pairs"]
    place = np.empty(len(pairs), np.int64)
    place[_by_place(arrays)] = np.arange(len(pairs))
    decade = np.floor(np.log10(np.maximum(pairs["bound"], 1e-300)))
    return np.lexsort((place, -decade, pairs["count"]))


orders = {
    "class": _by_class, "subclass": _by_subclass, "schwarz": _by_bound, "place": _by_place, "decade": _by_decade,
}  # fmt: skip


# ---- runs


@dataclass(frozen=True)
class Run:
    """``units`` work-units of ``each`` components; bras from ``first_bra`` on, of ``count`` primitive pairs each, kets
    from ``first_ket`` on, ``kets`` of them to a bra, or a triangle when that is 0."""

    first_bra: int
    first_ket: int
    kets: int
    units: int
    each: int
    count: int = 1

    @property
    def bras(self) -> int:
        return self.units // self.kets if self.kets else (math.isqrt(8 * self.units + 1) - 1) // 2


def runs_of(counts: NDArray[Any]) -> list[Run]:
    """Every work-unit of sorted pairs (``counts``: primitive pairs of each, ascending), the heaviest runs first."""
    starts = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
    classes = [(a, b, int(counts[a])) for a, b in itertools.pairwise(starts)]
    runs = []
    for number, (bra, bra_end, bra_count) in enumerate(classes):
        bras = bra_end - bra
        runs.append(Run(bra, bra, 0, bras * (bras + 1) // 2, bra_count**2, bra_count))
        for ket, ket_end, ket_count in classes[:number]:
            runs.append(
                Run(bra, ket, ket_end - ket, bras * (ket_end - ket), bra_count * ket_count, bra_count)
            )
    return sorted(runs, key=lambda run: -run.each)


def subclasses(counts: NDArray[Any]) -> dict[int, int]:
    """Work-units by their number of components, ascending (the article's factors 1 and 2)."""
    found: dict[int, int] = {}
    for run in runs_of(np.sort(np.asarray(counts).astype(np.int64))):
        found[run.each] = found.get(run.each, 0) + run.units
    return dict(sorted(found.items()))


# ---- lists


def work_units_of(pairs: NDArray[Any], order: str) -> NDArray[Any]:
    """The list of all work-units of ``pairs`` as they lie on the device: as generated, or by subclass, the heaviest
    first (and by Schwarz bound)."""
    bra, ket = np.tril_indices(len(pairs))
    components = pairs["count"][bra].astype(np.int64) * pairs["count"][ket]
    if order in SORTED:
        keys = [-components]
        if order == "schwarz":
            keys.insert(0, -(pairs["bound"][bra] * pairs["bound"][ket]))
        chosen = np.lexsort(keys)
        bra, ket, components = bra[chosen], ket[chosen], components[chosen]
    units = np.zeros(len(bra), WORK_UNIT)
    units["bra"], units["ket"], units["components"] = bra, ket, components
    for name, source in (("i", bra), ("j", bra), ("k", ket), ("l", ket)):
        units[name] = pairs["i" if name in "ik" else "j"][source]
    ij = units["i"].astype(np.int64) * (units["i"].astype(np.int64) + 1) // 2 + units["j"]
    kl = units["k"].astype(np.int64) * (units["k"].astype(np.int64) + 1) // 2 + units["l"]
    high, low = np.maximum(ij, kl), np.minimum(ij, kl)
    units["target"] = high * (high + 1) // 2 + low
    return units


def components_of(units: NDArray[Any], shells: NDArray[Any], most: int) -> Iterator[NDArray[Any]]:
    """The components of a list of work-units, at most ``most`` at once; a work-unit may go on in the next part."""
    counts = shells["count"].astype(np.int64)
    first = shells["first"].astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(units["components"].astype(np.int64))))
    for begin in range(0, int(starts[-1]), most):
        end = min(begin + most, int(starts[-1]))
        low, high = (int(place) for place in np.searchsorted(starts, (begin, end - 1), side="right") - 1)
        some, times = units[low : high + 1], np.diff(np.clip(starts[low : high + 2], begin, end))
        m = np.arange(begin, end) - np.repeat(starts[low : high + 1], times)
        made = np.zeros(end - begin, COMPONENT)
        for name in ("i", "j", "k", "l", "target"):
            made[name] = np.repeat(some[name], times)
        kets = np.repeat(counts[some["k"]] * counts[some["l"]], times)
        bra, ket = np.divmod(m, kets)
        for upper, lower, left, right, place in (("a", "b", "i", "j", bra), ("c", "d", "k", "l", ket)):
            quotient, rest = np.divmod(place, np.repeat(counts[some[right]], times))
            made[upper] = np.repeat(first[some[left]], times) + quotient
            made[lower] = np.repeat(first[some[right]], times) + rest
        yield made
