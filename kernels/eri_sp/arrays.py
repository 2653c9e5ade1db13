"""From s and p shells to the arrays the kernels take. Records are as in pairs.cuh."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from . import boys
from .work import different_integrals, multiply_adds

__all__ = ["MOST_INTEGRALS", "PAIR", "PRIMITIVE", "SHELL", "arrays_of"]

MOST_INTEGRALS = 2**32 - 1
_MOST_SHELLS = 65535

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
    if len(placed) > _MOST_SHELLS:
        raise WorkloadError(f"{len(placed)} shells; at most {_MOST_SHELLS} can be numbered in pairs")
    shells, primitives = _shells(placed)
    functions = int((2 * shells["momentum"].astype(int) + 1).sum())
    different = different_integrals(functions)
    if density is None and different > MOST_INTEGRALS:
        raise WorkloadError(
            f"{different:,} integrals; at most {MOST_INTEGRALS:,} can be listed: ask for output=coulomb_exchange"
        )
    pairs = _pairs(shells)
    return {
        "shells": shells,
        "primitives": primitives,
        "pairs": pairs,
        "boys_table": boys.table(),
        "density": np.zeros((1, 1)) if density is None else _symmetric(density, functions),
        "products": int(pairs["count"].sum(dtype=np.int64)),
        "quartets": len(pairs) * (len(pairs) + 1) // 2,
        "different": different,
        "multiply_adds": multiply_adds(pairs),
        "listed": different if density is None else 0,
        "digested": 0 if density is None else functions,
    }


def _shells(placed: Sequence[tuple[Sequence[float], Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    shells = np.zeros(len(placed), SHELL)
    counts = np.array([len(shell.exponents) for _, shell in placed])
    momenta = np.array([shell.momentum for _, shell in placed])
    centres = np.array([centre for centre, _ in placed], np.float64)
    centres -= centres[0]  # far from 0 a difference of two products would lose digits
    for axis, name in enumerate("xyz"):
        shells[name] = centres[:, axis]
    shells["count"], shells["first"] = counts, np.cumsum(counts) - counts
    shells["momentum"], shells["function"] = momenta, np.cumsum(2 * momenta + 1) - (2 * momenta + 1)
    primitives = np.zeros(int(counts.sum()), PRIMITIVE)
    primitives["exponent"] = np.concatenate([shell.exponents for _, shell in placed])
    primitives["coefficient"] = np.concatenate([shell.coefficients for _, shell in placed])
    return shells, primitives


def _pairs(shells: NDArray[Any]) -> NDArray[Any]:
    """All pairs, in the order (0,0) (1,0) (1,1) (2,0) ..., the shell of the higher momentum first."""
    i, j = np.tril_indices(len(shells))
    swapped = shells["momentum"][i] < shells["momentum"][j]
    pairs = np.zeros(len(i), PAIR)
    pairs["i"], pairs["j"] = np.where(swapped, j, i), np.where(swapped, i, j)
    pairs["momenta"] = shells["momentum"][i] + shells["momentum"][j]
    counts = shells["count"][i].astype(np.int64) * shells["count"][j]
    if int(counts.sum()) > MOST_INTEGRALS:
        raise WorkloadError(f"{int(counts.sum()):,} primitive pairs; at most {MOST_INTEGRALS:,}")
    pairs["count"], pairs["first"] = counts, np.cumsum(counts) - counts
    return pairs


def _symmetric(density: NDArray[np.float64], functions: int) -> NDArray[np.float64]:
    if density.shape != (functions, functions):
        raise WorkloadError(
            f"density has shape {density.shape}; the {functions} functions need ({functions}, {functions})"
        )
    if not np.isfinite(density).all() or not np.allclose(density, density.T, rtol=0, atol=1e-12):
        raise WorkloadError("density must be finite and symmetric")
    return np.ascontiguousarray(density, np.float64)
