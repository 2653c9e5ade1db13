"""Rows, orders and reference of the forest example."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from .storage import ORDERS, Places, arrays_of
from .trees import LEAF, NAN_SMALLER, load, of_sklearn

__all__ = ["arrays_of", "inputs", "of_sklearn", "orders", "ragged", "reference"]

FORESTS = Path(__file__).parent / "forests"
_MIXED = 0.25  # of the numbers of a row are another row's
_ROWS = 4096  # whose walks stay in a core's caches


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``forest``, a name in forests/, or its first ``trees``; so many ``rows``, made from ``seed`` of those of its data
    set: a row with a quarter of its numbers from other rows. Raises WorkloadError."""
    unknown = parameters.keys() - {"forest", "trees", "rows", "seed"}
    sizes = [parameters.get("rows"), parameters.get("trees", 1)]
    if unknown or "forest" not in parameters or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise WorkloadError(
            f"parameters {dict(parameters)} do not make an input: give forest, a name, and rows, a whole number of at "
            "least 1 (with trees, seed)"
        )
    forest, known = load(FORESTS / f"{parameters['forest']}.npz")
    forest = forest.first(parameters.get("trees", len(forest.roots)))
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    shape = (parameters["rows"], known.shape[1])
    row = np.broadcast_to(generator.integers(0, len(known), (shape[0], 1)), shape).copy()
    mixed = generator.random(shape, np.float32) < _MIXED
    row[mixed] = generator.integers(0, len(known), int(mixed.sum()))
    return arrays_of(forest, np.take_along_axis(known, row, axis=0))


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and trees, around the sizes of blocks, warps and slices."""
    for rows, trees in ((1, 1), (31, 7), (257, 9), (1031, 3)):
        yield {"forest": parameters["forest"], "trees": trees, "rows": rows, "seed": rows}


def leaves(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """The node in which each row ends in each tree, int64 (rows, trees): by numpy from the forest depth first, in all
    threads, without the forms or orders."""
    nodes, roots, rows = (arrays[name] for name in ("nodes", "roots", "rows"))
    word, threshold = nodes["word"].copy(), nodes["threshold"].copy()
    feature, inner = (word & (NAN_SMALLER - 1)).astype(np.int64), (word & LEAF) == 0
    takes_nan = (word & NAN_SMALLER) != 0
    child = np.stack([nodes["larger"], nodes["smaller"]], axis=1).astype(np.int64).reshape(-1)
    found = np.empty((len(rows), len(roots)), np.int64)

    def some(begin: int) -> None:
        own = rows[begin : begin + _ROWS]
        cells, starts = own.reshape(-1), np.arange(len(own)) * own.shape[1]
        for tree, root in enumerate(roots.tolist()):
            ends = found[begin : begin + _ROWS, tree]
            ends[:] = root
            going = np.arange(len(own)) if inner[root] else np.arange(0)
            while going.size:
                at = ends[going]
                cell = cells[starts[going] + feature[at]]
                smaller = (cell <= threshold[at]) | (np.isnan(cell) & takes_nan[at])
                at = child[2 * at + smaller]
                ends[going] = at
                going = going[inner[at]]

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(some, range(0, len(rows), _ROWS)))
    return found


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """In float64: the sum of the leaves' values in the order of the trees, then the base."""
    nodes, values = arrays["nodes"], arrays["leaf_values"].astype(np.float64)
    single = values.shape[1] == 1
    own = nodes["leaf"].view(np.float32).astype(np.float64)[:, None] if single else None
    ends = leaves(arrays)
    total = np.zeros((len(ends), values.shape[1]))
    for tree in range(ends.shape[1]):
        total += own[ends[:, tree]] if own is not None else values[nodes["leaf"][ends[:, tree]]]
    return {"result": (total + arrays["base"].astype(np.float64)).astype(np.float32)}


def _order(
    make: Callable[[NDArray[Any], NDArray[Any]], Places],
) -> Callable[[Mapping[str, NDArray[Any]]], Places]:
    return lambda arrays: make(arrays["nodes"], arrays["roots"])


orders = {name: _order(make) for name, make in ORDERS.items() if name != "depth_first"}
