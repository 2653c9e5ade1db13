"""How much there is to do: integrals, and the multiply-adds of double precision that they take at least."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .launches import CLASSES

__all__ = ["different_integrals", "multiply_adds", "quartets_of_primitives"]

_FUNCTIONS = (1, 3, 9)  # of a pair, by the sum of its momenta
# Terms of all functions of such a pair in Hermite Gaussians: one; two each; four, or three where both have one axis.
_TERMS = (1, 3 * 2, 6 * 4 + 3 * 3)


def different_integrals(functions: int) -> int:
    """Of so many functions."""
    pairs = functions * (functions + 1) // 2
    return pairs * (pairs + 1) // 2


def quartets_of_primitives(pairs: NDArray[Any]) -> dict[str, int]:
    """By class, of all unique quartets of shells."""
    sums = [int(pairs["count"][pairs["momenta"] == momenta].sum(dtype=np.int64)) for momenta in range(3)]
    squares = [
        int((pairs["count"][pairs["momenta"] == momenta].astype(np.int64) ** 2).sum()) for momenta in range(3)
    ]
    return {
        name: (sums[bra] ** 2 + squares[bra]) // 2 if bra == ket else sums[bra] * sums[ket]
        for (bra, ket), name in CLASSES.items()
    }


def multiply_adds(pairs: NDArray[Any]) -> int:
    """Of all quartets of primitives: 6 for distance and reduced exponent, a polynomial of degree 7, the other Boys
    functions and their factors, the Hermite integrals, and the ket's functions for every Hermite Gaussian of the bra.
    The bra's own functions and exp are left out."""
    quartets = quartets_of_primitives(pairs)
    return sum(quartets[name] * _each(bra, ket) for (bra, ket), name in CLASSES.items())


def _each(bra: int, ket: int) -> int:
    order = bra + ket
    hermites = sum(_hermites(most) - 1 for most in range(1, order + 1))
    return 6 + 7 + 2 * order + 1 + hermites + _hermites(bra) * _TERMS[ket]


def _hermites(order: int) -> int:
    return (order + 1) * (order + 2) * (order + 3) // 6
