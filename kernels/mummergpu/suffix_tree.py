"""The suffix tree of a DNA text, in linear time: nodes in arrays, and orders to lay them out in.

The suffix array comes from pydivsufsort, the rest from suffix_tree.cpp, which the host's C++ compiler makes when
it is first needed. A separator matches nothing: every path from the root ends at the first one.
"""

import ctypes
import hashlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydivsufsort import divsufsort  # type: ignore[import-untyped]

from autotune.cache import Cache, default_root
from autotune.compiler import Batch, CompileFailure, VariantSource, compile_batch
from autotune.errors import CompilerError, WorkloadError
from autotune.hostcxx import RuntimeCxx, find_compiler

__all__ = [
    "MAX_CHARACTERS",
    "NO_POSITION",
    "SEPARATOR",
    "SuffixTree",
    "breadth_first",
    "breadth_first_blocks",
    "build",
    "depth_first",
    "insertion",
]

SEPARATOR = 4
NO_POSITION = 0xFFFFFFFF
MAX_CHARACTERS = 2**31 - 2

_SLOTS = 5
_SOURCE = Path(__file__).resolve().with_suffix(".cpp")


@dataclass(frozen=True)
class SuffixTree:
    """Node 0 is the root, so 0 as a child is none; its own parent and suffix link are itself. The others are
    numbered as suffixes come in lexicographic order: the node, if it is new, at which a suffix leaves the one before
    it, then its leaf.

    Leaves whose suffixes are equal up to their separators end at the same node and form a chain, in the order of
    their positions: the node's ``children[4]`` is the first, and the next of each is that leaf's own ``children[4]``.
    The node is ``parent`` of them all.
    """

    text: NDArray[np.uint8]
    """(characters,): 0 to 3 are A, C, G, T and 4 is a separator, which the last one is."""
    children: NDArray[np.uint32]
    """(nodes, 5): by the first character of the edge, A, C, G, T or separator."""
    parent: NDArray[np.uint32]
    """(nodes,)"""
    suffix_link: NDArray[np.uint32]
    """(nodes,): from the node that spells cX to the one that spells X; from a leaf to that of the next position,
    or to the root where a separator is next."""
    edge_start: NDArray[np.uint32]
    """(nodes,): a position in ``text`` from which the edge into the node can be read."""
    edge_length: NDArray[np.uint32]
    """(nodes,): letters on that edge; 0 for the leaves of a chain, even of one."""
    depth: NDArray[np.uint32]
    """(nodes,): letters from the root."""
    leaf_position: NDArray[np.uint32]
    """(nodes,): where the leaf's suffix starts in ``text``; NO_POSITION for internal nodes."""
    preceding: NDArray[np.uint8]
    """(nodes,): the code before ``leaf_position``; 4 at the start of the text and for internal nodes."""


def build(text: NDArray[np.uint8], progress: Callable[[str, float], None] | None = None) -> SuffixTree:
    """The tree of ``text``, uint8 codes as in ``SuffixTree.text``; a last separator is added where there is none.

    ``progress`` is called with what is done next and the share of the time that has passed, last with "done" and
    1.0. The peak is about 85 bytes for each character of DNA, and 100 where every letter is the same. Raises
    WorkloadError for a text without letters, with more than MAX_CHARACTERS, the last separator counted, or with a
    code above 4, TypeError for an array of another kind, CompilerError when there is no C++ compiler or it fails.
    """
    letters = _checked(text)
    report = progress or (lambda stage, fraction: None)
    if text[-1] != SEPARATOR:
        text = np.append(text, np.uint8(SEPARATOR))
    text = np.require(text, requirements=["C", "W"])  # pydivsufsort takes no other
    library = _library()

    report("suffix array", 0.0)
    suffixes: NDArray[np.uint32] = divsufsort(text).view(np.uint32)
    report("common prefixes", 0.28)
    # Of such memory only what is touched counts, and a stack is seldom deep.
    stack = np.empty(2 * (letters + 1), np.uint32)
    common = np.empty(letters, np.uint32)
    scratch = np.empty(text.size, np.uint32)
    tree = _Tree(length=text.size, letters=letters, text=text.ctypes.data)
    internal = library.suffix_tree_lcp(ctypes.byref(tree), *map(_address, (suffixes, scratch, common, stack)))
    del scratch

    report("nodes", 0.38)
    nodes = 1 + letters + internal
    fields = ("parent", "suffix_link", "edge_start", "edge_length", "depth", "leaf_position")
    arrays = {name: np.empty(nodes, np.uint32) for name in fields}
    children = np.zeros((nodes, _SLOTS), np.uint32)
    preceding = np.empty(nodes, np.uint8)
    for name, array in {**arrays, "children": children, "preceding": preceding}.items():
        setattr(tree, name, array.ctypes.data)
    at = np.empty((text.size, 2), np.uint32)
    library.suffix_tree_nodes(ctypes.byref(tree), *map(_address, (suffixes, common, at, stack)))
    del suffixes, common, stack

    report("suffix links", 0.7)
    library.suffix_tree_leaves(ctypes.byref(tree), _address(at))
    del at
    queue = np.empty(1 + internal, np.uint32)
    library.suffix_tree_links(ctypes.byref(tree), _address(queue))
    report("done", 1.0)
    return SuffixTree(text=text, children=children, preceding=preceding, **arrays)


