"""Orders that need no Python of a family: permutations of an index space made from keys, counts and links.

Each is ``permutation[new] = old``, int64 of the space's extent: the index that comes first, then the second. Those
along links walk a tree: below each element hangs, in the order of its links, what no element before it leads to, level
by level from the roots. What no root leads to is a root of its own, the smallest index first, so every index comes
once.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Permutation = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Element ``i`` leads to ``targets[begins[i]:begins[i + 1]]``, in that order."""

    begins: NDArray[np.int64]
    targets: NDArray[np.int64]

    @staticmethod
    def of(sources: NDArray[Any], targets: NDArray[Any], extent: int) -> "Links":
        """From pairs, those of one source in the order that they are given in; without those of an element to itself,
        and without a target outside of the extent, which is no link."""
        kept = (sources != targets) & (targets >= 0) & (targets < extent)
        sources, targets = sources[kept].astype(np.int64), targets[kept].astype(np.int64)
        order = np.argsort(sources, kind="stable")
        counts = np.bincount(sources, minlength=extent)
        return Links(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), targets[order])

    @property
    def extent(self) -> int:
        return len(self.begins) - 1

    @property
    def sources(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.extent), np.diff(self.begins))

    @property
    def roots(self) -> list[int]:
        """What nothing leads to."""
        return np.flatnonzero(np.bincount(self.targets, minlength=self.extent) == 0).tolist()

    def by(self, weights: NDArray[Any]) -> "Links":
        """Each element's links by ascending weight of where they lead to; equal ones stay as they are."""
        return Links(self.begins, self.targets[np.lexsort((weights[self.targets], self.sources))])


def random_order(extent: int, seed: int = 0) -> Permutation:
    """The same one for the same seed."""
    return np.random.default_rng(seed).permutation(extent).astype(np.int64)


def sorted_order(key: NDArray[Any], descending: bool = False) -> Permutation:
    """By ascending or descending ``key``, one number for each index; equal ones as they are given."""
    if not descending:
        return np.argsort(key, kind="stable").astype(np.int64)
    return len(key) - 1 - np.argsort(key[::-1], kind="stable")[::-1].astype(np.int64)


def breadth_first(links: Links, roots: Iterable[int] = ()) -> Permutation:
    """Tree after tree, level by level."""
    return _walked(links, roots)[0]


def depth_first(links: Links, roots: Iterable[int] = ()) -> Permutation:
    """Each element, then all that hangs below its first link, then below its second."""
    _, below, heads = _walked(links, roots)
    order: list[int] = []
    waiting = heads[::-1]
    while waiting:
        element = waiting.pop()
        order.append(element)
        waiting += below[element][::-1]
    return np.array(order, np.int64)


def hot_first(links: Links, counts: NDArray[Any], roots: Iterable[int] = ()) -> Permutation:
    """Depth first, each element followed by the one below it with the largest count; equal ones in links' order."""
    _, ranks = np.unique(counts, return_inverse=True)
    return depth_first(links.by(-ranks.reshape(-1)), roots)


def van_emde_boas(links: Links, roots: Iterable[int] = (), together: bool = False) -> Permutation:
    """The upper half of a tree's levels, then each tree below them, each of them stored likewise (Frigo, Leiserson,
    Prokop, Ramachandran 1999: Cache-Oblivious Algorithms). With ``together`` what hangs below one element stays side
    by side."""
    _, below, heads = _walked(links, roots)

    def under(group: Sequence[int]) -> list[list[int]]:
        found = [below[element] for element in group if below[element]]
        return found if together else [[each] for siblings in found for each in siblings]

    def stored(group: list[int], levels: int) -> tuple[list[int], list[list[int]]]:
        """The elements of so many levels from ``group`` on, and the groups under them."""
        if levels == 1:
            return group, under(group)
        above, cut = stored(group, levels // 2)
        order: list[int] = [*above]  # a group is not this function's to change
        left: list[list[int]] = []
        for other in cut:
            elements, groups = stored(other, levels - levels // 2)
            order += elements
            left += groups
        return order, left

    def height(root: int) -> int:
        levels, level = 0, [root]
        while level:
            levels, level = levels + 1, [each for element in level for each in below[element]]
        return levels

    return np.array([each for root in heads for each in stored([root], height(root))[0]], np.int64)


def reverse_cuthill_mckee(links: Links) -> Permutation:
    """Elements that are linked, either way, come near each other: breadth first from an element of the fewest links,
    fewest links first, all of it reversed (Cuthill, McKee 1969: Reducing the bandwidth of sparse symmetric matrices;
    reversed by George, 1971)."""
    begin, end, extent = links.sources, links.targets, links.extent
    pairs = np.unique(np.concatenate([begin * extent + end, end * extent + begin]))
    mutual = Links.of(pairs // max(1, extent), pairs % max(1, extent), extent)
    degrees = np.diff(mutual.begins)
    return _walked(mutual.by(degrees), sorted_order(degrees).tolist())[0][::-1].copy()


def _walked(links: Links, roots: Iterable[int]) -> tuple[Permutation, list[list[int]], list[int]]:
    """The elements breadth first, tree after tree; what hangs below each; the roots of the trees. Without ``roots``
    those are what nothing leads to."""
    begins, targets = links.begins.tolist(), links.targets.tolist()
    seen = bytearray(links.extent)
    below: list[list[int]] = [[] for _ in range(links.extent)]
    order: list[int] = []
    heads: list[int] = []
    for root in chain([*roots] or links.roots, range(links.extent)):
        if seen[root]:
            continue
        seen[root] = 1
        heads.append(root)
        tree = [root]
        for element in tree:  # grows while it is walked
            for target in targets[begins[element] : begins[element + 1]]:
                if not seen[target]:
                    seen[target] = 1
                    below[element].append(target)
            tree += below[element]
        order += tree
    return np.array(order, np.int64), below, heads


@cache
def orders_digest() -> str:
    """sha256 over what each of these makes of a small graph: part of what a measurement in one of them depends on.
    Taken of what comes out, as ``layouts_digest`` is."""
    extent, counts = 24, np.arange(24) * 7 % 5
    tree = Links.of(np.repeat(np.arange(extent), 2), np.arange(1, 2 * extent + 1) * 5 % 31, extent)
    made = [
        random_order(extent, 3), sorted_order(counts), sorted_order(counts, descending=True),
        reverse_cuthill_mckee(tree), hot_first(tree, counts),
        *(walk(tree, roots) for walk in (breadth_first, depth_first, van_emde_boas) for roots in ([], [4, 9])),
        van_emde_boas(tree, together=True),
    ]  # fmt: skip
    return hashlib.sha256(np.concatenate(made).tobytes()).hexdigest()
