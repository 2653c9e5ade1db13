"""Text in bulk: FASTA and FASTQ to codes.

text.cpp does it; the host's C++ compiler makes it when it is first needed. Every function may run in many threads at
once: calls into a library leave the interpreter to the others.
"""

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

__all__ = [
    "Headers",
    "Parsed",
    "compiled",
    "parse_fasta",
    "parse_fastq",
]

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")


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


def compiled() -> ctypes.CDLL:
    """text.cpp as a library. Raises CompilerError."""
    return library(_SOURCE, text_count_headers=ctypes.c_int64)