def breadth_first(tree: SuffixTree) -> NDArray[np.int64]:
    """(nodes,), ``order[new] = old``: by the number of edges from the root, a leaf of a chain counted below the one
    before it; nodes of one parent as in ``children``."""
    return _order(tree, "suffix_tree_breadth_first")


def depth_first(tree: SuffixTree) -> NDArray[np.int64]:
    """(nodes,), ``order[new] = old``: a node, then all below its first child, then all below its second …"""
    return _order(tree, "suffix_tree_depth_first")


def breadth_first_blocks(tree: SuffixTree, node_depth: int = 16, block: int = 5) -> NDArray[np.int64]:
    """(nodes,), ``order[new] = old``: MUMmerGPU 2.0's reordering. Breadth first above ``node_depth`` edges from the
    root; from there on, taken in the order of the same queue, blocks of ``block`` levels, each depth first. Raises
    ValueError for a negative ``node_depth`` or a ``block`` below 1."""
    if node_depth < 0 or block < 1:
        raise ValueError(f"node_depth {node_depth} must be at least 0 and block {block} at least 1")
    # No path has more nodes than this.
    limits = (ctypes.c_uint32(min(limit, MAX_CHARACTERS)) for limit in (node_depth, block))
    queue = np.empty(tree.parent.size, np.uint32)
    return _order(tree, "suffix_tree_breadth_first_blocks", *limits, _address(queue))


def insertion(tree: SuffixTree) -> NDArray[np.int64]:
    """(nodes,), ``order[new] = old``: as suffixes are inserted from the first position to the last, the node, if
    it is new, at which a suffix leaves those before it, then its leaf. Ukkonen's and McCreight's constructions, and
    so MUMmerGPU without reordering, number nodes like that."""
    leaves = np.empty(tree.text.size, np.uint32)
    seen = np.zeros(tree.parent.size, np.uint8)
    return _order(tree, "suffix_tree_insertion", _address(leaves), _address(seen))


class _Tree(ctypes.Structure):
    """suffix_tree.cpp: Tree."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("letters", ctypes.c_uint32),
        ("text", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("suffix_link", ctypes.c_void_p),
        ("edge_start", ctypes.c_void_p),
        ("edge_length", ctypes.c_void_p),
        ("depth", ctypes.c_void_p),
        ("leaf_position", ctypes.c_void_p),
        ("preceding", ctypes.c_void_p),
    )


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


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


def _order(tree: SuffixTree, function: str, *arguments: Any) -> NDArray[np.int64]:
    order = np.empty(tree.parent.size, np.int64)
    names = ("text", "children", "parent", "leaf_position")
    arrays = {name: np.ascontiguousarray(getattr(tree, name)) for name in names}
    view = _Tree(length=tree.text.size, **{name: array.ctypes.data for name, array in arrays.items()})
    getattr(_library(), function)(
        ctypes.byref(view), ctypes.c_uint64(order.size), *arguments, _address(order)
    )
    return order


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """suffix_tree.cpp compiled, in the user's cache. Raises CompilerError."""
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()
    batch = Batch(_SOURCE, (), (VariantSource(key, "suffix_tree", "", ()),))
    command = find_compiler()
    (built,) = compile_batch(batch, RuntimeCxx(command), Cache(default_root()))
    if isinstance(built, CompileFailure):
        raise CompilerError(f"{shlex.join(command)} does not compile {_SOURCE.name}: {built.message}")
    library = ctypes.CDLL(str(built.image))
    library.suffix_tree_lcp.restype = ctypes.c_uint32
    return library
