"""The matches of reads in one page, by the tuned kernels: the page's index stays on the device, reads come and go."""

import threading
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.family import Inputs, Prepared, TunedKernel, WorkloadError

from ..arrays import OFFSET, Progress, bounds_of
from ..fastx import OTHER
from ..matches import Mems
from ..sequences import host_memory
from ..suffix_tree import MAX_CHARACTERS
from ..text import cores, packed
from .page_index import PageIndex, index_bytes, index_compiler, index_of, most_of
from .rooms import Rooms
from .stages import Together

__all__ = ["Search", "Searcher", "compile_ahead", "largest_text"]

Codes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_TOO_MANY = 2**32 - 1  # scan.cuh: too_many
_AT_ONCE = 1 << 24  # matches are fetched in passes of at most so many, 16 bytes each
_SPARE = 1.25  # portions of reads are about equal: room for a little more than the first has
_BASES_IN_WORD = 8  # of reads on the device
# Building a tree, its arrays as they are and as a policy has them.
_HOST_BYTES_PER_CHARACTER = 400
_DEVICE_SHARE = 0.8  # for the index; the rest is for reads and matches


class Search(Protocol):
    """The text of one page, ready to be searched by any number of threads, best by ``lanes`` for each strand."""

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
        """Free what is on the device; what was found stays as it is. Safe to call twice."""


