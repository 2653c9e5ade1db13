"""Pages: a reference too large for one tree, cut so that every match is found once and none is lost.

Page k owns the matches that begin in [k * size, (k + 1) * size). Its text also has the base before, which decides
whether a match could be prolonged to the left, and as many bases behind as a read can have, so that no match that
begins in the page is cut. What begins outside is the same match as another page's, or a piece of it, and is dropped.
"""

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from ..fastx import OTHER, has_base
from ..index import MOST_POSITIONS
from ..matches import Mems

__all__ = ["Page", "Spill", "merged", "pages"]

_SPILLED = np.dtype([(name, np.uint32) for name in ("read", "position", "start", "length")])


@dataclass(frozen=True)
class Page:
    """The reference's characters [first, last); the matches that begin in [begin, end) are this page's."""

    first: int
    begin: int
    end: int
    last: int

    def text(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """This page's part of `codes`, the whole reference; it ends with an OTHER."""
        part = codes[self.first : self.last]
        return part if part[-1] == OTHER else np.append(part, np.uint8(OTHER))

    def owned(self, found: Mems) -> Mems:
        """Of the matches in this page's text those that are its own, at their positions in the text."""
        begin, end = self.begin - self.first, self.end - self.first
        if begin == 0 and self.end == self.last:
            return found
        is_own = (found.positions >= begin) & (found.positions < end)
        return Mems(found.reads[is_own], found.positions[is_own], found.starts[is_own], found.lengths[is_own])

    def placed(self, found: Mems) -> Mems:
        """Matches in this page's text at their positions in the whole reference."""
        if not self.first:
            return found
        positions = found.positions.astype(np.int64) + self.first
        return Mems(found.reads, positions, found.starts, found.lengths)


def pages(codes: NDArray[np.uint8], size: int | None, max_read_length: int) -> list[Page]:
    """The pages of `size` characters of a reference, or one with all of it for None; pages in which nothing but
    OTHER begins are left out. Raises WorkloadError when a page has more positions than 32 bits can number."""
    whole = len(codes)
    starts = range(0, whole, size) if size is not None else range(1)
    made = []
    for begin in starts:
        end = min(whole, begin + (whole if size is None else size))
        page = Page(max(0, begin - 1), begin, end, min(whole, end + max_read_length))
        # The last separator may have to be added.
        if (characters := page.last - page.first) >= MOST_POSITIONS:
            raise WorkloadError(
                f"a page of {characters:,} characters: it can have {MOST_POSITIONS - 1:,}, with the longest read "
                f"behind it ({max_read_length:,}), as positions in it have 32 bits; give a smaller page"
            )
        if has_base(codes[begin:end]):
            made.append(page)
    return made


def merged(parts: Sequence[Mems]) -> Mems:
    """Matches of several pages in one: by read, start in the read, position."""
    reads, positions, starts, lengths = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("reads", "positions", "starts", "lengths")
    )
    order = np.lexsort((positions, starts, reads))
    return Mems(reads[order], positions[order], starts[order], lengths[order])


class Spill:
    """Matches put aside in a file without a name: whatever ends the program, nothing of it stays. 16 bytes each.

    For one thread at a time; close it. Every method raises OSError when the disk is full or fails.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # close() ends it
        self._places: dict[Hashable, tuple[int, int]] = {}
        self._end = 0

    def put(self, key: Hashable, found: Mems) -> None:
        """Keep `found`, whose values are below 2**32, under `key`."""
        records = np.empty(len(found.reads), _SPILLED)
        columns = (found.reads, found.positions, found.starts, found.lengths)
        for name, values in zip(_SPILLED.names or (), columns, strict=True):
            records[name] = values
        self._file.seek(self._end)
        self._file.write(records.tobytes())
        self._places[key] = self._end, len(records)
        self._end += records.nbytes

    def take(self, key: Hashable) -> Mems:
        """What was put under `key`. Raises KeyError where nothing was."""
        place, count = self._places[key]
        self._file.seek(place)
        records = np.frombuffer(self._file.read(count * _SPILLED.itemsize), _SPILLED)
        return Mems(records["read"], records["position"], records["start"], records["length"])

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Spill":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
