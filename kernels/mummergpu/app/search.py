"""The matches of reads in one page, by the tuned kernels: the page's index stays on the device, reads come and go."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.family import Inputs, Prepared, TunedKernel, WorkloadError

from ..arrays import OFFSET, Progress, bounds_of
from ..fastx import OTHER
from ..matches import Mems
from ..suffix_tree import MAX_CHARACTERS
from ..text import cores, packed
from .page_index import PageIndex, index_bytes, index_of
from .rooms import Rooms

__all__ = ["Search", "Searcher", "largest_text"]

Codes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_TOO_MANY = 2**32 - 1  # scan.cuh: too_many
_AT_ONCE = 1 << 24  # matches are fetched in passes of at most so many, 16 bytes each
_SPARE = 1.25  # blocks of reads are about equal: room for a little more than the first has
_BASES_IN_WORD = 8  # of reads on the device
# Building a tree, its arrays as they are and as a policy has them.
_HOST_BYTES_PER_CHARACTER = 400
_DEVICE_SHARE = 0.8  # for the index; the rest is for reads and matches
_SOME_BASES, _SOME_READS = 1 << 20, 1 << 13  # where none are known yet


class Search(Protocol):
    """The text of one page, ready to be searched by ``lanes`` threads at once."""

    @property
    def lanes(self) -> int: ...

    @property
    def policy(self) -> str:
        """The configuration that runs and why it was taken."""

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        """The matches of the reads `codes[offsets[i]:offsets[i + 1]]`: by read, start in the read, then in the order
        of what follows in the text, at positions of the text. Raises WorkloadError when one read alone has
        4,294,967,295 matches or more."""

    def release(self, found: Mems) -> None:
        """What ``search`` gave is needed no more: its memory may be that of a later search's."""

    def close(self) -> None:
        """Free what is on the device."""


@dataclass(frozen=True)
class _Lane:
    """Arrays for reads of one thread, with room for so many; ``matches`` at once. ``words`` are the bases as the device
    has them."""

    prepared: Prepared
    words: NDArray[np.uint32]
    bounds: int
    slots: int
    matches: int

    def has_room(self, bases: int, bounds: int, slots: int) -> bool:
        return bases <= self.words.size * _BASES_IN_WORD and bounds <= self.bounds and slots <= self.slots


