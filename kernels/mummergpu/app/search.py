"""The matches of reads in one page, by the tuned kernels: the page's tree stays on the device, reads come and go."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.family import Prepared, TunedKernel, WorkloadError

from ..arrays import OFFSET, Progress, bounds_of, tree_arrays
from ..fastx import OTHER
from ..matches import Mems
from ..suffix_tree import MAX_CHARACTERS
from ..text import cores, packed
from .rooms import Rooms

__all__ = ["Search", "Searcher", "largest_text", "tree_of"]

Codes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Arrays = Mapping[str, Any]

_TOO_MANY = 2**32 - 1  # print.cuh: too_many
_GROUP_SIZE = 4096  # print.cuh: group_size
_AT_ONCE = 1 << 24  # matches are fetched in passes of at most so many, 16 bytes each
_SPARE = 1.25  # blocks of reads are about equal: room for a little more than the first has
_BASES_IN_WORD = 8  # of reads on the device
# Building a tree, its arrays as they are and as a policy has them; and those on the device.
_HOST_BYTES_PER_CHARACTER = 400
_DEVICE_BYTES_PER_CHARACTER = 100
_DEVICE_SHARE = 0.5  # the rest is for reads and matches


class Search(Protocol):
    """The text of one page, ready to be searched by ``lanes`` threads at once."""

    @property
    def lanes(self) -> int: ...

    @property
    def policy(self) -> str:
        """The configuration that runs and why it was taken; empty before the first search."""

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        """The matches of the reads `codes[offsets[i]:offsets[i + 1]]`: by read, start in the read, then in the order
        of what follows in the text, at positions of the text. Raises WorkloadError when one read alone has
        4,294,967,295 matches or more."""

    def expect(self, bases: int, reads: int) -> None:
        """Reads like these are about to be searched, in portions."""

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
    bases: int
    bounds: int
    slots: int
    matches: int


def tree_of(codes: Codes, progress: Progress | None = None) -> Arrays:
    """What a `Searcher` needs of a text, which ends with an OTHER."""
    return {**tree_arrays(codes, progress), "reference": codes}


class Searcher:
    """A `Search` that runs the kernels on the tree of one page; ``most`` bases of reads come at once at most, but for
    longer reads."""

    def __init__(self, kernel: TunedKernel, tree: Arrays, min_match_length: int, most: int) -> None:
        self._kernel = kernel
        self._page = {**tree, "min_match_length": min_match_length}
        self._min_match_length = min_match_length
        self._most = most
        self._expected = 0, 0  # bases and reads
        self._lock = threading.Lock()
        self._lanes: dict[int, _Lane] = {}  # by thread
        self._base: Prepared | None = None  # has the tree, which all lanes share
        self._rooms: Rooms | None = None
        self.lanes = 2 if kernel.kind == "cuda" else 1
        self.policy = ""

    def expect(self, bases: int, reads: int) -> None:
        at_once = min(bases, self._most)
        self._expected = at_once, int(_SPARE * reads * at_once / max(1, bases))

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        bounds = bounds_of(offsets, self._min_match_length)
        if not bounds["slot"][-1]:
            return Mems(*np.empty((4, 0), np.uint32))
        lane = self._lane(len(codes), len(bounds), int(bounds["slot"][-1]))
        assert self._rooms is not None
        with lane.prepared.stream():
            found = _found(lane, codes, bounds, self._rooms)
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
        if self._rooms is not None:
            self._rooms.release(found)

    def _lane(self, bases: int, bounds: int, slots: int) -> _Lane:
        """The calling thread's, made or made anew where there is no room for these."""
        thread = threading.get_ident()
        with self._lock:
            lane = self._lanes.get(thread)
            if lane and bases <= lane.bases and bounds <= lane.bounds and slots <= lane.slots:
                return lane
            if lane and lane.prepared is not self._base:
                lane.prepared.close()
            expected_bases, expected_reads = self._expected
            words = -(-max(int(bases * _SPARE), expected_bases) // _BASES_IN_WORD)
            room = words * _BASES_IN_WORD, max(int(bounds * _SPARE), expected_reads + 1)
            # Every base may begin a slot, and three more of each read stay empty.
            most_slots = max(int(slots * _SPARE), expected_bases + 3 * expected_reads)
            matches = min(_AT_ONCE, 2 * room[0])
            inputs = self._kernel.bind(
                **self._page,
                queries=np.full(room[0], OTHER, np.uint8),
                offsets=np.zeros(room[1], OFFSET),
                slots=most_slots,
                mem_count=matches,
            )
            if self._base is None:
                prepared = self._base = self._kernel.prepare(inputs)
                self.policy = f"{prepared.variant.configuration.id} ({prepared.match})"
                self._rooms = Rooms(prepared.execution.outlet())
            else:
                prepared = self._base.beside(inputs)
            self._lanes[thread] = _Lane(
                prepared, np.empty(words, np.uint32), room[0], room[1], most_slots, matches
            )
            return self._lanes[thread]

    def close(self) -> None:
        """Safe to call twice."""
        with self._lock:
            if self._rooms is not None:
                self._rooms.close()
            for lane in self._lanes.values():
                if lane.prepared is not self._base:
                    lane.prepared.close()
            if self._base is not None:
                self._base.close()
            self._lanes.clear()
            self._base = self._rooms = None


def _found(lane: _Lane, codes: Codes, bounds: NDArray[Any], rooms: Rooms) -> Mems | None:
    """The matches, or None where they are too many to be counted."""
    slots = int(bounds["slot"][-1])
    run = lane.prepared.execution
    packed(codes, lane.words, cores())
    run.refill("queries", lane.words.view(np.uint8))
    lane.prepared.refill(offsets=np.concatenate((bounds, np.repeat(bounds[-1:], lane.bounds - len(bounds)))))
    for kernel in ("match", "print_count", "scan_tiles", "scan_groups"):
        run.launch(kernel, slots=slots)
    tiles = -(-slots // int(lane.prepared.variant.configuration["block_size"]))
    total = int(run.head("group_sums", -(-tiles // _GROUP_SIZE) + 1)[-1])
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


def largest_text(device_bytes: int | None = None) -> int:
    """How many characters the tree of one page may have here: by the width of node ids, the host's memory, and the
    device's where it is known."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    largest = min(MAX_CHARACTERS - 1, memory // _HOST_BYTES_PER_CHARACTER)
    if device_bytes is not None:
        largest = min(largest, int(device_bytes * _DEVICE_SHARE) // _DEVICE_BYTES_PER_CHARACTER)
    return largest
