"""The integrals from the textbook formula with erf, in numpy; shares nothing with the kernels or their tables."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["error_function", "matrices", "repulsion_integrals"]

_AT_ONCE = 1 << 21  # components


def error_function(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """erf, from scipy where it is installed: many times faster than one call a number."""
    try:
        from scipy.special import erf  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        return np.array([math.erf(value) for value in x.ravel()]).reshape(x.shape)
    return np.asarray(erf(x))


def _boys(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """F0(t) = 1/2 sqrt(pi/t) erf(sqrt t), and 1 - t/3 + t^2/10 where t is so small that both vanish."""
    root = np.sqrt(np.maximum(t, 1e-300))
    return np.where(t < 1e-6, 1 - t / 3 + t * t / 10, math.sqrt(math.pi) / 2 * error_function(root) / root)


def repulsion_integrals(shells: NDArray[Any], primitives: NDArray[Any]) -> NDArray[np.float64]:
    """(ij|kl) for i >= j, k >= l, ij >= kl by canonical index:

    sum over a, b, c, d of 2 pi^2.5 / (p q sqrt(p + q)) c_a c_b c_c c_d exp(-ab/p |A-B|^2 - cd/q |C-D|^2)
    F0(pq/(p + q) |P - Q|^2), p = a + b, q = c + d (Helgaker et al., section 9.8.)
    """
    pairs = [_pair(shells, primitives, i, j) for i in range(len(shells)) for j in range(i + 1)]
    lengths = np.array([len(pair) for pair in pairs])
    starts = np.concatenate(([0], np.cumsum(lengths)))
    table = np.concatenate(pairs)
    out = np.empty(len(pairs) * (len(pairs) + 1) // 2)
    for bra, rows in enumerate(pairs):
        at_once = max(1, _AT_ONCE // len(rows))
        sums = np.concatenate(
            [
                rows[:, 4] @ _potential(rows, part)
                for part in np.array_split(table[: starts[bra + 1]], -(-int(starts[bra + 1]) // at_once))
            ]
        )
        first = bra * (bra + 1) // 2
        out[first : first + bra + 1] = np.add.reduceat(sums * table[: starts[bra + 1], 4], starts[: bra + 1])
    return out


def _pair(shells: NDArray[Any], primitives: NDArray[Any], i: int, j: int) -> NDArray[np.float64]:
    """Rows (P, p, weight) of the products of the primitives of two shells."""
    left, right = shells[i], shells[j]
    a = primitives[left["first"] : left["first"] + left["count"]][:, None]
    b = primitives[right["first"] : right["first"] + right["count"]][None, :]
    p = a["exponent"] + b["exponent"]
    centre = [(a["exponent"] * left[axis] + b["exponent"] * right[axis]) / p for axis in "xyz"]
    distance = sum((left[axis] - right[axis]) ** 2 for axis in "xyz")
    decay = np.exp(-(a["exponent"] * b["exponent"]) / p * distance)
    return np.stack([*centre, p, a["coefficient"] * b["coefficient"] * decay], axis=-1).reshape(-1, 5)


def _potential(bra: NDArray[np.float64], ket: NDArray[np.float64]) -> NDArray[np.float64]:
    p, q = bra[:, None, 3], ket[None, :, 3]
    square = sum((bra[:, None, axis] - ket[None, :, axis]) ** 2 for axis in range(3))
    return np.asarray(2 * math.pi**2.5 / (p * q * np.sqrt(p + q)) * _boys(p * q / (p + q) * square))


def matrices(
    integrals: NDArray[np.float64], density: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """J_ij = sum (ij|kl) D_kl and K_ik = sum (ij|kl) D_jl from the list, all eight copies written out."""
    size = len(density)
    i, j = np.tril_indices(size)
    number = np.zeros((size, size), np.int64)
    number[i, j] = number[j, i] = np.arange(len(i))
    coulomb, exchange = np.zeros((size, size)), np.zeros((size, size))
    for first in range(size):
        high = np.maximum(number[first][:, None, None], number[None])
        low = np.minimum(number[first][:, None, None], number[None])
        block = integrals[high * (high + 1) // 2 + low]  # (first j|k l)
        coulomb[first] = np.einsum("jkl,kl->j", block, density)
        exchange[first] = np.einsum("jkl,jl->k", block, density)
    return coulomb, exchange


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """What family.py's ``reference`` gives: the output that ``options`` ask for, and a single zero for the other."""
    integrals = repulsion_integrals(arrays["shells"], arrays["primitives"])
    if options["output"] == "integrals":
        return {"integrals": integrals, "coulomb": np.zeros((1, 1)), "exchange": np.zeros((1, 1))}
    coulomb, exchange = matrices(integrals, arrays["density"])
    return {"integrals": np.zeros(1), "coulomb": coulomb, "exchange": exchange}
