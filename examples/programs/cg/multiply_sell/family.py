"""Inputs and reference of the product by SELL-C-sigma."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ENTRY = np.dtype([("column", np.uint32), ("value", np.float32)])
SLICE_ROWS = 32  # as in the kernel


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """A matrix of ``rows`` rows of up to 40 entries and vectors of ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, sides = int(parameters["rows"]), int(parameters["sides"])
    lengths = generator.integers(0, min(rows, 40) + 1, rows)
    lengths[0] = 1  # there is an entry
    row_of = np.full(-(-rows // SLICE_ROWS) * SLICE_ROWS, rows, np.uint32)
    row_of[:rows] = np.argsort(-lengths, kind="stable")
    widths = np.append(lengths, 0)[row_of].reshape(-1, SLICE_ROWS).max(axis=1)
    slices = np.concatenate([[0], np.cumsum(widths * SLICE_ROWS)]).astype(np.uint32)
    slots = np.zeros(slices[-1], ENTRY)
    slots["column"] = generator.integers(0, rows, len(slots))
    values = generator.normal(size=len(slots))
    place = (
        np.repeat(np.arange(len(widths)), widths * SLICE_ROWS) * SLICE_ROWS
        + np.arange(len(slots)) % SLICE_ROWS
    )
    turn = (np.arange(len(slots)) - slices[place // SLICE_ROWS]) // SLICE_ROWS
    slots["value"] = np.where(turn < np.append(lengths, 0)[row_of[place]], values, 0)
    direction = generator.normal(size=(rows, sides)).astype(np.float32)
    return {"slices": slices, "slots": slots, "row_of": row_of, "direction": direction}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides."""
    for rows, sides in ((1, 1), (33, 3), (301, 2)):
        yield {"rows": rows, "sides": sides, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By scipy in float64, the matrix entry by entry of the slots."""
    slots, slices, row_of = (
        arrays["slots"],
        arrays["slices"].astype(np.int64),
        arrays["row_of"].astype(np.int64),
    )
    direction = arrays["direction"].astype(np.float64)
    widths = np.diff(slices)
    place = np.repeat(np.arange(len(widths)), widths) * SLICE_ROWS + np.arange(len(slots)) % SLICE_ROWS
    rows, parts = len(direction), (row_of[place], slots["column"].astype(np.int64))
    matrix = sparse.coo_array((slots["value"].astype(np.float64), parts), shape=(rows + 1, rows))
    return {"product": (matrix.tocsr() @ direction)[:-1].astype(np.float32)}
