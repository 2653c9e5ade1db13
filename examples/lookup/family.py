"""Inputs, orders and reference of the lookup family."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

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
    ``children`` (the tree in which entry k of `breadth_first` has the children 2 k + 1 and 2 k + 2) and its ``root``.

    Raises WorkloadError when there is no entry or the keys do not ascend.
    """
    if not keys.size or (keys[1:] < keys[:-1]).any():
        raise WorkloadError("a table needs at least one entry, and keys that ascend: sort them first")
    entry = breadth_first(keys.size, 1)
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


# ---- orders: which entry (by key) each slot holds


def breadth_first(entries: int, width: int) -> Positions:
    """Nodes of ``width`` entries, int64 (entries,): node k has the slots from k * width on, and the child before its
    key i is node k * (width + 1) + i + 1. Only the last node may have fewer entries.

    A width of 1 is Eytzinger's order, wider ones an implicit B-tree (Khuong, Morin 2017: Array Layouts for
    Comparison-Based Searching).
    """
    count = -(-entries // width)
    own = np.full(count, width)
    own[-1] = entries - (count - 1) * width
    levels = [slice(0, 1)]
    while (
        levels[-1].stop < count
    ):  # the children of nodes a to b are nodes a (width + 1) + 1 to b (width + 1)
        above = levels[-1]
        levels.append(slice(above.start * (width + 1) + 1, min(count, above.stop * (width + 1) + 1)))
    sizes = own.copy()  # entries in the subtree of each node
    below: list[Positions] = [np.zeros((1, width + 1), np.int64)] * len(levels)
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        of_children = np.zeros((level.stop - level.start) * (width + 1), np.int64)
        if depth + 1 < len(levels):
            children = sizes[levels[depth + 1]]
            of_children[: children.size] = children
        below[depth] = of_children.reshape(-1, width + 1)
        sizes[level] += below[depth].sum(axis=1)
    first = np.zeros(count, np.int64)  # the smallest entry in the subtree of each node
    order = np.empty((count, width), np.int64)
    for depth, level in enumerate(levels):
        before = np.cumsum(below[depth], axis=1)  # entries up to and with child i, less the node's own
        order[level] = first[level, None] + before[:, :-1] + np.arange(width)
        if depth + 1 < len(levels):
            starts = first[level, None] + np.arange(width + 1)
            starts[:, 1:] += before[:, :-1]
            first[levels[depth + 1]] = starts.reshape(-1)[: sizes[levels[depth + 1]].size]
    return order.reshape(-1)[:entries]


def van_emde_boas(entries: int) -> Positions:
    """The same binary tree, int64 (entries,): its upper half of levels, then each subtree below from left to right,
    each of them stored likewise (Frigo, Leiserson, Prokop, Ramachandran 1999: Cache-Oblivious Algorithms)."""
    numbers = _recursive(entries.bit_length()) - 1
    return breadth_first(entries, 1)[numbers[numbers < entries]]


def _recursive(height: int) -> Positions:
    """Breadth-first numbers from 1 of a complete tree in van Emde Boas order, int64 (2**height - 1,)."""
    if height == 1:
        return np.ones(1, np.int64)
    above = height // 2
    below = _recursive(height - above)
    depth = np.frexp(below)[1].astype(np.int64) - 1  # of each node in its own subtree
    roots = np.arange(1 << above, 2 << above, dtype=np.int64)[:, None]
    return np.concatenate([_recursive(above), ((roots - 1 << depth) + below).reshape(-1)])


def _order(make: Callable[[int], Positions]) -> Callable[[Mapping[str, NDArray[Any]]], Positions]:
    return lambda arrays: make(arrays["keys"].size)


orders = {
    "eytzinger": _order(lambda entries: breadth_first(entries, 1)),
    "van_emde_boas": _order(van_emde_boas),
    "nodes4": _order(lambda entries: breadth_first(entries, 4)),
    "nodes8": _order(lambda entries: breadth_first(entries, 8)),
    "nodes16": _order(lambda entries: breadth_first(entries, 16)),
}
