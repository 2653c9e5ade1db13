"""The integrals from the moments of a normal distribution, in numpy; shares nothing with the kernels or their tables.

With s = u^2 and alpha = pq/(p + q), the integrand of (ab|cd) over u in [0, 1] is exp(-alpha |P-Q|^2 s) times, for each
axis, the mean of (x1 - A)^a (x1 - B)^b (x2 - C)^c (x2 - D)^d, where x1 and x2 are normally distributed around
P - alpha/p s (P - Q) and Q + alpha/q s (P - Q) with variances (1 - alpha/p s)/2p and (1 - alpha/q s)/2q and covariance
s/(2p + 2q) (Dupuis, Rys, King, J. Chem. Phys. 65, 111, 1976, whose recursion these means obey). A mean is a polynomial
in s, and the integral of s^n exp(-T s) is the Boys function Fn(T).
"""

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.family import family_module

__all__ = ["AT_ONCE", "products", "reference", "repulsion_integrals", "values_of"]

AT_ONCE = 1 << 17  # quartets of primitives

Real = NDArray[np.float64]
Polynomial = list[Real]  # in s, the lowest power first


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What family.py's ``reference`` gives: the output that ``options`` ask for, and a single zero for the other."""
    integrals = repulsion_integrals(arrays["shells"], arrays["primitives"])
    if options["output"] == "integrals":
        return {"integrals": integrals, "coulomb": np.zeros((1, 1)), "exchange": np.zeros((1, 1))}
    coulomb, exchange = family_module("eri", "reference").matrices(integrals, arrays["density"])
    return {"integrals": np.zeros(1), "coulomb": coulomb, "exchange": exchange}


