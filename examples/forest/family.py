"""Rows and reference of the forest example."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from .storage import arrays_of
from .trees import LEAF, NAN_SMALLER, load, of_sklearn

__all__ = ["arrays_of", "inputs", "of_sklearn", "ragged", "reference"]

FORESTS = Path(__file__).parent / "forests"
_MIXED = 0.25  # of the numbers of a row are another row's
_WALKS = (
    1 << 17
)  # at a time: few enough for a core's caches, so many that threads rarely wait for Python's lock


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


def _ends(arrays: Mapping[str, NDArray[Any]], rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """The node in which each of ``rows`` ends in each tree, (rows, trees)."""
    nodes, roots = arrays["nodes"], arrays["roots"].astype(np.int64)
    word, threshold = nodes["word"].copy(), nodes["threshold"].copy()
    feature, inner = (word & (NAN_SMALLER - 1)).astype(np.int64), word < LEAF
    takes_nan = (word & NAN_SMALLER) != 0
    child = np.stack([nodes["larger"], nodes["smaller"]], axis=1).astype(np.int64).reshape(-1)
    cells, starts = rows.reshape(-1), np.repeat(np.arange(len(rows)) * rows.shape[1], len(roots))
    ends = np.tile(roots, len(rows))
    going = np.flatnonzero(inner.take(ends))
    while going.size:
        at = ends.take(going)
        cell = cells.take(starts.take(going) + feature.take(at))
        smaller = (cell <= threshold.take(at)) | (np.isnan(cell) & takes_nan.take(at))
        at = child.take(2 * at + smaller)
        ends[going] = at
        going = going[inner.take(at)]
    return ends.reshape(len(rows), -1)


def leaves(
    arrays: Mapping[str, NDArray[Any]], use: Callable[[NDArray[np.int64]], NDArray[Any]] = np.array
) -> NDArray[Any]:
    """The node in which each row ends in each tree, int64 (rows, trees), or what ``use`` makes of them, some rows at a
    time: by numpy from the forest depth first, in all threads, without the forms or orders."""
    rows = arrays["rows"]
    at_once = max(1, _WALKS // len(arrays["roots"]))
    parts = [rows[begin : begin + at_once] for begin in range(0, len(rows), at_once)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return np.concatenate(list(pool.map(lambda part: use(_ends(arrays, part)), parts)))


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The sum of the leaves' values and the base in float64."""
    leaf, values = arrays["nodes"]["leaf"].copy(), arrays["leaf_values"].astype(np.float64)
    own = leaf.view(np.float32).astype(np.float64) if values.shape[1] == 1 else None

    def total(ends: NDArray[np.int64]) -> NDArray[Any]:
        if own is not None:
            return np.asarray(own.take(ends).sum(axis=1, keepdims=True))
        return np.asarray(values.take(leaf.take(ends), axis=0).sum(axis=1))

    return {"result": (leaves(arrays, total) + arrays["base"].astype(np.float64)).astype(np.float32)}
