"""Matches in the format of MUMmer 3's ``mummer -maxmatch -n``, written in bulk and read back for comparison.

    > name of the read                          every read has this line, with or without matches
         102         1        27                position in the reference, position in the read, length
    > name of the read Reverse                  and this one where both strands are searched (mummer -b)
       chromosome2         102         1        27      first the record, where the reference has several

Positions count from 1; those in a ``Reverse`` block count on the reverse complement of the read. Names are the
first words of headers; a column is as wide as its longest entry or, for numbers, 8.
"""

import io
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from ..matches import Mems
from ..text import Headers
from .lines import Lines, Strand, bounds_of_reads, compiled

__all__ = ["Match", "Records", "parse", "write_block"]

Text = NDArray[np.uint8]

# So many lines are made at a time: a few MB, which stay near the core.
_LINES_AT_ONCE = 1 << 16
# Room that is enough for them nearly always; what is not written to takes no memory.
_TEXT_BYTES = 1 << 23
# So many rows are looked through at a time for where those of each read begin.
_ROWS_AT_ONCE = 1 << 20

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


def write_block(
    stream: BinaryIO, reference: Records, headers: Sequence[str], forward: Mems, reverse: Mems | None = None
) -> None:
    """Append the lines of a block of reads: every header, with the rows of `forward` and, if both strands were
    searched, of `reverse`. Rows keep their order."""
    lines_of = Headers.of(headers)
    found = [forward] if reverse is None else [forward, reverse]
    compiled()  # once, before the threads ask for it
    threads = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(threads) as pool:
        strands = [
            Strand(mems.positions, mems.starts, mems.lengths, _bounds(pool, mems, len(lines_of)))
            for mems in found
        ]
        lines = Lines(reference.names, reference.starts, lines_of, strands)

        def made(first: int, last: int, text: Text) -> tuple[Text, int]:
            return text, lines.put(first, last, text)

        begun: deque[Future[tuple[Text, int]]] = deque()
        writing: deque[Future[Text]] = deque()
        unused: list[Text] = []  # memory that was touched before is faster
        sink = _Sink(stream)

        def write_next() -> None:
            if len(writing) >= threads:
                unused.append(writing.popleft().result())
            text, size = begun.popleft().result()
            writing.append(pool.submit(sink.put, text, sink.place(size), size))

        for first, last in _groups([strand.bounds for strand in strands], len(lines_of)):
            room = lines.room(first, last)
            text = unused.pop() if unused else np.empty(max(room, _TEXT_BYTES), np.uint8)
            if len(text) < room:
                text = np.empty(room, np.uint8)
            begun.append(pool.submit(made, first, last, text))
            if len(begun) > threads:
                write_next()
        while begun:
            write_next()
        for written in writing:
            written.result()
        sink.finish()


class _Sink:
    """Appends to a file from several threads at once, each where ``place`` said: copying into the page cache is what
    takes long. A stream in memory is written by one at a time. Raises OSError."""

    def __init__(self, stream: BinaryIO) -> None:
        stream.flush()
        self._stream, self._end = stream, stream.tell()
        self._alone = threading.Lock()
        self._file: int | None = None
        with suppress(io.UnsupportedOperation):
            self._file = stream.fileno()

    def place(self, size: int) -> int:
        """Where the next ``size`` bytes go."""
        self._end += size
        return self._end - size

    def put(self, text: Text, place: int, size: int) -> Text:
        """``text``, when its first ``size`` bytes are written."""
        if self._file is None:
            with self._alone:
                self._stream.seek(place)
                self._stream.write(text[:size].data)
            return text
        done = 0
        while done < size:
            done += os.pwrite(self._file, text[done:size].data, place + done)
        return text

    def finish(self) -> None:
        self._stream.seek(self._end)


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


def _bounds(pool: Executor, mems: Mems, reads: int) -> NDArray[np.int64]:
    """Read i has the matches bounds[i] to bounds[i + 1]."""
    count = len(mems.reads)
    bounds = np.empty(reads + 1, np.int64)
    firsts = range(0, count, _ROWS_AT_ONCE)
    lasts = (min(first + _ROWS_AT_ONCE, count) for first in firsts)
    look = partial(bounds_of_reads, mems.reads, bounds=bounds)
    if wrong := [message for message in pool.map(look, firsts, lasts) if message]:
        raise AssertionError(wrong[0])
    bounds[int(mems.reads[-1]) + 1 if count else 0 :] = count
    return bounds


def _groups(all_bounds: Sequence[NDArray[np.int64]], reads: int) -> Iterator[tuple[int, int]]:
    """Consecutive reads with about _LINES_AT_ONCE lines; one with more is alone."""
    lines = np.arange(reads + 1)
    for bounds in all_bounds:
        lines += bounds
    first = 0
    while first < reads:
        last = int(np.searchsorted(lines, lines[first] + _LINES_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
