"""Text in bulk: FASTA and FASTQ to codes, and matches to lines.

text.cpp does it; the host's C++ compiler makes it when it is first needed. Every function may run in many threads at
once: calls into a library leave the interpreter to the others.
"""

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from autotune.compile import library

__all__ = [
    "Headers",
    "Lines",
    "Parsed",
    "Strand",
    "bounds_of_reads",
    "compiled",
    "parse_fasta",
    "parse_fastq",
]

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_MOST_DIGITS = 20
_NAME_GAP = 2


@dataclass(frozen=True, eq=False)
class Headers(Sequence[str]):
    """Header lines as bytes: line i is `letters[bounds[i]:bounds[i + 1]]`. Not every header is UTF-8; whatever its
    bytes are, they are written back as they were. Slices share the bytes."""

    letters: NDArray[np.uint8]
    bounds: NDArray[np.int64]

    @staticmethod
    def of(texts: Sequence[str]) -> "Headers":
        if isinstance(texts, Headers):
            return texts
        encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
        bounds = np.fromiter(itertools.accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
        return Headers(np.frombuffer(b"".join(encoded), np.uint8), bounds)

    @staticmethod
    def joined(parts: Sequence["Headers"]) -> "Headers":
        letters = [part.letters[part.bounds[0] : part.bounds[-1]] for part in parts]
        lengths = [np.diff(part.bounds) for part in parts]
        return Headers(np.concatenate(letters), np.concatenate(([0], np.cumsum(np.concatenate(lengths)))))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        places = range(len(self))[index]
        if isinstance(places, int):
            line = self.letters[self.bounds[places] : self.bounds[places + 1]]
            return line.tobytes().decode("utf-8", "surrogateescape")
        if places.step == 1:
            return Headers(self.letters, self.bounds[places.start : max(places.start, places.stop) + 1])
        return [self[place] for place in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


# ---- text to codes


@dataclass(frozen=True, eq=False)
class Parsed:
    """Records: codes (bases,) uint8 and offsets (records + 1,) int64. ``unmarked`` is the first record of FASTQ that
    lacks an '@' or '+', ``unequal`` the first that has not as many qualities as bases, -1 for none of them."""

    headers: Headers
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    is_spoilt: bool  # whether a code is above OTHER
    unmarked: int = -1
    unequal: int = -1


def parse_fasta(text: bytes, code_of_byte: bytes) -> Parsed:
    """The records of ``text``, which begins with '>' and ends with a newline. ``code_of_byte`` has the codes of all
    256 bytes: 0 to 3 for A, C, G and T in either case, 5 for blanks, which are left out."""
    return _parsed(
        "text_fasta", text, compiled().text_count_headers(text, ctypes.c_int64(len(text))), code_of_byte
    )


def parse_fastq(text: bytes, records: int, code_of_byte: bytes) -> Parsed:
    """The first ``records`` records of ``text``, of four lines that end with newlines. Blanks in front of line ends
    are left out."""
    return _parsed("text_fastq", text, records, code_of_byte)


def _parsed(function: str, text: bytes, records: int, code_of_byte: bytes) -> Parsed:
    # What is not used of these is never touched, and takes no memory.
    codes, headers = np.empty(len(text), np.uint8), np.empty(len(text), np.uint8)
    offsets, bounds = np.empty((2, records + 1), np.int64)
    part = _Part(
        text=np.frombuffer(text, np.uint8).ctypes.data,
        length=len(text),
        records=records,
        code_of_byte=np.frombuffer(code_of_byte, np.uint8).ctypes.data,
        codes=codes.ctypes.data,
        offsets=offsets.ctypes.data,
        headers=headers.ctypes.data,
        bounds=bounds.ctypes.data,
        unmarked=-1,
        unequal=-1,
        is_spoilt=0,
    )
    compiled()[function](ctypes.byref(part))
    lines = Headers(headers[: bounds[-1]].copy(), bounds)
    return Parsed(lines, codes[: offsets[-1]], offsets, bool(part.is_spoilt), part.unmarked, part.unequal)


class _Part(ctypes.Structure):
    """text.cpp: Part."""

    _fields_ = (
        ("text", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("records", ctypes.c_int64),
        ("code_of_byte", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("headers", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
        ("unmarked", ctypes.c_int64),
        ("unequal", ctypes.c_int64),
        ("is_spoilt", ctypes.c_int64),
    )


# ---- matches to lines


class _Column(ctypes.Structure):
    """text.cpp: Column."""

    _fields_ = (("values", ctypes.c_void_p), ("stride", ctypes.c_int64), ("bytes", ctypes.c_int64))


class _Strand(ctypes.Structure):
    """text.cpp: Strand."""

    _fields_ = (
        ("positions", _Column),
        ("starts", _Column),
        ("lengths", _Column),
        ("bounds", ctypes.c_void_p),
    )


class _Block(ctypes.Structure):
    """text.cpp: Block."""

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
    wrong = compiled().text_bounds(
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
        return int(compiled().text_lines(ctypes.byref(self._block), *bounds, _address(text)))


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
    """text.cpp as a library. Raises CompilerError."""
    return library(_SOURCE, text_count_headers=ctypes.c_int64, text_lines=ctypes.c_int64)
