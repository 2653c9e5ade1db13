"""Orders that need no Python of a family: permutations of an index space made from keys, counts and links.

Each is ``permutation[new] = old``, int64 of the space's extent: the index that comes first, then the second. Those
along links walk a tree: below each element hangs, in the order of its links, what no element before it leads to, level
by level from the roots. What no root leads to is a root of its own, the smallest index first, so every index comes
once.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout.trees import Links, Permutation, Trees


def random_order(extent: int, seed: int = 0) -> Permutation:
    """The same one for the same seed."""
    return np.random.default_rng(seed).permutation(extent).astype(np.int64)


def sort_by(key: NDArray[Any], descending: bool = False) -> Permutation:
    """By ascending or descending ``key``, one number for each index; equal ones as they are given."""
    if not descending:
        return np.argsort(key, kind="stable").astype(np.int64)
    return len(key) - 1 - np.argsort(key[::-1], kind="stable")[::-1].astype(np.int64)


def b_tree(extent: int, width: int) -> Permutation:
    """An implicit B-tree of ascending elements: node ``k`` has the places from ``k * width`` on, its elements ascend,
    and the child before its element ``i`` (``i = width``: after the last) is node ``k * (width + 1) + i + 1``; only the
    last node may have fewer. A width of 1 is Eytzinger's order (Khuong, Morin 2017: Array Layouts for Comparison-Based
    Searching)."""
    count = -(-extent // width)
    own = np.full(count, width)
    own[-1:] = extent - (count - 1) * width
    levels = [slice(0, min(1, count))]
    while levels[-1].stop < count:
        above = levels[-1]
        levels.append(slice(above.start * (width + 1) + 1, min(count, above.stop * (width + 1) + 1)))
    sizes = own.copy()  # elements in the subtree of each node
    below: list[Permutation] = [np.zeros((1, width + 1), np.int64)] * len(levels)
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        of_children = np.zeros((level.stop - level.start) * (width + 1), np.int64)
        if depth + 1 < len(levels):
            children = sizes[levels[depth + 1]]
            of_children[: children.size] = children
        below[depth] = of_children.reshape(-1, width + 1)
        sizes[level] += below[depth].sum(axis=1)
    first = np.zeros(count, np.int64)  # the smallest element in the subtree of each node
    order = np.empty((count, width), np.int64)
    for depth, level in enumerate(levels):
        before = np.cumsum(below[depth], axis=1)  # elements up to and with child i, less the node's own
        order[level] = first[level, None] + before[:, :-1] + np.arange(width)
        if depth + 1 < len(levels):
            starts = first[level, None] + np.arange(width + 1)
            starts[:, 1:] += before[:, :-1]
            first[levels[depth + 1]] = starts.reshape(-1)[: sizes[levels[depth + 1]].size]
    return order.reshape(-1)[:extent]


def breadth_first(links: Links, roots: Iterable[int] = ()) -> Permutation:
    """Tree after tree, level by level."""
    return Trees.make(links, roots).elements


def depth_first(links: Links, roots: Iterable[int] = ()) -> Permutation:
    """Each element, then all that hangs below its first link, then below its second."""
    trees = Trees.make(links, roots)
    return trees.order_by(trees.preorder)


def breadth_first_blocks(links: Links, levels: int, block: int, roots: Iterable[int] = ()) -> Permutation:
    """The first ``levels`` of all trees, tree after tree and level by level; then blocks of ``block`` levels, in the
    order of the same queue, each of them depth first (Trapnell, Schatz 2009: MUMmerGPU 2.0)."""
    trees = Trees.make(links, roots)
    band = np.maximum(-1, (trees.depth - levels) // block)
    within = np.where(band < 0, np.arange(len(band)), trees.preorder)
    return trees.elements[np.lexsort((within, band))]


def hot_first(links: Links, counts: NDArray[Any], roots: Iterable[int] = ()) -> Permutation:
    """Depth first, each element followed by the one below it with the largest count; equal ones in links' order."""
    _, ranks = np.unique(counts, return_inverse=True)
    return depth_first(links.sort_by(-ranks.reshape(-1)), roots)


def van_emde_boas(links: Links, roots: Iterable[int] = (), together: bool = False) -> Permutation:
    """The upper half of a tree's levels, then each tree below them, each of them stored likewise (Frigo, Leiserson,
    Prokop, Ramachandran 1999: Cache-Oblivious Algorithms). With ``together`` what hangs below one element stays side
    by side."""
    trees = Trees.make(links, roots)
    return trees.order_by(trees.halve(together))


def reverse_cuthill_mckee(links: Links) -> Permutation:
    """Elements that are linked, either way, come near each other: breadth first from an element of the fewest links,
    fewest links first, all of it reversed (Cuthill, McKee 1969: Reducing the bandwidth of sparse symmetric matrices;
    reversed by George, 1971)."""
    begin, end, extent = links.sources, links.targets, links.extent
    pairs = np.unique(np.concatenate([begin * extent + end, end * extent + begin]))
    mutual = Links.from_pairs(pairs // max(1, extent), pairs % max(1, extent), extent)
    degrees = np.diff(mutual.begins)
    return breadth_first(mutual.sort_by(degrees), sort_by(degrees))[::-1].copy()


@cache
def orders_digest() -> str:
    """sha256 over what each of these makes of a small graph: part of what a measurement in one of them depends on.
    Taken of what comes out, as ``layouts_digest`` is."""
    extent, counts = 24, np.arange(24) * 7 % 5
    tree = Links.from_pairs(np.repeat(np.arange(extent), 2), np.arange(1, 2 * extent + 1) * 5 % 31, extent)
    made = [
        random_order(extent, 3), sort_by(counts), sort_by(counts, descending=True),
        reverse_cuthill_mckee(tree), hot_first(tree, counts),
        *(walk(tree, roots) for walk in (breadth_first, depth_first, van_emde_boas) for roots in ([], [4, 9])),
        van_emde_boas(tree, together=True), breadth_first_blocks(tree, 2, 2), b_tree(extent, 1), b_tree(extent, 3),
    ]  # fmt: skip
    return hashlib.sha256(np.concatenate(made).tobytes()).hexdigest()
