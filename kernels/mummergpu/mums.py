"""Matches in the format of MUMmer 3's ``mummer -maxmatch -n``, written in bulk and read back for comparison.

    > name of the read                          every read has this line, with or without matches
         102         1        27                position in the reference, position in the read, length
    > name of the read Reverse                  and this one where both strands are searched (mummer -b)
       chromosome2         102         1        27      first the record, where the reference has several

Positions count from 1; those in a ``Reverse`` block count on the reverse complement of the read. Names are the
first words of headers; a column is as wide as its longest entry or, for numbers, 8.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.errors import WorkloadError

from .fastx import first_word

__all__ = ["Match", "Mems", "Records", "parse", "write_block"]

# So many lines are made at a time: a few MB, which stay near the core.
_LINES_AT_ONCE = 1 << 16

_GAP = 2
_COLUMNS = 3
_COLUMN_WIDTH = 8
# A number is written four digits at a time, by look-up. Numbers wider than a column take one more such cell.
_CELL = 4
_CELL_BASE = 10**_CELL


def _cells() -> NDArray[np.uint32]:
    """The four characters of v, padded by blanks, at v, and padded by zeros at 10000 + v. No number that is
    written is 0, so that a leading 0 is four blanks."""
    padded = [b"    ", *(b"%4d" % value for value in range(1, _CELL_BASE))]
    filled = [b"%04d" % value for value in range(_CELL_BASE)]
    return np.frombuffer(b"".join(padded + filled), np.uint32)


_TEXT_OF_CELL = _cells()


class Records(Protocol):
    """What is needed of a reference: each record's name, and the position of its first base."""

    @property
    def names(self) -> list[str]: ...
    @property
    def starts(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, eq=False)
class Mems:
    """One match per index. `reads` ascends and counts the reads of the block; `positions` are those of the
    reference's codes, `starts` in the read (or its reverse complement). All from 0, of any integer dtype."""

    reads: NDArray[np.integer]
    positions: NDArray[np.integer]
    starts: NDArray[np.integer]
    lengths: NDArray[np.integer]


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
    names = [first_word(header).encode("utf-8", "surrogateescape") for header in headers]
    strands = [(forward, _bounds(forward, len(names)), b"\n")]
    if reverse is not None:
        strands.append((reverse, _bounds(reverse, len(names)), b" Reverse\n"))
    step = 2 * len(strands)
    record_names = _name_cells(reference.names)
    for first, last in _groups([bounds for _, bounds, _ in strands], len(names)):
        lines = [b""] * (step * (last - first))
        for strand, (mems, bounds, ending) in enumerate(strands):
            text, cuts = _rows(record_names, reference.starts, mems, bounds[first : last + 1])
            lines[2 * strand :: step] = [b"> " + name + ending for name in names[first:last]]
            lines[2 * strand + 1 :: step] = [text[a:b] for a, b in itertools.pairwise(cuts)]
        stream.write(b"".join(lines))


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


def _bounds(mems: Mems, reads: int) -> NDArray[np.int64]:
    """Read i has the matches bounds[i] to bounds[i + 1]."""
    assert bool(np.all(mems.reads[:-1] <= mems.reads[1:])), "matches are not in the order of reads"
    bounds = np.searchsorted(mems.reads, np.arange(reads + 1)).astype(np.int64)
    assert bounds[0] == 0 and bounds[-1] == len(mems.reads), "matches of reads that are not in the block"
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


def _rows(
    names: NDArray[np.void] | None, starts: NDArray[np.int64], mems: Mems, bounds: NDArray[np.int64]
) -> tuple[bytes, list[int]]:
    """The rows bounds[0] to bounds[-1] as text, and where in it the rows of each read begin and end."""
    if bounds[0] == bounds[-1]:
        return b"", [0] * len(bounds)
    rows = slice(int(bounds[0]), int(bounds[-1]))
    positions = mems.positions[rows].astype(np.int64)
    records = np.searchsorted(starts, positions, side="right") - 1
    numbers = [
        positions - starts[records] + 1,
        mems.starts[rows].astype(np.int64) + 1,
        mems.lengths[rows].astype(np.int64),
    ]
    largest = max(int(values.max()) for values in numbers)
    cells = 2 if largest < _CELL_BASE**2 else -(-len(str(largest)) // _CELL)
    number_width = cells * _CELL
    name_width = names.itemsize if names is not None else 0
    width = name_width + _COLUMNS * (number_width + _GAP) - _GAP + 1

    text = np.empty((len(positions), width), np.uint8)
    text[:] = np.frombuffer(b" " * (width - 1) + b"\n", np.uint8)
    if names is not None:
        np.ndarray(len(text), names.dtype, text, strides=(width,))[:] = names[records]
    number_starts = [name_width + column * (number_width + _GAP) for column in range(_COLUMNS)]
    for start, values in zip(number_starts, numbers, strict=True):
        rest = values
        for cell in reversed(range(cells)):
            higher = rest // _CELL_BASE
            target = np.ndarray(len(text), np.uint32, text, start + cell * _CELL, (width,))
            target[:] = _TEXT_OF_CELL[rest - _CELL_BASE * higher + _CELL_BASE * (higher > 0)]
            if not higher.any():
                break
            rest = higher
    if number_width == _COLUMN_WIDTH:
        return text.tobytes(), ((bounds - bounds[0]) * width).tolist()
    # Only numbers that need it are wider than their column.
    kept = np.ones(text.shape, np.bool_)
    for start in number_starts:
        leading = slice(start, start + number_width - _COLUMN_WIDTH)
        kept[:, leading] = text[:, leading] != ord(" ")
    ends = np.concatenate(([0], np.cumsum(np.count_nonzero(kept, axis=1))))
    return text[kept].tobytes(), ends[bounds - bounds[0]].tolist()


def _name_cells(names: Sequence[str]) -> NDArray[np.void] | None:
    """The names as they stand at the start of rows, or None where there is one record: then they are left out."""
    if len(names) < 2:
        return None
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    longest = max(map(len, encoded))
    cells = b"".join(b"  " + name.ljust(longest) + b"  " for name in encoded)
    return np.frombuffer(cells, f"V{longest + 4}")
