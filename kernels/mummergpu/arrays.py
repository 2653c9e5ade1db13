"""The kernels' input arrays: of a text its suffix tree and tables of its words, of reads where each begins."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from . import suffix_tree

__all__ = ["OFFSET", "Progress", "bounds_of", "tree_arrays"]

OFFSET = np.dtype([("base", np.uint32), ("slot", np.uint32)])

Progress = Callable[[str, float], None]  # what is being done, and the share that is done already

_MOST = 2**32 - 1
_QUAD = 4  # tree.cuh: MatchQuad


def bounds_of(offsets: NDArray[np.int64], min_match_length: int) -> NDArray[Any]:
    """Where each read's bases and slots begin, and where the last end: records of OFFSET. Raises WorkloadError when
    they are more than 32 bits can number."""
    starts = np.maximum(0, np.diff(offsets) - min_match_length + 1)
    slots = np.concatenate(([0], np.cumsum(-(-starts // _QUAD) * _QUAD)))
    if max(offsets[-1], slots[-1]) > _MOST:
        raise WorkloadError(f"reads of {offsets[-1]:,} bases: too many at once; take fewer reads")
    bounds = np.empty(offsets.size, OFFSET)
    bounds["base"], bounds["slot"] = offsets, slots
    return bounds


def tree_arrays(codes: NDArray[np.uint8], progress: Progress | None = None) -> dict[str, NDArray[Any]]:
    """``nodes``, ``children``, ``tails``, ``ranges`` and ``leaves`` of the suffix tree of ``codes``; ``progress`` as of
    suffix_tree.build."""
    tree = suffix_tree.build(codes, progress)
    return {
        "nodes": tree.nodes,
        "children": tree.children,
        "tails": tree.tails,
        **suffix_tree.leaf_arrays(tree),
    }
