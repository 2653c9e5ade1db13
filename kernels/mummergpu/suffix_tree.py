"""The suffix tree of a DNA text, in linear time: nodes as the kernels read them, and its leaves.

The order of the suffixes comes from suffix_array.py, the rest from the suffix_tree*.cpp, in all threads; the host's
C++ compiler makes them when they are first needed. A separator matches nothing: every path from the root ends at the
first one.
"""

import ctypes
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, library

from .suffix_array import suffix_array

__all__ = [
    "MAX_CHARACTERS",
    "NO_POSITION",
    "SEPARATOR",
    "SuffixTree",
    "build",
    "leaf_arrays",
]

SEPARATOR = 4
NO_POSITION = 0xFFFFFFFF
MAX_CHARACTERS = 2**31 - 2

# Ranges are at most so many and not smaller: each costs as much once as the text's longest common prefix.
_MOST_RANGES = 64
_LEAST_RANGE = 1 << 16
# Subtrees of so many letters are made apart from each other, what is above them after them.
_SUBTREE_LETTERS = 6

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_RECORDS, _LEAVES_SOURCE = _SOURCE.with_stem("suffix_tree_records"), _SOURCE.with_stem("suffix_tree_leaves")
_HEADER = _SOURCE.with_suffix(".hpp")


def _record(*names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.uint32) for name in names])


_TREE = {
    "nodes": _record("suffix_link", "edge_start", "edge_length", "parent"),
    "children": _record("a", "c", "g", "t"),
    "tails": _record("end_child", "depth", "leaf_position", "preceding"),
}
_LEAVES = {"leaves": _record("position", "preceding"), "ranges": _record("first", "count")}
_PLACE = _record("leaf_or_start", "parent", "head")
_MADE = _record("first", "depth", "edge_start", "parent", "a", "c", "g", "t")
_SUBTREE = _record("fork", "position", "leaf", "node", "made")
_BY_RANK_OR_POSITION = ("text", "suffixes", "shared", "forks", "makes", "chained", "places", "made")
_OPEN_BYTES = 72  # the larger of both


@dataclass(frozen=True, eq=False)
class SuffixTree:
    """Node 0 is the root, so 0 as a child is none; its own parent and suffix link are itself. The others are
    numbered as suffixes are inserted from the first position to the last: the node, if it is new, at which a suffix
    leaves those before it, then its leaf. Ukkonen's and McCreight's constructions, and so MUMmerGPU without
    reordering, number nodes like that.

    Leaves whose suffixes are equal up to their separators end at the same node and form a chain, in the order of
    their positions: the node's ``end_child`` is the first, and the next of each is that leaf's own ``end_child``.
    The node is ``parent`` of them all.
    """

    text: NDArray[np.uint8]
    """(characters,): 0 to 3 are A, C, G, T and 4 is a separator, which the last one is."""
    nodes: NDArray[Any]
    """(nodes,) records of uint32. ``suffix_link``: from the node that spells cX to the one that spells X; from a leaf
    to that of the next position, to its parent if that one is in a chain, or to the root where a separator is next.
    ``edge_start``: the first position in ``text`` at which the edge into the node can be read behind all that is above
    it. ``edge_length``: letters on that edge; 0 for the leaves of a chain, even of one. ``parent``."""
    children: NDArray[Any]
    """(nodes,) records of uint32, ``a``, ``c``, ``g``, ``t``: by the first letter of the edge."""
    tails: NDArray[Any]
    """(nodes,) records of uint32. ``end_child``: see above, 0 where there is none. ``depth``: letters from the root.
    ``leaf_position``: where the leaf's suffix starts in ``text``; NO_POSITION for internal nodes. ``preceding``: the
    code before it; 4 at the start of the text and for internal nodes."""


