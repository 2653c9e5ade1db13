"""From s and p shells to the arrays the kernels take. Records are as in pairs.cuh."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, family_module

from . import boys
from .reference import AT_ONCE, products, values_of
from .work import different_integrals, multiply_adds

__all__ = ["MOST_INTEGRALS", "PAIR", "PRIMITIVE", "SHELL", "arrays_of", "pair_bounds"]

MOST_INTEGRALS = 2**32 - 1

SHELL = np.dtype(
    [(name, "f8") for name in "xyz"] + [(name, "u4") for name in ("first", "count", "function", "momentum")]
)
PRIMITIVE = np.dtype([("exponent", "f8"), ("coefficient", "f8")])
PAIR = np.dtype([*((name, "u4") for name in ("i", "j", "first", "count", "momenta")), ("bound", "f4")])


def arrays_of(
    placed: Sequence[tuple[Sequence[float], Any]], density: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Everything the kernels take, from family eri's shells of momentum 0 and 1 with their centres in bohr; the
    functions are theirs in their order, those of a p shell x, y, z. With a symmetric ``density`` (functions, functions)
    for its Coulomb and exchange matrices, else for the list of integrals. Raises WorkloadError."""
    if not placed:
        raise WorkloadError("no shell at all: there is nothing to integrate")
    shared = family_module("eri", "arrays")
    shells, primitives = shared.shells_of(placed, SHELL, PRIMITIVE)
    momenta = np.array([shell.momentum for _, shell in placed])
    shells["momentum"], shells["function"] = momenta, np.cumsum(2 * momenta + 1) - (2 * momenta + 1)
    functions = int((2 * momenta + 1).sum())
    different = different_integrals(functions)
    if density is None and different > MOST_INTEGRALS:
        raise WorkloadError(
            f"{different:,} integrals; at most {MOST_INTEGRALS:,} can be listed: ask for output=coulomb_exchange"
        )
    pairs = shared.pairs_of(shells, PAIR)
    swapped = shells["momentum"][pairs["i"]] < shells["momentum"][pairs["j"]]  # the higher momentum first
    pairs["i"], pairs["j"] = (
        np.where(swapped, pairs["j"], pairs["i"]),
        np.where(swapped, pairs["i"], pairs["j"]),
    )
    pairs["momenta"] = shells["momentum"][pairs["i"]] + shells["momentum"][pairs["j"]]
    pairs["bound"] = pair_bounds(shells, primitives, pairs)
    return {
        "shells": shells,
        "primitives": primitives,
        "pairs": pairs,
        "boys_table": boys.table(),
        "density": np.zeros((1, 1))
        if density is None
        else shared.checked_density(density, functions, "functions"),
        "products": int(pairs["count"].sum(dtype=np.int64)),
        "quartets": len(pairs) * (len(pairs) + 1) // 2,
        "different": different,
        "multiply_adds": multiply_adds(pairs),
        "listed": different if density is None else 0,
        "digested": 0 if density is None else functions,
    }


def pair_bounds(shells: NDArray[Any], primitives: NDArray[Any], pairs: NDArray[Any]) -> NDArray[np.float32]:
    """The largest sqrt((ij|ij)) of the functions of each pair, rounded up: Schwarz's inequality is
    |(ij|kl)| <= bound_ij bound_kl."""
    squares = np.zeros(len(pairs))
    momenta = shells["momentum"][np.stack((pairs["i"], pairs["j"]), axis=1)]
    kinds = np.column_stack((momenta, pairs["count"]))
    for high, low, count in np.unique(kinds, axis=0).tolist():
        chosen = np.flatnonzero((kinds == (high, low, count)).all(axis=1))
        functions = [(i, j, i, j) for i in range(2 * high + 1) for j in range(2 * low + 1)]
        for part in np.array_split(chosen, -(-len(chosen) * count**2 // AT_ONCE)):
            rows = products(shells, primitives, pairs["i"][part], pairs["j"][part])
            values = values_of((high, low, high, low), functions, rows[:, :, :, None], rows[:, :, None, :])
            squares[part] = np.max(list(values), axis=0).clip(0)
    return np.nextafter(np.sqrt(squares).astype(np.float32), np.float32(np.inf))
