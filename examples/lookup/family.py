"""Inputs, orders and reference of the lookup family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, named_orders

NONE = 0xFFFFFFFF
CHILDREN = np.dtype([("smaller", np.uint32), ("larger", np.uint32)])

Positions = NDArray[np.int64]


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``entries`` keys and ``queries`` queries, both uniform over all 32-bit numbers, from ``seed``; with
    ``ascending: true`` the queries are sorted. Raises WorkloadError for other parameters."""
    unknown = parameters.keys() - {"entries", "queries", "seed", "ascending"}
    sizes = [parameters.get(name) for name in ("entries", "queries")]
    if unknown or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise WorkloadError(
            f"parameters {dict(parameters)} do not make an input: give entries and queries, whole numbers of at "
            "least 1 (with seed, ascending)"
        )
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    keys, queries = (generator.integers(0, NONE, size, np.uint32, endpoint=True) for size in sizes)
    values = generator.integers(0, NONE, sizes[0], np.uint32)
    return table(np.sort(keys), values) | {
        "queries": np.sort(queries) if parameters.get("ascending", False) else queries
    }


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small tables: one entry, nodes that are not full, one entry more than a full tree."""
    ascending = parameters.get("ascending", False)
    for entries, queries in ((1, 1), (31, 257), (257, 127), (1031, 65)):
        yield {"entries": entries, "queries": queries, "seed": entries, "ascending": ascending}


def table(keys: NDArray[np.uint32], values: NDArray[np.uint32]) -> dict[str, NDArray[Any]]:
    """The inputs that describe the table, from ascending ``keys`` and their ``values``, both uint32 (entries,): these,
    ``children`` (the tree in which entry k in Eytzinger's order has the children 2 k + 1 and 2 k + 2) and its ``root``.

    Raises WorkloadError when there is no entry or the keys do not ascend.
    """
    if not keys.size or (keys[1:] < keys[:-1]).any():
        raise WorkloadError("a table needs at least one entry, and keys that ascend: sort them first")
    entry = named_orders.b_tree(keys.size, 1)
    padded = np.full(2 * keys.size + 1, NONE, np.uint32)
    padded[: keys.size] = entry
    children = np.empty(keys.size, CHILDREN)
    children["smaller"][entry], children["larger"][entry] = padded[1::2], padded[2::2]
    return {"keys": keys, "values": values, "children": children, "root": padded[:1].copy()}


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """By numpy.searchsorted; shares nothing with the kernel, the orders or the tree."""
    values, queries = np.append(arrays["values"], np.uint32(NONE)), arrays["queries"]
    ascending = np.argsort(queries)  # so that numpy's searches, too, find near keys in the cache
    found = np.empty_like(queries)
    found[ascending] = values[np.searchsorted(arrays["keys"], queries[ascending])]
    return {"found": found}