class Searcher:
    """A `Search` that runs the kernels on the index of one page's text, which ends with an OTHER. The reads that come
    at once are expected to have up to so many ``bases``, and to be so many. Raises WorkloadError, and what the
    device raises."""

    def __init__(
        self,
        kernel: TunedKernel,
        text: Codes,
        min_match_length: int,
        bases: int,
        reads: int,
        progress: Progress | None = None,
    ) -> None:
        self._kernel = kernel
        self._min_match_length = min_match_length
        self._lock = threading.Lock()
        self._free: list[_Lane] = []
        self._lanes: list[_Lane] = []
        # Every base may begin a slot, and three more of each read stay empty.
        self._expected = bases, reads + 1, bases + 3 * reads
        self._index, self._base = self._indexed(text, progress)
        self.lanes = 2 if kernel.kind == "cuda" else 1
        self.policy = f"{self._base.variant.configuration.id} ({self._base.match})"
        self._rooms = Rooms(self._base.execution.outlet())

    def _indexed(self, text: Codes, progress: Progress | None) -> tuple[PageIndex, Prepared]:
        """What the configuration that is chosen for these sizes reads of the text, and that with room for reads."""
        kernel, minimum = self._kernel, self._min_match_length
        chosen = kernel.explain(_sizes(kernel, text, minimum, *self._expected))[0].configuration
        while True:
            assert chosen is not None
            index = index_of(kernel, text, minimum, chosen, progress)
            try:
                prepared = kernel.prepare(_inputs(kernel, index.arrays, minimum, *self._expected))
            except BaseException:
                index.close()
                raise
            if index.suffices_for(prepared.variant.configuration):
                self._lanes.append(self._lane_of(prepared, *self._expected))
                self._free += self._lanes
                return index, prepared
            # The sizes of the index count, too.
            chosen = prepared.variant.configuration
            prepared.close()
            index.close()

    @staticmethod
    def _lane_of(prepared: Prepared, bases: int, bounds: int, slots: int) -> _Lane:
        words = np.empty(max(1, -(-bases // _BASES_IN_WORD)), np.uint32)
        return _Lane(prepared, words, bounds, slots, _matches_at_once(bases))

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        bounds = bounds_of(offsets, self._min_match_length)
        if not bounds["slot"][-1]:
            return Mems(*np.empty((4, 0), np.uint32))
        lane = self._taken(len(codes), len(bounds), int(bounds["slot"][-1]))
        try:
            with lane.prepared.stream():
                found = _found(lane, codes, bounds, self._rooms)
        finally:
            with self._lock:
                self._free.append(lane)
        if found is not None:
            return found
        reads = len(offsets) - 1
        if reads == 1:
            raise WorkloadError(
                f"a read has {_TOO_MANY:,} matches or more of at least {self._min_match_length} bases, which is more "
                "than can be listed: take a larger min_match_length"
            )
        half = reads // 2
        first = self.search(codes[: offsets[half]], offsets[: half + 1])
        second = self.search(codes[offsets[half] :], offsets[half:] - offsets[half])
        both = Mems(
            np.concatenate((first.reads, second.reads + np.uint32(half))),
            np.concatenate((first.positions, second.positions)),
            np.concatenate((first.starts, second.starts)),
            np.concatenate((first.lengths, second.lengths)),
        )
        self.release(first)
        self.release(second)
        return both

    def release(self, found: Mems) -> None:
        self._rooms.release(found)

    def _taken(self, bases: int, bounds: int, slots: int) -> _Lane:
        """One that nobody uses, with room for these."""
        with self._lock:
            for lane in self._free:
                if lane.has_room(bases, bounds, slots):
                    self._free.remove(lane)
                    return lane
            if len(self._lanes) >= self.lanes and self._free:  # too small
                unused = self._free.pop()
                self._lanes.remove(unused)
                if unused.prepared is not self._base:  # has the index, which all share
                    unused.prepared.close()
            wanted = bases, bounds, slots
            room = [max(int(n * _SPARE), most) for n, most in zip(wanted, self._expected, strict=True)]
            prepared = self._base.beside(
                _inputs(self._kernel, self._index.arrays, self._min_match_length, *room)
            )
            lane = self._lane_of(prepared, *room)
            self._lanes.append(lane)
            return lane

    def close(self) -> None:
        """Safe to call twice."""
        with self._lock:
            self._rooms.close()
            for lane in self._lanes:
                if lane.prepared is not self._base:
                    lane.prepared.close()
            self._lanes.clear()
            self._free.clear()
            self._base.close()
            self._index.close()


def _inputs(
    kernel: TunedKernel, arrays: Mapping[str, Any], min_match_length: int, bases: int, bounds: int, slots: int
) -> Inputs:
    """``arrays`` of a text with room for reads."""
    words = max(1, -(-bases // _BASES_IN_WORD))
    return kernel.bind(
        **arrays,
        min_match_length=min_match_length,
        queries=np.full(words * _BASES_IN_WORD, OTHER, np.uint8),
        offsets=np.zeros(bounds, OFFSET),
        slots=slots,
        mem_count=_matches_at_once(bases),
    )


def _sizes(
    kernel: TunedKernel, text: Codes, min_match_length: int, bases: int, bounds: int, slots: int
) -> Inputs:
    """What a configuration is chosen for."""
    nothing = index_of(kernel, text, min_match_length, None).arrays
    return _inputs(kernel, nothing, min_match_length, bases, bounds, slots)


def _matches_at_once(bases: int) -> int:
    return max(1, min(_AT_ONCE, 2 * bases))


def _found(lane: _Lane, codes: Codes, bounds: NDArray[Any], rooms: Rooms) -> Mems | None:
    """The matches, or None where they are too many to be counted."""
    slots = int(bounds["slot"][-1])
    run = lane.prepared.execution
    packed(codes, lane.words, cores())
    run.refill("queries", lane.words.view(np.uint8))
    lane.prepared.refill(offsets=np.concatenate((bounds, np.repeat(bounds[-1:], lane.bounds - len(bounds)))))
    for kernel in ("match", "print_count", "scan_tiles", "scan_groups"):
        run.launch(kernel, slots=slots)
    total = int(run.head("group_sums", 1)[0])
    if total == _TOO_MANY:
        return None
    record = lane.prepared.variant.family.data["mems"].dtype
    room = rooms.take(total * record.itemsize)
    for first in range(0, total, lane.matches):
        count = min(lane.matches, total - first)
        run.launch("print_emit", slots=slots, first_mem=first)
        run.head("mems", count, room[first * record.itemsize : (first + count) * record.itemsize])
    found = room[: total * record.itemsize].view(record)
    return rooms.lend(room, Mems(found["query"], found["position"], found["start"], found["length"]))


def largest_text(kernel: TunedKernel, text: Codes, min_match_length: int) -> int:
    """How many characters a page like ``text`` may have here: by the width of positions and, where its index is made,
    the host's memory or the device's."""
    if kernel.kind != "cuda":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min(MAX_CHARACTERS - 1, memory // _HOST_BYTES_PER_CHARACTER)
    room = _DEVICE_SHARE * kernel.memory_bytes
    sizes = _sizes(kernel, text, min_match_length, _SOME_BASES, _SOME_READS, _SOME_BASES)
    configuration = kernel.explain(sizes)[0].configuration
    assert configuration is not None
    fits = [
        size
        for size in (len(text), *(MAX_CHARACTERS >> halves for halves in range(1, 31)))
        if size < MAX_CHARACTERS and index_bytes(size, min_match_length, configuration) <= room
    ]
    return max(fits, default=1)
