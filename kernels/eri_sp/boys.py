"""The Boys functions Fn(T) = integral over u in [0, 1] of u^2n exp(-T u^2) up to n = 4, as a table of polynomials
(Helgaker, Joergensen, Olsen, Molecular Electronic-Structure Theory, section 9.8)."""

import functools

import numpy as np
from numpy.typing import NDArray

__all__ = ["END", "ORDERS", "ROWS", "functions", "table"]

ORDERS = 5
END = 40.0  # boys.cuh: boys_end
ROWS = 160
_WIDTH = END / ROWS
_DEGREE = 7
_TERMS = 220  # of the series; at T = 41 the last is 1e-17 of the sum


def functions(order: int, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fn of each ``t`` from 0 to 41 by exp(-t) sum over k of (2t)^k / ((2n+1)(2n+3) ... (2n+2k+1)), whose terms are all
    positive."""
    term = np.exp(-t) / (2 * order + 1)
    total = term.copy()
    for k in range(1, _TERMS):
        term = term * (2 * t / (2 * order + 2 * k + 1))
        total += term
    return total


@functools.cache
def _rows() -> NDArray[np.float64]:
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    middles = (np.arange(ROWS) + 0.5) * _WIDTH
    made = np.empty((ORDERS, ROWS, _DEGREE + 1))
    for order in range(ORDERS):
        values = functions(order, (middles + _WIDTH / 2 * nodes[:, None]).ravel()).reshape(_DEGREE + 1, ROWS)
        series = np.polynomial.chebyshev.chebfit(nodes, values, _DEGREE)
        for row in range(ROWS):
            made[order, row] = np.polynomial.chebyshev.cheb2poly(series[:, row])
    return made / (_WIDTH / 2) ** np.arange(_DEGREE + 1)


def table() -> NDArray[np.void]:
    """(ORDERS, ROWS) polynomials of degree 7 in T less the middle of a row 0.25 wide; within 4 units in the last place
    of Fn for T < 40."""
    rows = np.zeros((ORDERS, ROWS), [(f"c{power}", np.float64) for power in range(_DEGREE + 1)])
    for power in range(_DEGREE + 1):
        rows[f"c{power}"] = _rows()[:, :, power]
    return rows