@dataclass(frozen=True)
class _Room:
    """For reads on the device: so many bases, bounds and slots."""

    bases: int
    bounds: int
    slots: int

    @staticmethod
    def of(bases: int, reads: int) -> "_Room":
        """Every base may begin a slot, and three more of each read stay empty."""
        return _Room(-(-max(1, bases) // _BASES_IN_WORD) * _BASES_IN_WORD, reads + 1, bases + 3 * reads)

    @property
    def matches(self) -> int:
        """As many as are fetched at once."""
        return min(_AT_ONCE, 2 * self.bases)

    def has(self, other: "_Room") -> bool:
        """Whether what needs that room has it here."""
        return all(own >= needed for own, needed in zip(astuple(self), astuple(other), strict=True))

    def larger(self, needed: "_Room") -> "_Room":
        """No smaller than this one, and with something to spare for what needs that."""
        pairs = zip(astuple(self), astuple(needed), strict=True)
        bases, bounds, slots = (max(own, int(_SPARE * count)) for own, count in pairs)
        return _Room(-(-bases // _BASES_IN_WORD) * _BASES_IN_WORD, bounds, slots)

    def arrays(self) -> dict[str, Any]:
        """What the kernels take, still empty."""
        return {
            "queries": np.full(self.bases, OTHER, np.uint8),
            "offsets": np.zeros(self.bounds, OFFSET),
            "slots": self.slots,
            "mem_count": self.matches,
        }


@dataclass(frozen=True)
class _Lane:
    """What one thread at a time searches with; ``words`` are the bases as the device has them."""

    prepared: Prepared
    room: _Room
    words: NDArray[np.uint32]

    @staticmethod
    def of(prepared: Prepared, room: _Room) -> "_Lane":
        return _Lane(prepared, room, np.empty(room.bases // _BASES_IN_WORD, np.uint32))

    def found(self, codes: Codes, bounds: NDArray[Any], rooms: Rooms) -> Mems | None:
        """The matches, or None where they are too many to be counted."""
        slots = int(bounds["slot"][-1])
        run = self.prepared.execution
        packed(codes, self.words, cores())
        run.refill("queries", self.words.view(np.uint8))
        behind = np.repeat(bounds[-1:], self.room.bounds - len(bounds))
        self.prepared.refill(offsets=np.concatenate((bounds, behind)))
        for kernel in ("match", "print_count", "scan_tiles", "scan_groups"):
            run.launch(kernel, slots=slots)
        total = int(run.head("group_sums", 1)[0])
        if total == _TOO_MANY:
            return None
        record = self.prepared.variant.family.data["mems"].dtype
        memory = rooms.take(total * record.itemsize)
        for first in range(0, total, self.room.matches):
            count = min(self.room.matches, total - first)
            run.launch("print_emit", slots=slots, first_mem=first)
            run.head("mems", count, memory[first * record.itemsize : (first + count) * record.itemsize])
        found = memory[: total * record.itemsize].view(record)
        return rooms.lend(memory, Mems(found["query"], found["position"], found["start"], found["length"]))


class Searcher:
    """A `Search` that runs the kernels on the index of one page's text, which ends with an OTHER. The reads that come
    at once are expected to have up to so many ``bases``, and to be so many. Raises WorkloadError, and what the
    device raises."""

    def __init__(
        self, kernel: TunedKernel, text: Codes, min_match_length: int, bases: int, reads: int,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._kernel = kernel
        self._min_match_length = min_match_length
        self._lock = threading.Lock()
        self._room = _Room.of(bases, reads)
        self._index, self._base = self._indexed(text, progress)
        self._lanes = [_Lane.of(self._base, self._room)]
        self._free = list(self._lanes)
        self._rooms = Rooms()
        self.lanes = 2 if kernel.kind == "cuda" else 1
        self.policy = f"{self._base.variant.configuration.id} ({self._base.match})"

    def _indexed(self, text: Codes, progress: Progress | None) -> tuple[PageIndex, Prepared]:
        """What the configuration that is chosen for these sizes reads of the text, and that with room for reads."""
        kernel, minimum, reads = self._kernel, self._min_match_length, self._room.arrays()
        nothing = index_of(kernel, text, minimum, None)
        inputs = _inputs(kernel, nothing.arrays, reads, minimum)
        chosen = kernel.explain(inputs)[0]
        while True:
            assert chosen.configuration is not None
            index: PageIndex | None = None
            try:
                with Together(kernel.compilers(chosen, inputs)):
                    index = index_of(kernel, text, minimum, chosen.configuration, progress)
                prepared = kernel.prepare(_inputs(kernel, index.arrays, reads, minimum))
            except BaseException:
                if index is not None:
                    index.close()
                raise
            if index.suffices_for(prepared.variant.configuration):
                return index, prepared
            # The sizes of the index count, too.
            chosen = prepared.chosen.candidate
            prepared.close()
            index.close()

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        bounds = bounds_of(offsets, self._min_match_length)
        slots = int(bounds["slot"][-1])
        if not slots:
            return Mems(*np.empty((4, 0), np.uint32))
        lane = self._taken(_Room(len(codes), len(bounds), slots))
        try:
            with lane.prepared.stream():
                found = lane.found(codes, bounds, self._rooms)
        finally:
            with self._lock:
                self._free.append(lane)
        return self._in_halves(codes, offsets) if found is None else found

    def _in_halves(self, codes: Codes, offsets: Offsets) -> Mems:
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

    def _taken(self, needed: _Room) -> _Lane:
        """A lane that nobody uses, with that room."""
        with self._lock:
            for lane in self._free:
                if lane.room.has(needed):
                    self._free.remove(lane)
                    return lane
            if len(self._lanes) >= self.lanes and self._free:  # too small
                unused = self._free.pop()
                self._lanes.remove(unused)
                if unused.prepared is not self._base:  # has the index, which all share
                    unused.prepared.close()
            room = self._room.larger(needed)
            inputs = _inputs(self._kernel, self._index.arrays, room.arrays(), self._min_match_length)
            lane = _Lane.of(self._base.prepare_other(inputs), room)
            self._lanes.append(lane)
            return lane

    def close(self) -> None:
        with self._lock:
            for lane in self._lanes:
                if lane.prepared is not self._base:
                    lane.prepared.close()
            self._lanes.clear()
            self._free.clear()
            self._base.close()
            self._index.close()


def _inputs(
    kernel: TunedKernel, of_text: Mapping[str, Any], of_reads: Mapping[str, Any], min_match_length: int
) -> Inputs:
    return kernel.bind(**of_text, **of_reads, min_match_length=min_match_length)


def compile_ahead(
    kernel: TunedKernel, characters: int, min_match_length: int, bases: int, reads: int
) -> None:
    """Compile what is chosen for a page of about ``characters`` and for reads of about ``bases``; another choice waits
    until that is done."""
    text = np.broadcast_to(np.uint8(OTHER), characters)  # takes no memory, and nothing looks at it
    nothing, room = index_of(kernel, text, min_match_length, None), _Room.of(bases, reads).arrays()
    inputs = _inputs(kernel, nothing.arrays, room, min_match_length)
    chosen = kernel.explain(inputs)[0]
    assert chosen.configuration is not None
    index = index_compiler(kernel, characters, min_match_length, chosen.configuration)
    with Together([*kernel.compilers(chosen, inputs), index]):
        pass


def largest_text(kernel: TunedKernel, text: Codes, min_match_length: int) -> int:
    """How many characters a page like ``text`` may have here: by the width of positions and, where its index is made,
    the host's memory or the device's."""
    if kernel.kind != "cuda":
        return min(MAX_CHARACTERS - 1, host_memory() // _HOST_BYTES_PER_CHARACTER)
    nothing, some_reads = index_of(kernel, text, min_match_length, None), _Room.of(1 << 20, 1 << 13).arrays()
    chosen = kernel.explain(_inputs(kernel, nothing.arrays, some_reads, min_match_length))[0].configuration
    assert chosen is not None
    room = _DEVICE_SHARE * kernel.memory_bytes
    least, most = 1, min(len(text), most_of(min_match_length, chosen) - 1)
    while least < most:
        middle = (least + most + 1) // 2
        fits = index_bytes(middle, min_match_length, chosen) <= room
        least, most = (middle, most) if fits else (least, middle - 1)
    return least
