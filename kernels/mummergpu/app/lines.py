"""Matches to lines, and lines to a file, in bulk.

lines.cpp does it, in all threads; the host's C++ compiler makes it when it is first needed. A call leaves the
interpreter to other threads.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

from ..matches import Mems
from ..text import Headers

__all__ = ["Texts", "compiled"]

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_THREADS = _SOURCE.parent.with_name("threads.hpp")
_NAME_GAP = 2
# So many rows are looked through at a time for where those of each read begin.
_ROWS_AT_ONCE = 1 << 18
_WRITERS = 4  # at a time: more wait for each other
_FAULTS = ("", "matches are not in the order of reads", "matches of reads that are not in the block")


class _Column(ctypes.Structure):
    """lines.cpp: Column."""

    _fields_ = (("values", ctypes.c_void_p), ("stride", ctypes.c_int64), ("bytes", ctypes.c_int64))


class _Strand(ctypes.Structure):
    """lines.cpp: Strand."""

    _fields_ = (
        ("positions", _Column),
        ("starts", _Column),
        ("lengths", _Column),
        ("bounds", ctypes.c_void_p),
        ("is_narrow", ctypes.c_int64),
    )


class _Block(ctypes.Structure):
    """lines.cpp: Block."""

    _fields_ = (
        ("headers", ctypes.c_void_p),
        ("header_bounds", ctypes.c_void_p),
        ("records", ctypes.c_int64),
        ("record_starts", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("name_width", ctypes.c_int64),
        ("strands", ctypes.c_int64),
        ("strand", _Strand * 2),
    )


class Texts:
    """The lines of a block of reads: every header, with the rows of each strand. ``names`` and ``starts`` are those of
    the reference's records, one or two the ``strands``: columns of any integer dtype and any stride. Raises
    AssertionError for matches that are not in the order of reads, or of a read that is not in the block.
    """

    def __init__(
        self,
        names: Sequence[str],
        starts: NDArray[np.int64],
        headers: Headers,
        strands: Sequence[Mems],
        threads: int,
    ) -> None:
        self._threads = ctypes.c_int64(threads)
        cells = _name_cells(names)
        arrays: list[NDArray[Any]] = [
            np.ascontiguousarray(headers.letters),
            np.ascontiguousarray(headers.bounds, np.int64),
            np.ascontiguousarray(starts, np.int64),
            np.frombuffer(cells, np.uint8),
        ]
        block = _Block(records=len(names), name_width=len(cells) // len(names), strands=len(strands))
        block.headers, block.header_bounds, block.record_starts, block.names = (
            array.ctypes.data for array in arrays
        )
        self._reads = len(headers)
        self._block = block
        self._arrays = arrays  # what the block points into
        self._bounds = [self._placed(mems, block.strand[number]) for number, mems in enumerate(strands)]

    def _placed(self, mems: Mems, strand: _Strand) -> NDArray[np.int64]:
        """Where the rows of each read begin; ``strand`` is filled."""
        for name in ("positions", "starts", "lengths"):
            column, values = _column(getattr(mems, name))
            setattr(strand, name, column)
            self._arrays.append(values)
        reads, _alive = _column(mems.reads)
        bounds = np.empty(self._reads + 1, np.int64)
        numbers = ctypes.c_int64(len(mems.reads)), ctypes.c_int64(self._reads)
        wrong = compiled().lines_bounds(
            ctypes.byref(reads), *numbers, ctypes.byref(strand), _address(bounds), ctypes.c_int64(_ROWS_AT_ONCE),
            self._threads,
        )  # fmt: skip
        if wrong:
            raise AssertionError(_FAULTS[wrong])
        return bounds

    def cuts(self, lines_at_once: int) -> NDArray[np.int64]:
        """Groups of consecutive reads with about so many lines, or one read with more: from cuts[i] to cuts[i + 1]."""
        lines = np.arange(self._reads + 1)
        for bounds in self._bounds:
            lines += bounds
        ends = np.searchsorted(lines, np.arange(lines_at_once, int(lines[-1]), lines_at_once))
        # Ascending already, and so without what numpy would load for np.unique.
        cuts = np.concatenate(([0], ends[ends < self._reads], [self._reads]))
        return cuts[np.diff(cuts, prepend=-1) > 0].astype(np.int64)

    def places(self, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the text of each group begins, and where that of the last one ends."""
        sizes = np.zeros(len(cuts), np.int64)
        compiled().lines_sizes(*self._groups(cuts), _address(sizes[1:]), self._threads)
        return np.cumsum(sizes)

    def put(self, cuts: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The text."""
        text = np.empty(int(places[-1]), np.uint8)
        compiled().lines_put(*self._groups(cuts), _address(places), _address(text), self._threads)
        return text

    def write(self, cuts: NDArray[np.int64], places: NDArray[np.int64], file: int) -> None:
        """The text into a file, each group's from its place on. Raises OSError."""
        number = compiled().lines_write(
            *self._groups(cuts), _address(places), ctypes.c_int(file), self._threads, ctypes.c_int64(_WRITERS)
        )
        if number:
            raise OSError(number, os.strerror(number))

    def _groups(self, cuts: NDArray[np.int64]) -> tuple[Any, ctypes.c_void_p, ctypes.c_int64]:
        return ctypes.byref(self._block), _address(cuts), ctypes.c_int64(len(cuts) - 1)


def _column(values: NDArray[np.integer]) -> tuple[_Column, NDArray[np.integer]]:
    """With the array that it points into: the one given where it is of uint32 or int64."""
    if values.dtype not in (np.uint32, np.int64):
        values = values.astype(np.int64)
    return _Column(values.ctypes.data, values.strides[0], values.itemsize), values


def _name_cells(names: Sequence[str]) -> bytes:
    """The names as they stand at the start of rows, all of one length; empty where there is one record."""
    if len(names) < 2:
        return b""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    longest = max(map(len, encoded))
    gap = b" " * _NAME_GAP
    return b"".join(gap + name.ljust(longest) + gap for name in encoded)


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compiled() -> ctypes.CDLL:
    """lines.cpp as a library. Raises CompilerError."""
    return library(_SOURCE, _THREADS)
