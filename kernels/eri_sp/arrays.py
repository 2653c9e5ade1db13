"""From s and p shells to the arrays the kernels take. Records are as in pairs.cuh."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, family_module

from . import boys
from .work import different_integrals, multiply_adds

__all__ = ["MOST_INTEGRALS", "PAIR", "PRIMITIVE", "SHELL", "arrays_of"]

MOST_INTEGRALS = 2**32 - 1

SHELL = np.dtype(
    [(name, "f8") for name in "xyz"] + [(name, "u4") for name in ("first", "count", "function", "momentum")]
)
PRIMITIVE = np.dtype([("exponent", "f8"), ("coefficient", "f8")])
PAIR = np.dtype([(name, "u4") for name in ("i", "j", "first", "count", "momenta", "spare")])


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
