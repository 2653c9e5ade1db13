"""What the kernels read of a page's text: on the GPU made there, else by all cores of the host."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel

from .. import suffix_tree
from ..arrays import Progress
from ..index import (
    DeviceArray,
    Wanted,
    build_index,
    device_bytes,
    index_program,
    most_characters,
    wanted_for,
)
from ..tables import table_letters, tables

__all__ = ["PageIndex", "index_bytes", "index_compiler", "index_of", "most_of"]

Codes = NDArray[np.uint8]

_OF_TEXT = ("nodes", "children", "tails", "ranges", "leaves", "coarse_table", "fine_table")


class PageIndex:
    """``arrays`` are the inputs of family.yaml that are of a text; one that no kernel reads has one element, or as many
    zeros as another array of its extent."""

    def __init__(
        self, arrays: Mapping[str, Any], wanted: Wanted, letters: Mapping[str, int], made: Any = None
    ) -> None:
        self.arrays = arrays
        self._wanted, self._letters, self._made = wanted, letters, made

    def suffices_for(self, configuration: Mapping[str, Any]) -> bool:
        """Whether it has what a configuration reads."""
        return wanted_for(configuration, self._letters) == self._wanted

    def close(self) -> None:
        """Free what is on the GPU. Safe to call twice."""
        if self._made is not None:
            self._made.close()


def index_of(
    kernel: TunedKernel,
    text: Codes,
    min_match_length: int,
    configuration: Mapping[str, Any] | None,
    progress: Progress | None = None,
) -> PageIndex:
    """What a configuration reads of ``text``, which ends with OTHER; None for no more than its size, with no content.
    Raises WorkloadError and CompilerError, and what the device raises."""
    letters = _letters(text.size, min_match_length)
    if configuration is None:
        nothing = Wanted(tree=False)
        arrays = _on_host(kernel, text, min_match_length, nothing, None)
        if kernel.kind == "cuda":
            arrays["reference"] = DeviceArray(0, text.size, text.dtype)  # whose values nobody looks through
        return PageIndex(arrays, nothing, letters)
    wanted = wanted_for(configuration, letters)
    if kernel.kind == "cuda":
        made = build_index(kernel, text, wanted, progress)
        return PageIndex(made.arrays, wanted, letters, made)
    return PageIndex(_on_host(kernel, text, min_match_length, wanted, progress), wanted, letters)


def index_compiler(
    kernel: TunedKernel, characters: int, min_match_length: int, configuration: Mapping[str, Any]
) -> Callable[[], object]:
    """What compiles all that makes an index of ``characters`` on a GPU, ahead of ``index_of``."""
    return partial(index_program, kernel, wanted_for(configuration, _letters(characters, min_match_length)))


def index_bytes(characters: int, min_match_length: int, configuration: Mapping[str, Any]) -> int:
    """What a GPU needs while it makes what a configuration reads of so many characters."""
    return device_bytes(characters, wanted_for(configuration, _letters(characters, min_match_length)))


def most_of(min_match_length: int, configuration: Mapping[str, Any]) -> int:
    """The most characters that one index on a GPU can number for a configuration."""
    return most_characters(wanted_for(configuration, _letters(1, min_match_length)))


def _letters(characters: int, min_match_length: int) -> dict[str, int]:
    """Of the words of each table."""
    coarse, fine = table_letters(characters, min_match_length)
    return {"coarse_table": coarse, "fine_table": fine}


def _on_host(
    kernel: TunedKernel, text: Codes, min_match_length: int, wanted: Wanted, progress: Progress | None
) -> dict[str, Any]:
    dtypes = {name: kernel.family.data[name].dtype for name in _OF_TEXT}
    arrays: dict[str, Any] = {name: np.zeros(1, dtype) for name, dtype in dtypes.items()}
    if wanted.tree or wanted.leaves:
        tree = suffix_tree.build(text, progress)
        leaves = suffix_tree.leaf_arrays(tree) if wanted.leaves or wanted.ranges else {}
        if wanted.tree:
            arrays |= {"nodes": tree.nodes, "children": tree.children, "tails": tree.tails}
            arrays["ranges"] = leaves["ranges"] if leaves else np.zeros(tree.nodes.size, dtypes["ranges"])
        if leaves:
            arrays["leaves"] = leaves["leaves"]
    if wanted.tables:
        arrays |= tables(text, min_match_length)
    return {**arrays, "reference": text}
