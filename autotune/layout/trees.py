"""What hangs below what: links between the elements of an index space, and the trees that a walk along them finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Permutation = NDArray[np.int64]
Places = NDArray[np.int64]

_FEW = 48  # elements of a level that are walked one by one faster than all at once


@dataclass(frozen=True, eq=False)
class Links:
    """Element ``i`` leads to ``targets[begins[i]:begins[i + 1]]``, in that order."""

    begins: NDArray[np.int64]
    targets: NDArray[np.int64]

    @staticmethod
    def from_pairs(sources: NDArray[Any], targets: NDArray[Any], extent: int) -> "Links":
        """From pairs, those of one source in the order that they are given in; without those of an element to itself,
        and without a target outside of the extent, which is no link."""
        kept = (sources != targets) & (targets >= 0) & (targets < extent)
        sources, targets = sources[kept].astype(np.int64), targets[kept].astype(np.int64)
        if sources.size and (sources[1:] < sources[:-1]).any():
            targets = targets[np.argsort(sources, kind="stable")]
        counts = np.bincount(sources, minlength=extent)
        return Links(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), targets)

    @staticmethod
    def from_rows(targets: NDArray[Any]) -> "Links":
        """From where each element leads to, (extent, links), in that order; with what ``from_pairs`` leaves out."""
        extent = len(targets)
        kept = (targets >= 0) & (targets < extent) & (targets != np.arange(extent)[:, None])
        begins = np.zeros(extent + 1, np.int64)
        np.cumsum(kept.sum(axis=1), out=begins[1:])
        return Links(begins, targets[kept].astype(np.int64, copy=False))

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

    def sort_by(self, weights: NDArray[Any]) -> "Links":
        """Each element's links by ascending weight of where they lead to; equal ones stay as they are."""
        return Links(self.begins, self.targets[np.lexsort((weights[self.targets], self.sources))])


@dataclass(frozen=True, eq=False)
class Trees:
    """What a walk breadth first finds, tree after tree: ``elements`` in that order, and by the places in it ``parent``
    (-1 of a root) and ``depth`` (0 of a root). The children of a parent have places one behind the other."""

    elements: Permutation
    parent: Places
    depth: Places

    @staticmethod
    def make(links: Links, roots: Iterable[int] = ()) -> "Trees":
        """From ``roots``, by default what nothing leads to; then from each element that no root leads to, the smallest
        index first."""
        walk = _Walk(links)
        for root in chain([*roots] or links.roots, range(links.extent)):
            if walk.is_done:
                break
            if not walk.seen[root]:
                walk.tree(int(root))
        return Trees(walk.elements, walk.parent, walk.depth)

    def order_by(self, places: Places) -> Permutation:
        """The elements, each at the place given for it."""
        order = np.empty(len(places), np.int64)
        order[places] = self.elements
        return order

    @cached_property
    def levels(self) -> Sequence[Places]:
        """The places of each depth, ascending."""
        by_depth = np.argsort(self.depth, kind="stable")
        return np.split(by_depth, np.cumsum(np.bincount(self.depth))[:-1]) if len(by_depth) else []

    @cached_property
    def sizes(self) -> Places:
        """Return the number of elements below each place, itself included."""
        sizes = np.ones(len(self.parent), np.int64)
        one, parent = sizes.data, self.parent.data
        for level in reversed(self.levels[1:]):
            if len(level) < _FEW:
                for place in level.tolist():
                    one[parent[place]] += one[place]
            else:
                np.add.at(sizes, self.parent[level], sizes[level])
        return sizes

    @cached_property
    def preorder(self) -> Places:
        """By place, the place depth first: each before what hangs below it, the first child at once."""
        before = np.cumsum(self.sizes) - self.sizes
        roots = np.flatnonzero(self.parent < 0)
        places = np.empty(len(self.parent), np.int64)
        places[roots] = roots  # tree after tree, in either order
        first = np.ones(len(self.parent), np.bool_)  # of its parent's children
        first[1:] = (self.parent[1:] != self.parent[:-1]) | (self.parent[1:] < 0)
        begins = np.flatnonzero(first)[np.cumsum(first) - 1]  # the first child of the same parent
        after = before - before[begins] + 1  # siblings' elements, and the parent
        one, parent, gap = places.data, self.parent.data, after.data
        for level in self.levels[1:]:
            if len(level) < _FEW:
                for place in level.tolist():
                    one[place] = one[parent[place]] + gap[place]
            else:
                places[level] = places[self.parent[level]] + after[level]
        return places

    def halve(self, together: bool) -> Places:
        """By place, the place after van Emde Boas (see ``named_orders.van_emde_boas``)."""
        after = np.empty(len(self.parent), np.int64)
        roots = np.flatnonzero(self.parent < 0)
        tree = np.cumsum(self.parent < 0) - 1
        heights = np.zeros(len(roots), np.int64)
        np.maximum.at(heights, tree, self.depth + 1)
        for height in np.unique(heights):  # trees of one height are divided alike
            own = np.flatnonzero(heights[tree] == height)
            by_depth = own[np.argsort(self.depth[own], kind="stable")]
            levels = np.split(by_depth, np.cumsum(np.bincount(self.depth[own]))[:-1])
            halved = _Halved.make(levels, self.parent, together)
            for places, within in zip(levels, halved.place_within(0, int(height))[0], strict=True):
                after[places] = roots[tree[places]] + within
        return after