def build(
    text: NDArray[np.uint8], progress: Callable[[str, float], None] | None = None, threads: int = 0
) -> SuffixTree:
    """The tree of ``text``, uint8 codes as in ``SuffixTree.text``; a last separator is added where there is none.

    ``threads`` work, 0 stands for every core this process may use; the tree is the same with any. ``progress`` is
    called with what is done next and the share of the time that has passed, last with "done" and 1.0. The peak is
    115 bytes for each character of DNA, of which 80 are the tree; 145 where every letter is the same. Raises
    WorkloadError for a text without letters, with more than MAX_CHARACTERS, the last separator counted, or with a
    code above 4, TypeError for an array of another kind, CompilerError when there is no C++ compiler or it fails.
    """
    letters = _checked(text)
    report = progress or (lambda stage, fraction: None)
    if text[-1] != SEPARATOR:
        text = np.append(text, np.uint8(SEPARATOR))
    text = np.ascontiguousarray(text)
    functions, records = library(_SOURCE, _HEADER), library(_RECORDS, _HEADER)

    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        building = _Building(pool, text, letters)
        report("suffix array", 0.0)
        building.has(text=text, suffixes=suffix_array(text, threads))
        report("common prefixes", 0.25)
        longest, starts = building.forks(functions)
        report("nodes", 0.35)
        firsts = building.nodes(functions, longest, starts)
        report("suffix links", 0.7)
        tree = building.records(records, firsts)
    report("done", 1.0)
    return SuffixTree(text=text, **tree)


class _Building:
    """The functions of suffix_tree.cpp and suffix_tree_records.cpp in their order, on ranges in threads."""

    def __init__(self, pool: ThreadPoolExecutor, text: NDArray[np.uint8], letters: int) -> None:
        self._pool, self._text, self._letters = pool, text, letters
        self._work = _Work(length=text.size, letters=letters, floor=_SUBTREE_LETTERS)
        self._arrays: dict[str, NDArray[Any]] = {}
        self._positions, self._ranks = _ranges(text.size), _ranges(letters)

    def has(self, **arrays: NDArray[Any]) -> None:
        self._arrays |= arrays
        for name, array in arrays.items():
            setattr(self._work, name, array.ctypes.data)

    def forks(self, functions: ctypes.CDLL) -> tuple[int, list[int]]:
        """The longest common prefix, and how many subtrees start in each range of ranks."""
        self.has(shared=np.empty(self._text.size, np.uint32), forks=np.empty(self._letters, np.uint32))
        self._each(functions.suffix_tree_before, self._positions)
        self._each(functions.suffix_tree_shared, self._positions)
        starts = self._each(functions.suffix_tree_forks, self._ranks)
        del self._arrays["shared"]
        return int(self._arrays["forks"].max()), starts

    def nodes(self, functions: ctypes.CDLL, longest: int, starts: list[int]) -> list[int]:
        """Nodes by rank. Gives the number of the first node of each range of positions, and of all nodes."""
        subtrees = np.empty(sum(starts), _SUBTREE)
        first = [0, *itertools.accumulate(starts)]
        found = [subtrees.ctypes.data + index * _SUBTREE.itemsize for index in first[:-1]]
        every = subtrees.ctypes.data, subtrees.size

        def join(function: Any, *arguments: int) -> int:
            opened = np.empty((longest + 2) * _OPEN_BYTES, np.uint8)
            return self._call(function, opened.ctypes.data, *arguments)

        def join_each(function: Any, *columns: list[int]) -> list[int]:
            return list(self._pool.map(lambda of, *more: join(function, *of, *more), self._ranks, *columns))

        self.has(makes=np.zeros(self._text.size, np.uint8))
        made = join_each(functions.suffix_tree_make, found)
        made.append(join(functions.suffix_tree_make_top, *every))
        first_made = [0, *itertools.accumulate(made)]
        firsts = self._firsts()
        self._work.internal = first_made[-1] + 1
        self.has(places=np.empty(self._text.size, _PLACE), made=np.empty(self._work.internal, _MADE))
        self._each(functions.suffix_tree_number, self._positions, firsts[:-1])
        join_each(functions.suffix_tree_write, found, first_made[:-2])
        join(functions.suffix_tree_write_top, *every, first_made[-2])
        del self._arrays["forks"], self._arrays["suffixes"]
        return firsts

    def records(self, functions: ctypes.CDLL, firsts: list[int]) -> dict[str, NDArray[Any]]:
        """``nodes``, ``children`` and ``tails``."""
        tree = {name: np.empty(firsts[-1], record) for name, record in _TREE.items()}
        self.has(**tree, chained=np.zeros(self._text.size, np.uint8))
        chained = self._each(functions.suffix_tree_collect, self._positions, firsts[1:], self._stops())
        self._each(functions.suffix_tree_links, self._positions, firsts[1:])
        for i in np.flatnonzero(chained)[::-1]:
            self._call(functions.suffix_tree_chain, *self._positions[i], firsts[i + 1])
        return tree

    def _firsts(self) -> list[int]:
        def nodes(bounds: tuple[int, int]) -> int:
            makes, text = self._arrays["makes"][slice(*bounds)], self._text[slice(*bounds)]
            return int(np.count_nonzero(makes) + np.count_nonzero(text != SEPARATOR))

        return list(itertools.accumulate(self._pool.map(nodes, self._positions), initial=1))

    def _stops(self) -> list[int]:
        """For each range of positions the first separator from its end on."""
        stops = [self._text.size]
        for begin, end in reversed(self._positions[1:]):
            first = int((self._text[begin:end] == SEPARATOR).argmax())
            stops.append(begin + first if self._text[begin + first] == SEPARATOR else stops[-1])
        return stops[::-1]

    def _each(self, function: Any, ranges: list[tuple[int, int]], *columns: Any) -> list[int]:
        """A call for every range, with its element of each column."""
        return list(self._pool.map(lambda of, *more: self._call(function, *of, *more), ranges, *columns))

    def _call(self, function: Any, *arguments: int) -> int:
        function.restype = ctypes.c_uint64
        return int(function(ctypes.byref(self._work), *map(ctypes.c_uint64, arguments)))


