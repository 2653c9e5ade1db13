"""Text in bulk: FASTA and FASTQ to codes, and codes to what the device reads.

text.cpp does it, in all threads; the host's C++ compiler makes it when it is first needed. Every function may run in
many threads at once: calls into a library leave the interpreter to the others.
"""

import ctypes
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

__all__ = [
    "Headers",
    "Parsed",
    "compiled",
    "cores",
    "cut_fasta",
    "last_fasta",
    "packed",
    "parse_fasta",
    "parse_fasta_into",
    "parse_fastq",
    "read_at",
    "turned",
    "whole_fastq",
]

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")
_THREADS = _SOURCE.with_name("threads.hpp")

Text = bytes | memoryview | NDArray[np.uint8]

# What begins and ends in each piece, as text.cpp's Piece has it.
_PIECE = np.dtype([
    (name, np.int64)
    for name in (
        "begin", "end", "lines", "records", "bases", "letters", "first_record", "first_base", "first_letter",
        "unmarked", "unequal", "is_spoilt",
    )
])  # fmt: skip
_CODES_IN_WORD = 8
_BYTES_AT_ONCE = 1 << 20  # of a text, by one thread
_COUNTED = -1  # records of FASTA are


def cores() -> int:
    """How many threads may run at once here."""
    return len(os.sched_getaffinity(0))


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


def parse_fasta(text: Text, code_of_byte: bytes, threads: int = 1) -> Parsed:
    """The records of ``text``, which begins with '>' and ends with a newline. ``code_of_byte`` has the codes of all
    256 bytes: 0 to 3 for A, C, G and T in either case, 5 for blanks, which are left out."""
    return _parsed(_part(text, threads), _COUNTED, code_of_byte)


def parse_fasta_into(
    room: NDArray[np.uint8], text: Text, code_of_byte: bytes, is_within: bool, threads: int = 1
) -> Parsed:
    """A part of FASTA that ends where ``cut_fasta`` says, as ``parse_fasta`` reads it, its codes in ``room`` with an
    OTHER in front of every record. What is ahead of the first header belongs to the record before; ``is_within`` says
    whether it begins within a line."""
    part, pieces = _part(text, threads)
    part.is_within, part.is_separated = is_within, True
    return _parsed((part, pieces), _COUNTED, code_of_byte, room)


def parse_fastq(text: Text, records: int, code_of_byte: bytes, threads: int = 1) -> Parsed:
    """The first ``records`` records of ``text``, of four lines that end with newlines. Blanks in front of line ends
    are left out."""
    return _parsed(_part(text, threads), records, code_of_byte)


def _parsed(
    given: "tuple[_Part, NDArray[Any]]",
    records: int,
    code_of_byte: bytes,
    room: NDArray[np.uint8] | None = None,
) -> Parsed:
    """With new memory for the codes, or in ``room``."""
    part, pieces = given
    part.records = records
    part.code_of_byte = np.frombuffer(code_of_byte, np.uint8).ctypes.data
    functions = compiled()
    functions.text_count(ctypes.byref(part))
    last = pieces[-1]
    records, bases, letters = (
        int(last[f"first_{name}"] + last[f"{name}s"]) for name in ("record", "base", "letter")
    )
    codes = np.empty(bases, np.uint8) if room is None else room[:bases]
    assert codes.size == bases, "room for every code"
    headers = np.empty(letters, np.uint8)
    offsets, bounds = np.empty((2, records + 1), np.int64)
    part.codes, part.headers = codes.ctypes.data, headers.ctypes.data
    part.offsets, part.bounds = offsets.ctypes.data, bounds.ctypes.data
    functions.text_parse(ctypes.byref(part))
    first = [_first(pieces[name]) for name in ("unmarked", "unequal")]
    return Parsed(Headers(headers, bounds), codes, offsets, bool(pieces["is_spoilt"].any()), *first)


