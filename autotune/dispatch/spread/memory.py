"""Host memory that several processes write results to: page-aligned arrays in one anonymous file.

An anonymous file (memfd_create) has no name that could be left behind, is not bound to the size of /dev/shm, and a
device can pin it. Pages that nothing writes to cost nothing.
"""

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import StoreError

__all__ = ["Memory", "Place", "mapped", "places", "sized"]


@dataclass(frozen=True)
class Place:
    """Where an array lies in the file, in bytes from its begin."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def of(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The array, as a view."""
        piece = memory[self.offset : self.offset + self.nbytes]
        return piece.view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Memory:
    """Where in the file a worker's results go: parts of arrays that all write, sums of its own."""

    nbytes: int
    parts: Mapping[str, Place]
    sums: Mapping[str, Place]


def places(arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> tuple[dict[str, Place], int]:
    """Places for arrays of these shapes and dtypes, each from a page's begin, and the bytes they take in all."""
    found: dict[str, Place] = {}
    offset = 0
    for name, (shape, dtype) in arrays.items():
        found[name] = Place(offset, shape, dtype)
        offset += -(-found[name].nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    return found, max(offset, mmap.PAGESIZE)


def sized(file: int, nbytes: int) -> NDArray[np.uint8]:
    """Make an anonymous file so large, and map it. Raises StoreError when there is no memory for it."""
    try:
        os.ftruncate(file, nbytes)
        return mapped(file, nbytes)
    except OSError as problem:
        raise StoreError(f"no memory for {nbytes} bytes of results: {problem.strerror}") from None


def mapped(file: int, nbytes: int) -> NDArray[np.uint8]:
    """The file's bytes; they stay mapped as long as the array, or a view of it, is there."""
    return np.frombuffer(mmap.mmap(file, nbytes), np.uint8)