def _ranges(count: int) -> list[tuple[int, int]]:
    size = max(_LEAST_RANGE, -(-count // _MOST_RANGES))
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)]


def leaf_arrays(tree: SuffixTree) -> dict[str, NDArray[Any]]:
    """``leaves`` (leaves,), records of uint32: ``position`` in the text and the code ``preceding`` it, in the order in
    which depth first meets them. ``ranges`` (nodes,), records of uint32: those below a node are ``count`` from
    ``first`` on; a leaf is below itself."""
    count = int(np.count_nonzero(tree.tails["leaf_position"] != NO_POSITION))
    leaves, ranges = np.empty(count, _LEAVES["leaves"]), np.zeros(tree.nodes.size, _LEAVES["ranges"])
    stack = np.empty(tree.nodes.size, np.uint32)
    view, _kept = _view(tree)
    library(_LEAVES_SOURCE, _HEADER).suffix_tree_leaves(
        ctypes.byref(view), *(ctypes.c_void_p(array.ctypes.data) for array in (stack, leaves, ranges))
    )
    return {"leaves": leaves, "ranges": ranges}


class _Tree(ctypes.Structure):
    """suffix_tree.hpp: Tree."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in _TREE)


class _Work(ctypes.Structure):
    """suffix_tree.cpp: Work."""

    _anonymous_ = ("tree",)
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("length", "letters", "internal", "floor")),
        *((name, ctypes.c_void_p) for name in _BY_RANK_OR_POSITION),
        ("tree", _Tree),
    )


def _checked(text: NDArray[np.uint8]) -> int:
    """The number of letters."""
    if text.dtype != np.uint8 or text.ndim != 1:
        raise TypeError(f"text must be a row of uint8, found {text.dtype} of shape {text.shape}")
    if text.size > MAX_CHARACTERS or (text.size == MAX_CHARACTERS and text[-1] != SEPARATOR):
        raise WorkloadError(
            f"a reference of {text.size:,} characters: a suffix tree holds at most {MAX_CHARACTERS:,}, the last "
            "separator counted; cut the reference into pages"
        )
    if text.size and text.max() > SEPARATOR:
        position = int(np.argmax(text > SEPARATOR))
        raise WorkloadError(
            f"code {text[position]} at position {position} of the reference: 0 to 3 are A, C, G and T, 4 is a "
            "separator, and there are no others"
        )
    letters = int(np.count_nonzero(text != SEPARATOR))
    if not letters:
        raise WorkloadError(f"none of the reference's {text.size:,} characters is A, C, G or T")
    return letters


def _view(tree: SuffixTree) -> tuple[_Tree, list[NDArray[Any]]]:
    """``tree`` for the suffix_tree*.cpp, and the arrays that it lies in."""
    arrays = {name: np.ascontiguousarray(getattr(tree, name)) for name in _TREE}
    return _Tree(**{name: array.ctypes.data for name, array in arrays.items()}), [*arrays.values()]
