"""From a molecule and a basis to the arrays the kernels take: shells, primitives, pairs, the host's table of primitive
pairs. Records are as in pairs.cuh."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from . import boys
from .basis import Shell
from .tiles import runs_array

__all__ = ["MOST_INTEGRALS", "PAIR", "PRIMITIVE", "PRIMITIVE_PAIR", "SHELL", "arrays_of", "pair_bounds"]

MOST_INTEGRALS = 2**32 - 1
_MOST_SHELLS = 65535

SHELL = np.dtype([("x", "f8"), ("y", "f8"), ("z", "f8"), ("first", "u4"), ("count", "u4")])
PRIMITIVE = np.dtype([("exponent", "f8"), ("coefficient", "f8"), ("kind", "u4"), ("spare", "u4")])
PAIR = np.dtype([("i", "u4"), ("j", "u4"), ("first", "u4"), ("count", "u4"), ("bound", "f8")])
PRIMITIVE_PAIR = np.dtype(
    [(name, "f8") for name in ("x", "y", "z", "exponent", "factor")] + [("kind", "u4"), ("spare", "u4")]
)

Arrays = Mapping[str, NDArray[Any]]


def arrays_of(
    placed: Sequence[tuple[Sequence[float], Shell]], density: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Everything the kernels take, from shells with their centres in bohr. With a symmetric ``density`` (shells,
    shells) for its Coulomb and exchange matrices, else for the list of integrals. Raises WorkloadError."""
    if not placed:
        raise WorkloadError("no s shell at all: there is nothing to integrate")
    if len(placed) > _MOST_SHELLS:
        raise WorkloadError(f"{len(placed)} shells; at most {_MOST_SHELLS} can be numbered in pairs")
    pair_count = len(placed) * (len(placed) + 1) // 2
    work_units = pair_count * (pair_count + 1) // 2
    if density is None and work_units > MOST_INTEGRALS:
        raise WorkloadError(
            f"{work_units:,} integrals; at most {MOST_INTEGRALS:,} can be listed: ask for output=coulomb_exchange"
        )
    shells, primitives = _shells(placed)
    pairs = _pairs(shells)
    host_table = _primitive_pairs(shells, primitives, pairs)
    pairs["bound"] = pair_bounds(pairs, host_table)
    counts = pairs["count"].astype(np.uint64)
    components = (int(counts.sum()) ** 2 + int((counts**2).sum())) // 2
    return {
        "shells": shells,
        "primitives": primitives,
        "pairs": pairs,
        "host_table": host_table,
        "quotient": boys.quotient(),
        "runs": runs_array(pairs["count"]),
        "density": np.zeros((1, 1)) if density is None else _symmetric(density, len(shells)),
        "work_units": work_units,
        "components": components,
        "listed": work_units if density is None else 0,
        "digested": 0 if density is None else len(shells),
    }


def pair_bounds(pairs: NDArray[Any], table: NDArray[Any]) -> NDArray[np.float64]:
    """sqrt((ij|ij)) of each pair: Schwarz's inequality is |(ij|kl)| <= bound_ij bound_kl."""
    bounds = np.zeros(len(pairs))
    for count in np.unique(pairs["count"]):
        chosen = np.flatnonzero(pairs["count"] == count)
        for part in np.array_split(chosen, -(-len(chosen) * int(count) ** 2 // (1 << 20))):
            rows = table[pairs["first"][part][:, None] + np.arange(count)]
            p = rows["exponent"]
            sums = p[:, :, None] + p[:, None, :]
            square = sum((rows[axis][:, :, None] - rows[axis][:, None, :]) ** 2 for axis in "xyz")
            values = boys.f0(p[:, :, None] * p[:, None, :] / sums * square) / np.sqrt(sums)
            bounds[part] = np.sqrt(np.einsum("na,nab,nb->n", rows["factor"], values, rows["factor"]).clip(0))
    return bounds


def _shells(
    placed: Sequence[tuple[Sequence[float], Shell]],
) -> tuple[NDArray[Any], NDArray[Any]]:
    shells = np.zeros(len(placed), SHELL)
    counts = np.array([len(shell.exponents) for _, shell in placed])
    centres = np.array([centre for centre, _ in placed], np.float64)
    centres -= centres[0]  # far from 0 a difference of two products would lose digits
    for axis, name in enumerate("xyz"):
        shells[name] = centres[:, axis]
    shells["count"], shells["first"] = counts, np.cumsum(counts) - counts
    primitives = np.zeros(int(counts.sum()), PRIMITIVE)
    primitives["exponent"] = np.concatenate([shell.exponents for _, shell in placed])
    primitives["coefficient"] = np.concatenate([shell.coefficients for _, shell in placed])
    primitives["kind"] = np.unique(primitives["exponent"], return_inverse=True)[1]
    return shells, primitives


def _pairs(shells: NDArray[Any]) -> NDArray[Any]:
    """All pairs i >= j, in the order (0,0) (1,0) (1,1) (2,0) ..."""
    i, j = np.tril_indices(len(shells))
    pairs = np.zeros(len(i), PAIR)
    pairs["i"], pairs["j"] = i, j
    counts = shells["count"][i].astype(np.int64) * shells["count"][j]
    if int(counts.sum()) > MOST_INTEGRALS:
        raise WorkloadError(f"{int(counts.sum()):,} primitive pairs; at most {MOST_INTEGRALS:,}")
    pairs["count"], pairs["first"] = counts, np.cumsum(counts) - counts
    return pairs


def _primitive_pairs(shells: NDArray[Any], primitives: NDArray[Any], pairs: NDArray[Any]) -> NDArray[Any]:
    """The products of primitives of each pair, those of i slowest (pairs.cuh: product)."""
    owner = np.repeat(np.arange(len(pairs)), pairs["count"])
    m = np.arange(len(owner)) - pairs["first"][owner].astype(np.int64)
    left, right = shells[pairs["i"][owner]], shells[pairs["j"][owner]]
    a = primitives[left["first"] + m // right["count"]]
    b = primitives[right["first"] + m % right["count"]]
    made = np.zeros(len(owner), PRIMITIVE_PAIR)
    p = made["exponent"] = a["exponent"] + b["exponent"]
    square = sum((left[axis] - right[axis]) ** 2 for axis in "xyz")
    for axis in "xyz":
        made[axis] = (a["exponent"] * left[axis] + b["exponent"] * right[axis]) / p
    decay = np.exp(-a["exponent"] * b["exponent"] / p * square)
    made["factor"] = np.sqrt(2 * np.pi**2.5) * a["coefficient"] * b["coefficient"] * decay / p
    return made


def _symmetric(density: NDArray[np.float64], shells: int) -> NDArray[np.float64]:
    if density.shape != (shells, shells):
        raise WorkloadError(
            f"density has shape {density.shape}; the {shells} shells need ({shells}, {shells})"
        )
    if not np.isfinite(density).all() or not np.allclose(density, density.T, rtol=0, atol=1e-12):
        raise WorkloadError("density must be finite and symmetric")
    return np.ascontiguousarray(density, np.float64)
