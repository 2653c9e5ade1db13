"""Matches to lines, in bulk.

lines.cpp does it; the host's C++ compiler makes it when it is first needed. Every function may run in many threads at
once: calls into a library leave the interpreter to the others.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

from ..text import Headers

__all__ = ["Lines", "Strand", "bounds_of_reads", "compiled"]

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_MOST_DIGITS = 20
_NAME_GAP = 2


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


@dataclass(frozen=True, eq=False)
class Strand:
    """Columns of matches, of any integer dtype and any stride; read i has the rows bounds[i] to bounds[i + 1]."""

    positions: NDArray[np.integer]
    starts: NDArray[np.integer]
    lengths: NDArray[np.integer]
    bounds: NDArray[np.int64]


def bounds_of_reads(reads: NDArray[np.integer], first: int, last: int, bounds: NDArray[np.int64]) -> str:
    """Rows ``first`` to ``last`` of a block with ``len(bounds) - 1`` reads: their share of ``bounds``, so that the
    rows of read i begin at bounds[i]; of the reads behind the last row's nothing is set. Returns what is wrong."""
    column, _alive = _column(reads)
    wrong = compiled().lines_bounds(
        ctypes.byref(column), *map(ctypes.c_int64, (first, last, len(bounds) - 1)), _address(bounds)
    )
    return ("", "matches are not in the order of reads", "matches of reads that are not in the block")[wrong]


class Lines:
    """The lines of a block of reads: every header, with the rows of each strand. ``names`` and ``starts`` are those of
    the reference's records, one or two the ``strands``."""

    def __init__(
        self, names: Sequence[str], starts: NDArray[np.int64], headers: Headers, strands: Sequence[Strand]
    ) -> None:
        self._headers = headers
        self._strands = strands
        cells = _name_cells(names)
        self._width = len(cells) // len(names)
        arrays: list[NDArray[Any]] = [
            np.ascontiguousarray(headers.letters),
            np.ascontiguousarray(headers.bounds, np.int64),
            np.ascontiguousarray(starts, np.int64),
            np.frombuffer(cells, np.uint8),
        ]
        block = _Block(records=len(names), name_width=self._width, strands=len(strands))
        block.headers, block.header_bounds, block.record_starts, block.names = (
            array.ctypes.data for array in arrays
        )
        for number, strand in enumerate(strands):
            for name in ("positions", "starts", "lengths"):
                column, values = _column(getattr(strand, name))
                setattr(block.strand[number], name, column)
                arrays.append(values)
            block.strand[number].bounds = strand.bounds.ctypes.data
        self._block = block
        self._arrays = arrays  # what the block points into

    def room(self, first: int, last: int) -> int:
        """As many bytes as the lines of reads ``first`` to ``last`` can be."""
        rows = sum(int(strand.bounds[last] - strand.bounds[first]) for strand in self._strands)
        letters = int(self._headers.bounds[last] - self._headers.bounds[first])
        strands = len(self._strands)
        marks = len("> \n> Reverse\n") * (last - first)
        return rows * (self._width + 3 * (_MOST_DIGITS + _NAME_GAP)) + strands * (letters + marks)

    def put(self, first: int, last: int, text: NDArray[np.uint8]) -> int:
        """The lines of reads ``first`` to ``last`` into ``text``; returns how many bytes they are."""
        bounds = (ctypes.c_int64(first), ctypes.c_int64(last))
        return int(compiled().lines_put(ctypes.byref(self._block), *bounds, _address(text)))


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
    return library(_SOURCE, lines_put=ctypes.c_int64)