def repulsion_integrals(shells: NDArray[Any], primitives: NDArray[Any]) -> Real:
    """(ij|kl) of functions for i >= j, k >= l, ij >= kl by canonical index."""
    count = int((2 * shells["momentum"].astype(int) + 1).sum())
    pairs = count * (count + 1) // 2
    out = np.zeros(pairs * (pairs + 1) // 2)
    groups = _groups(shells, primitives)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, bra in enumerate(groups):
            left, right = np.tril_indices(len(bra.shells))
            _fill_all(pool, out, shells, bra, bra, left, right)
            for ket in groups[:number]:
                left, right = np.indices((len(bra.shells), len(ket.shells))).reshape(2, -1)
                _fill_all(pool, out, shells, bra, ket, left, right)
    return out


class Group(NamedTuple):
    """Pairs of shells with equal momenta and equally many products: shells (pair, 2), the higher momentum first, and
    products (11, pair, product)."""

    shells: NDArray[np.int64]
    products: Real


def _groups(shells: NDArray[Any], primitives: NDArray[Any]) -> list[Group]:
    i, j = np.tril_indices(len(shells))
    swapped = shells["momentum"][i] < shells["momentum"][j]
    pairs = np.stack((np.where(swapped, j, i), np.where(swapped, i, j)), axis=1)
    kinds = np.stack((shells["momentum"][pairs].sum(axis=1), shells["count"][pairs].prod(axis=1)), axis=1)
    found = (pairs[(kinds == kind).all(axis=1)] for kind in np.unique(kinds, axis=0))
    return [Group(some, products(shells, primitives, *some.T)) for some in found]


def _fill_all(
    pool: ThreadPoolExecutor, out: Real, shells: NDArray[Any], bra: Group, ket: Group,
    left: NDArray[Any], right: NDArray[Any],
) -> None:  # fmt: skip
    """Quartets of pairs ``left`` of one group and ``right`` of another, as many at once as there is room for."""
    width = max(1, AT_ONCE // (bra.products.shape[2] * ket.products.shape[2]))

    def fill(first: int) -> None:
        some, others = left[first : first + width], right[first : first + width]
        four = np.concatenate((bra.shells[some], ket.shells[others]), axis=1)
        _fill(out, shells, four, bra.products[:, some, :, None], ket.products[:, others, None, :])

    for _ in pool.map(fill, range(0, len(left), width)):
        pass


def products(
    shells: NDArray[Any], primitives: NDArray[Any], i: NDArray[np.int64], j: NDArray[np.int64]
) -> Real:
    """P, P - A, P - B, p and weight of the products of the primitives of shells ``i`` and ``j``, as many for each pair:
    (11, pair, product)."""
    left, right = shells[i][:, None], shells[j][:, None]
    m = np.arange(int(left["count"][0, 0]) * int(right["count"][0, 0]))
    a, b = primitives[left["first"] + m // right["count"]], primitives[right["first"] + m % right["count"]]
    p = a["exponent"] + b["exponent"]
    centre = [(a["exponent"] * left[axis] + b["exponent"] * right[axis]) / p for axis in "xyz"]
    from_a = [b["exponent"] / p * (right[axis] - left[axis]) for axis in "xyz"]
    from_b = [a["exponent"] / p * (left[axis] - right[axis]) for axis in "xyz"]
    distance = sum((left[axis] - right[axis]) ** 2 for axis in "xyz")
    weight = a["coefficient"] * b["coefficient"] * np.exp(-(a["exponent"] * b["exponent"]) / p * distance)
    return np.stack([*centre, *from_a, *from_b, p, weight])


def _fill(out: Real, shells: NDArray[Any], four: NDArray[Any], left: Real, right: Real) -> None:
    """Every integral of some quartets of shells with equal momenta, from the products of either pair."""
    momenta = shells["momentum"][four[0]].tolist()
    first = shells["function"][four].astype(np.int64)
    every = list(itertools.product(*(range(2 * momentum + 1) for momentum in momenta)))
    for chosen, values in zip(every, values_of(momenta, every, left, right), strict=True):
        i, j, k, low = (first[:, place] + chosen[place] for place in range(4))
        out[_triangle(_triangle(i, j), _triangle(k, low))] = values


def values_of(
    momenta: Sequence[int], every: Iterable[Sequence[int]], left: Real, right: Real
) -> Iterator[Real]:
    """Of quartets of shells with these momenta, the integrals (quartet) for each choice of their four functions, from
    the products (11, quartet, bra's, ket's) of either pair."""
    p, q = left[9], right[9]
    alpha = p * q / (p + q)
    apart = [left[axis] - right[axis] for axis in range(3)]
    t = alpha * sum(distance**2 for distance in apart)
    scale = 2 * math.pi**2.5 / (p * q * np.sqrt(p + q)) * left[10] * right[10]
    boys = [scale * value for value in _boys(sum(momenta), t)]
    spread = (
        [0.5 / p, -0.5 * alpha / p**2],  # the variance of x1
        [0.5 / q, -0.5 * alpha / q**2],
        [np.zeros(1), 0.5 / (p + q)],  # their covariance
    )
    cached: dict[tuple[int, tuple[int, ...]], Polynomial] = {}
    for chosen in every:
        total: Polynomial = [np.ones(1)]
        for axis in range(3):
            powers = tuple(place for place in range(4) if momenta[place] and chosen[place] == axis)
            if (axis, powers) not in cached:
                shift = (-alpha / p * apart[axis], alpha / q * apart[axis])
                means = [
                    [rows[column + axis], shift[place // 2]]
                    for place, (rows, column) in enumerate(((left, 3), (left, 6), (right, 3), (right, 6)))
                ]
                cached[axis, powers] = _mean(list(powers), means, spread)
            total = _times(total, cached[axis, powers])
        each = np.asarray(sum(value * boys[power] for power, value in enumerate(total)))
        yield each.sum(axis=(1, 2))


def _mean(factors: list[int], means: list[Polynomial], spread: tuple[Polynomial, ...]) -> Polynomial:
    """Of a product of deviations, 0 and 1 of x1, 2 and 3 of x2 (Isserlis)."""
    if not factors:
        return [np.ones(1)]
    first, *rest = factors
    total = _times(means[first], _mean(rest, means, spread))
    for place, other in enumerate(rest):
        both = spread[2 if (first < 2) != (other < 2) else 0 if first < 2 else 1]
        total = _plus(total, _times(both, _mean(rest[:place] + rest[place + 1 :], means, spread)))
    return total


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) < len(b):
        a, b = b, a
    made = [x * b[0] for x in a]
    for n, y in enumerate(b[1:], 1):
        made.append(np.zeros(1))
        for m, x in enumerate(a):
            made[m + n] = made[m + n] + x * y
    return made


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    return [x + y for x, y in itertools.zip_longest(a, b, fillvalue=np.zeros(1))]


def _triangle(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    high, low = np.maximum(a, b), np.minimum(a, b)
    return np.asarray(high * (high + 1) // 2 + low)


def _boys(order: int, t: Real) -> list[Real]:
    """F0 to Fn: for small T from a series for the highest, downwards; beyond from erf, upwards, which loses nothing
    where T is above 3n."""
    made = [np.empty_like(t) for _ in range(order + 1)]
    end = 3.0 * order + 1e-3
    near = t < end
    small, large = t[near], t[~near]
    decay, term = np.exp(-small), np.exp(-small) / (2 * order + 1)
    value = term.copy()
    for k in range(1, 25 + int(3 * end)):
        term = term * (2 * small / (2 * order + 2 * k + 1))
        value += term
    made[order][near] = value
    for n in range(order - 1, -1, -1):
        made[n][near] = value = (2 * small * value + decay) / (2 * n + 1)
    root = np.sqrt(large)
    made[0][~near] = value = (
        math.sqrt(math.pi) / 2 * family_module("eri", "reference").error_function(root) / root
    )
    if order:
        decay = np.exp(-large)
    for n in range(order):
        made[n + 1][~near] = value = ((2 * n + 1) * value - decay) / (2 * large)
    return made
