"""Maximal exact matches without a tree and without the kernels: by equal words, looked up and made longer.

mem_search.cpp does it, in all threads; the host's C++ compiler makes it when it is first needed. Words of up to 32
letters of the reference stand in a table, those that are equal in the order of what follows them. The words of a
read are looked up there; where the letters in front differ, they are compared on to the match's end.
"""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

from .fastx import OTHER
from .matches import Mems
from .suffix_array import suffix_array

__all__ = ["count_mems", "find_mems"]

Codes = NDArray[np.uint8]
Positions = NDArray[np.int64]

# A word is a number of 64 bits.
_MOST_LETTERS = 32
# The table is entered by so many first letters at most: 64 MiB of bounds.
_MOST_LEADING = 12
# So many bases of reads are one piece of work.
_BASES_AT_ONCE = 1 << 18

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_WORD = np.dtype([("number", np.uint64), ("position", np.uint32), ("before", np.uint32)])


def count_mems(reference: Codes, queries: Codes, offsets: Positions, minimum: int, threads: int = 0) -> int:
    """How many matches of at least ``minimum`` bases there are; arguments as in ``find_mems``."""
    return sum(_Search(reference, queries, offsets, minimum, threads).counts())


def find_mems(reference: Codes, queries: Codes, offsets: Positions, minimum: int, threads: int = 0) -> Mems:
    """The matches of at least ``minimum`` bases, of uint32: by read, start in the read, and what follows in the
    reference (A, C, G, T, the end of a record; those that are equal up to an end by position).

    ``reference`` (characters,) and ``queries`` (bases,) are uint8 codes, where 4 matches nothing and ends a record;
    ``offsets`` (reads + 1,) int64. ``threads`` work, 0 stands for every core this process may use. The peak over
    the inputs and the matches is about 30 bytes for each character of the reference and 64 MiB. Raises ValueError
    for a ``minimum`` below 1, CompilerError when there is no C++ compiler or it fails.
    """
    search = _Search(reference, queries, offsets, minimum, threads)
    counts = search.counts()
    bounds = [0, *np.cumsum(counts, dtype=np.int64).tolist()]
    columns = np.empty((4, bounds[-1]), np.uint32)
    search.fill(columns, bounds[:-1])
    return Mems(*columns)


class _Search:
    """The table of the reference's words, and the reads in pieces."""

    def __init__(
        self, reference: Codes, queries: Codes, offsets: Positions, minimum: int, threads: int
    ) -> None:
        if minimum < 1:
            raise ValueError(f"minimum {minimum}: the least length of a match must be at least 1")
        self._library = _library()
        self._table = _table(reference, min(minimum, _MOST_LETTERS))
        self._codes = np.ascontiguousarray(queries, np.uint8)
        self._offsets = np.ascontiguousarray(offsets, np.int64)
        self._minimum = minimum
        self._threads = threads or len(os.sched_getaffinity(0))
        ends = np.arange(_BASES_AT_ONCE, self._codes.size, _BASES_AT_ONCE)
        inner = np.unique(np.searchsorted(self._offsets, ends))
        self._pieces = [0, *inner.tolist(), self._offsets.size - 1]

    def counts(self) -> list[int]:
        """The number of matches in each piece."""
        return self._in_threads(lambda first, last, _: self._find(first, last, None, 0), self._pieces[:-1])

    def fill(self, columns: NDArray[np.uint32], places: list[int]) -> None:
        """The matches of each piece into ``columns`` (4, matches), from its place on."""
        mems = _Mems(*(column.ctypes.data for column in columns))
        self._in_threads(
            lambda first, last, place: self._find(first, last, ctypes.byref(mems), place), places
        )

    def _in_threads(self, work: Callable[[int, int, int], int], places: list[int]) -> list[int]:
        pieces = self._pieces[:-1], self._pieces[1:], places
        if len(places) == 1:  # starting a thread takes longer than few reads
            return list(map(work, *pieces))
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(work, *pieces))

    def _find(self, first: int, last: int, mems: Any, place: int) -> int:
        reads = _Reads(self._codes.ctypes.data, self._offsets.ctypes.data)
        bounds = map(ctypes.c_uint64, (first, last, self._minimum))
        table, read = ctypes.byref(self._table.index), ctypes.byref(reads)
        return int(self._library.mem_search_find(table, read, *bounds, mems, ctypes.c_uint64(place)))


class _Index(ctypes.Structure):
    """mem_search.cpp: Index."""

    _fields_ = (
        ("characters", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("letters", ctypes.c_uint32),
        ("leading", ctypes.c_uint32),
        ("reference", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
    )


class _Reads(ctypes.Structure):
    """mem_search.cpp: Reads."""

    _fields_ = (("codes", ctypes.c_void_p), ("offsets", ctypes.c_void_p))


class _Mems(ctypes.Structure):
    """mem_search.cpp: Mems."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("reads", "positions", "starts", "lengths"))


@dataclass(frozen=True, eq=False)
class _Table:
    """``index`` points into ``arrays``."""

    index: _Index
    arrays: tuple[NDArray[Any], ...]


def _table(reference: Codes, letters: int) -> _Table:
    """The words of so many letters, which begin at any position of the reference."""
    text = np.append(np.minimum(reference, np.uint8(OTHER)), np.uint8(OTHER))
    order = _order(text)
    ranks = np.empty(text.size, np.uint32)
    functions, sizes = _library(), (ctypes.c_uint64(text.size), ctypes.c_uint64(order.size))
    if not functions.mem_search_is_order(
        _address(text), sizes[0], _address(order), sizes[1], _address(ranks)
    ):
        raise RuntimeError(
            f"suffix_array.cpp gave a wrong order of the {text.size:,} suffixes of the reference: that is a mistake "
            "in it, please report it with the reference"
        )
    words = np.empty(order.size, _WORD)
    del order
    leading = min(letters, _MOST_LEADING, max(1, text.size.bit_length() // 2))
    bounds = np.empty(4**leading + 1, np.uint32)
    index = _Index(
        characters=text.size,
        letters=letters,
        leading=leading,
        reference=text.ctypes.data,
        words=words.ctypes.data,
        bounds=bounds.ctypes.data,
    )
    functions.mem_search_index(ctypes.byref(index), sizes[1], _address(ranks))
    return _Table(index, (text, words, bounds))


def _order(text: Codes) -> NDArray[np.uint32]:
    """The positions of all letters by what follows up to the end of the record, then by position. ``text`` ends
    with OTHER."""
    order: NDArray[np.uint32] = suffix_array(text)[: int(np.count_nonzero(text != OTHER))]
    return order


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _library() -> ctypes.CDLL:
    """mem_search.cpp as a library. Raises CompilerError."""
    return library(_SOURCE, mem_search_find=ctypes.c_uint64)
