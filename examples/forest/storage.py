"""One forest in every form that the kernel reads, and the orders of its nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Links, WorkloadError, named_orders

from .trees import NAN_SMALLER, Forest

NODE = np.dtype(
    [
        ("threshold", np.float32),
        *((name, np.uint32) for name in ("word", "smaller", "larger", "leaf", "visits")),
    ]
)
ALIGNED_NODE = np.dtype([*NODE.descr, ("pad_0", np.uint32), ("pad_1", np.uint32)])
HOT_NODE = np.dtype(NODE.descr[:4])
COLD_NODE = np.dtype(NODE.descr[4:])
COMPACT_NODE = np.dtype([("value", np.uint32), ("word", np.uint32)])
LARGER_FOLLOWS = 1 << 31  # this and the next two: forest.cu has the same
DISTANCE_BITS = 20
_MOST_FEATURES = 1024  # of a compact node
FOLLOWS = {
    "depth_first",
    "hot_first",
}  # orders in which a child follows its parent; in the others, its sibling

Places = NDArray[np.int64]


def arrays_of(forest: Forest, rows: NDArray[Any]) -> dict[str, Any]:
    """What the kernel takes, by name, for these ``rows``, (rows, features), which are rounded to float32. Raises
    WorkloadError."""
    rows = np.ascontiguousarray(rows, np.float32)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != forest.features:
        raise WorkloadError(
            f"rows of shape {rows.shape}: the forest takes at least one, of {forest.features} numbers"
        )
    whole = np.empty(len(forest.feature), NODE)
    for name in ("threshold", "smaller", "larger", "visits"):
        whole[name] = getattr(forest, name)
    whole["word"] = forest.feature
    single = forest.leaf_values.shape[1] == 1
    whole["leaf"] = forest.leaf_values[forest.leaf, 0].view(np.uint32) if single else forest.leaf
    whole["leaf"][forest.inner] = 0
    aligned, hot, cold = (np.zeros(len(whole), kind) for kind in (ALIGNED_NODE, HOT_NODE, COLD_NODE))
    for made in (aligned, hot, cold):
        for name in made.dtype.names or ():
            if name in (NODE.names or ()):
                made[name] = whole[name]
    arrays: dict[str, Any] = {
        "nodes": whole,
        "aligned_nodes": aligned,
        "hot_nodes": hot,
        "cold_nodes": cold,
        "roots": forest.roots,
        "leaf_values": forest.leaf_values,
        "base": forest.base,
        "rows": rows,
    }
    reach = 0
    for name, order in orders_of(whole, forest.roots).items():
        arrays[f"compact_{name}"], farthest = compact(whole, forest.inner, order, name)
        reach = max(reach, farthest)
    most = np.zeros(len(forest.roots))
    np.maximum.at(
        most,
        np.searchsorted(forest.roots, np.flatnonzero(~forest.inner), "right") - 1,
        np.abs(forest.leaf_values).max(axis=1)[forest.leaf[~forest.inner]],
    )
    return arrays | {"reach": reach, "magnitude": float(most.sum() + np.abs(forest.base).max())}


def compact(
    nodes: NDArray[Any], inner: NDArray[np.bool_], order: Places, name: str
) -> tuple[NDArray[Any], int]:
    """The nodes in 8 bytes each, in that ``order`` (the old number of each new one) of that ``name``; and the distance
    from one to the farther of its children, at the most. Where that or a feature needs more bits they are zeros."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    made = np.zeros(len(order), COMPACT_NODE)
    made["value"] = np.where(inner, nodes["threshold"].view(np.uint32), nodes["leaf"])[order]
    old = order[inner[order]]
    at, smaller, larger = place[old], place[nodes["smaller"][old]], place[nodes["larger"][old]]
    if name in FOLLOWS:
        distance, mark = np.maximum(smaller, larger) - at, np.where(larger < smaller, LARGER_FOLLOWS, 0)
        assert (np.minimum(smaller, larger) == at + 1).all()
    else:
        distance, mark = smaller - at, np.zeros(len(at), np.int64)
        assert (larger == smaller + 1).all()
    farthest = int(distance.max(initial=0)) + 1
    feature = (nodes["word"][old] & (NAN_SMALLER - 1)).astype(np.int64)
    if farthest >= 1 << DISTANCE_BITS or int(feature.max(initial=0)) >= _MOST_FEATURES:
        return np.zeros(len(order), COMPACT_NODE), farthest
    nan = nodes["word"][old] & NAN_SMALLER
    made["word"][at] = (distance | feature << DISTANCE_BITS | nan | mark).astype(np.uint32)
    return made, farthest


def orders_of(nodes: NDArray[Any], roots: NDArray[Any]) -> dict[str, Places]:
    """Which node (by its number depth first) each place holds, in every order of family.yaml; tree after tree, each
    with its root first."""
    numbers = np.repeat(np.arange(len(nodes)), 2)
    links = Links.from_pairs(
        numbers, np.stack([nodes["smaller"], nodes["larger"]], axis=1).reshape(-1), len(nodes)
    )
    return {
        "depth_first": np.arange(len(nodes)),
        "hot_first": named_orders.hot_first(links, nodes["visits"], roots),
        "breadth_first": named_orders.breadth_first(links, roots),
        "van_emde_boas": named_orders.van_emde_boas(links, roots, together=True),
    }