@dataclass(frozen=True, eq=False)
class _Halved:
    """Trees of one height, level by level: ``above`` has for each element of a level the number of its parent in the
    level before, ``group`` the number of the group in its level that it is in: itself, or it and its siblings."""

    above: Sequence[Places]
    group: Sequence[Places]

    @staticmethod
    def make(levels: Sequence[Places], parent: Places, together: bool) -> "_Halved":
        above = [np.arange(len(levels[0]))]
        above += [np.searchsorted(upper, parent[lower]) for upper, lower in pairwise(levels)]
        group = [np.arange(len(level)) for level in levels]
        if together:
            group[1:] = [np.cumsum(np.diff(each, prepend=each[:1]) != 0) for each in above[1:]]
        return _Halved(above, group)

    def place_within(self, top: int, end: int) -> tuple[list[Places], Places]:
        """Of the levels from ``top`` up to ``end``: the place of each element among those below one group of the top
        level, and how many those are for each group."""
        group = self.group[top]
        if end - top == 1:
            sizes = np.bincount(group)
            return [np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group]], sizes
        cut = top + (end - top) // 2
        upper, above = self.place_within(top, cut)
        lower, below = self.place_within(cut, end)
        of = self.above[cut]
        for level in range(cut - 1, top, -1):
            of = self.above[level][of]
        first = np.flatnonzero(np.diff(self.group[cut], prepend=-1))  # of each group that is cut off
        over = group[of[first]]
        before = np.cumsum(below) - below
        start = (above[over] + before - before[np.searchsorted(over, over)])[self.group[cut]]
        moved = [lower[0] + start]
        for level in range(cut + 1, end):
            start = start[self.above[level]]
            moved.append(lower[level - cut] + start)
        np.add.at(sizes := above.copy(), over, below)
        return upper + moved, sizes


class _Walk:
    """Trees as they are walked; ``seen`` are the elements that have been met."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.seen = np.zeros(links.extent, np.uint8)
        self.elements, self.parent, self.depth = (np.empty(links.extent, np.int64) for _ in range(3))
        self._first = np.empty(links.extent, np.int64)  # where a target came first
        self._met = 0

    @property
    def is_done(self) -> bool:
        return self._met == len(self.seen)

    def tree(self, root: int) -> None:
        self.seen[root] = 1
        begin, end, depth = self._met, self._met + 1, 0
        self.elements[begin], self.parent[begin], self.depth[begin] = root, -1, 0
        while begin < end:
            self._met, depth = end, depth + 1
            if end - begin < _FEW:
                self._visit_range(begin, end)
            else:
                self._level(begin, end)
            self.depth[end : self._met] = depth
            begin, end = end, self._met

    def _visit_range(self, begin: int, end: int) -> None:
        """What hangs below the places from ``begin`` to ``end``."""
        begins, targets, seen = self._links.begins.data, self._links.targets.data, self.seen.data
        elements, parent = self.elements.data, self.parent.data
        for place in range(begin, end):
            element = elements[place]
            for link in range(begins[element], begins[element + 1]):
                target = targets[link]
                if not seen[target]:
                    seen[target] = 1
                    elements[self._met], parent[self._met] = target, place
                    self._met += 1

    def _level(self, begin: int, end: int) -> None:
        """The same, all at once."""
        level = self.elements[begin:end]
        starts = self._links.begins[level]
        counts = self._links.begins[level + 1] - starts
        total = int(counts.sum())
        links = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(total)
        targets, places = self._links.targets[links], np.repeat(np.arange(begin, end), counts)
        fresh = self.seen[targets] == 0
        targets, places = targets[fresh], places[fresh]
        numbers = np.arange(len(targets))
        self._first[targets[::-1]] = numbers[::-1]
        once = self._first[targets] == numbers
        targets, places = targets[once], places[once]
        self.seen[targets] = 1
        self._met = end + len(targets)
        self.elements[end : self._met], self.parent[end : self._met] = targets, places