def _first(numbers: NDArray[np.int64]) -> int:
    """The first that is one."""
    there = numbers[numbers >= 0]
    return int(there[0]) if there.size else -1


def last_fasta(text: NDArray[np.uint8]) -> int:
    """Where the last record of FASTA begins, 0 where none but the first does."""
    return int(compiled().text_last_fasta(_address(text), ctypes.c_int64(text.size)))


def cut_fasta(text: NDArray[np.uint8], threads: int = 1) -> int:
    """Up to where FASTA can be parsed before what follows is read: to its end, but for a header line without one."""
    sizes = ctypes.c_int64(text.size), ctypes.c_int64(threads)
    return int(compiled().text_cut_fasta(_address(text), *sizes))


def whole_fastq(text: NDArray[np.uint8], threads: int = 1) -> tuple[int, int]:
    """Where the whole records of FASTQ, of four lines each, end in ``text``, and how many they are."""
    part, _pieces = _part(text, threads)
    return int(compiled().text_whole_fastq(ctypes.byref(part))), int(part.records)


def read_at(file: int, begin: int, room: NDArray[np.uint8], threads: int = 1) -> int:
    """Fills ``room`` with a file's bytes from ``begin`` on; returns how many there are. Raises OSError."""
    given = ctypes.c_int(file), ctypes.c_int64(begin), ctypes.c_int64(room.size), _address(room)
    count = int(compiled().text_read(*given, ctypes.c_int64(threads)))
    if count < 0:
        raise OSError(-count, os.strerror(-count))
    return count


def packed(codes: NDArray[np.uint8], words: NDArray[np.uint32], threads: int = 1) -> None:
    """Eight of ``codes`` to a word, the first in its lowest bits, with OTHER behind the last."""
    if codes.size > words.size * _CODES_IN_WORD:
        raise ValueError(f"{codes.size} codes do not fit into {words.size} words of {_CODES_IN_WORD}")
    codes, sizes = np.ascontiguousarray(codes), [ctypes.c_int64(n) for n in (codes.size, words.size, threads)]
    compiled().text_pack(_address(codes), sizes[0], _address(words), sizes[1], sizes[2])


def turned(codes: NDArray[np.uint8], offsets: NDArray[np.int64], threads: int = 1) -> NDArray[np.uint8]:
    """Each read ``codes[offsets[i]:offsets[i + 1]]`` reversed and complemented in its place; OTHER stays OTHER."""
    codes, offsets = np.ascontiguousarray(codes), np.ascontiguousarray(offsets, np.int64)
    result = np.empty_like(codes)
    sizes = ctypes.c_int64(len(offsets) - 1), _address(result), ctypes.c_int64(threads)
    compiled().text_turn(_address(codes), _address(offsets), *sizes)
    return result


class _Part(ctypes.Structure):
    """text.cpp: Part."""

    _fields_ = (
        ("text", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("records", ctypes.c_int64),
        ("is_within", ctypes.c_int64),
        ("is_separated", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("piece_bytes", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("pieces", ctypes.c_void_p),
        ("code_of_byte", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("headers", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
    )


def _part(text: Text, threads: int) -> tuple[_Part, NDArray[Any]]:
    """Of the whole text, with room for its pieces."""
    letters = np.frombuffer(text, np.uint8)
    pieces = np.zeros(-(-letters.size // _BYTES_AT_ONCE), _PIECE)
    part = _Part(text=letters.ctypes.data, length=letters.size, threads=threads)
    part.piece_bytes, part.count, part.pieces = _BYTES_AT_ONCE, pieces.size, pieces.ctypes.data
    return part, pieces


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compiled() -> ctypes.CDLL:
    """text.cpp as a library. Raises CompilerError."""
    functions = ("text_read", "text_cut_fasta", "text_last_fasta", "text_whole_fastq")
    return library(_SOURCE, _THREADS, **dict.fromkeys(functions, ctypes.c_int64))
