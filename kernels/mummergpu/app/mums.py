"""Matches in the format of MUMmer 3's ``mummer -maxmatch -n``, written in bulk and read back for comparison.

    > name of the read                          every read has this line, with or without matches
         102         1        27                position in the reference, position in the read, length
    > name of the read Reverse                  and this one where both strands are searched (mummer -b)
       chromosome2         102         1        27      first the record, where the reference has several

Positions count from 1; those in a ``Reverse`` block count on the reverse complement of the read. Names are
what headers have in front of their first blank; a column is as wide as its longest entry or, for numbers, 8.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from ..matches import Mems
from ..text import Headers, cores
from .lines import Texts

__all__ = ["Lines", "Match", "Records", "parse"]

# So many lines are made by a thread at a time: about a MB, which stays near its core.
_LINES_AT_ONCE = 1 << 15

_COLUMNS = 3


class Records(Protocol):
    """What is needed of a reference: each record's name, and the position of its first base."""

    @property
    def names(self) -> list[str]: ...
    @property
    def starts(self) -> NDArray[np.int64]: ...


class Match(NamedTuple):
    """A row as `parse` gives it, positions from 1; `record` is empty where the file has three columns."""

    read: str
    reverse: bool
    record: str
    position: int
    start: int
    length: int


class Lines:
    """The lines of a block of reads, ready to be written: every header, with the rows of `forward` and, if both strands
    were searched, of `reverse`. Rows keep their order."""

    def __init__(
        self, reference: Records, headers: Sequence[str], forward: Mems, reverse: Mems | None = None
    ) -> None:
        found = [forward] if reverse is None else [forward, reverse]
        self._texts = Texts(reference.names, reference.starts, Headers.of(headers), found, cores())
        self._cuts = self._texts.cuts(_LINES_AT_ONCE)
        self._places = self._texts.places(self._cuts)

    def write(self, stream: BinaryIO) -> None:
        """Append the lines. Raises OSError."""
        stream.flush()
        try:
            file = stream.fileno()
        except io.UnsupportedOperation:
            stream.write(self._texts.put(self._cuts, self._places).data)
            return
        begin = stream.tell()
        self._texts.write(self._cuts, begin + self._places, file)
        stream.seek(begin + int(self._places[-1]))


def parse(path: Path) -> list[Match]:
    """The rows of `path`, sorted, for comparing what programs found: the order of rows, the width of columns and
    reads without a match make no difference. Raises WorkloadError: cannot be read, or a line of another kind.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise WorkloadError(
            f"cannot read {path}: {error.strerror or error}. Give a file that mummer or autotune run wrote."
        ) from error
    matches: list[Match] = []
    read: tuple[str, bool] | None = None
    for number, line in enumerate(lines, start=1):
        # Bytes are split at ASCII blanks only, as MUMmer ends names.
        words = line.split()
        if line.startswith(b">"):
            read = _read_of(line)
        elif words:
            if (
                read is None
                or len(words) - _COLUMNS not in (0, 1)
                or not b"".join(words[-_COLUMNS:]).isdigit()
            ):
                raise WorkloadError(
                    f"{path} line {number} is {line[:80]!r}; allowed are '> name' and, after it, rows of 3 numbers, "
                    "or a name and 3 numbers. Give a file that mummer or autotune run wrote."
                )
            record = _text(words[0]) if len(words) > _COLUMNS else ""
            position, start, length = map(int, words[-_COLUMNS:])
            matches.append(Match(*read, record, position, start, length))
    return sorted(matches)


def _read_of(line: bytes) -> tuple[str, bool]:
    """Name and strand from a header line; programs differ in what they put around the name."""
    words = line[1:].split()
    if line.startswith(b">  ") and words[:1] == [b"Reverse"]:
        return "", True
    return (_text(words[0]) if words else ""), words[1:2] == [b"Reverse"]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
