"""Inputs and reference of the product by CSR."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ENTRY = np.dtype([("column", np.uint32), ("value", np.float32)])


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """A matrix of ``rows`` rows of up to 40 entries and vectors of ``sides`` sides, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    rows, sides = int(parameters["rows"]), int(parameters["sides"])
    lengths = generator.integers(0, min(rows, 40) + 1, rows)
    lengths[0] = 1  # there is an entry
    entries = np.empty(lengths.sum(), ENTRY)
    entries["column"] = generator.integers(0, rows, len(entries))
    entries["value"] = generator.normal(size=len(entries))
    return {
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32),
        "entries": entries,
        "direction": generator.normal(size=(rows, sides)).astype(np.float32),
    }


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few rows and sides."""
    for rows, sides in ((1, 1), (33, 3), (301, 2)):
        yield {"rows": rows, "sides": sides, "seed": rows}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By scipy in float64; shares nothing with the kernel."""
    entries, direction = arrays["entries"], arrays["direction"].astype(np.float64)
    parts = (
        entries["value"].astype(np.float64),
        entries["column"].astype(np.int64),
        arrays["offsets"].astype(int),
    )
    return {"product": (sparse.csr_array(parts, shape=(len(direction),) * 2) @ direction).astype(np.float32)}
