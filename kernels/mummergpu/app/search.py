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
from ..tables import tables

__all__ = ["Search", "Searcher", "largest_text", "tree_of"]

Codes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]

_TOO_MANY = 2**32 - 1  # scan.cuh: too_many
_AT_ONCE = 1 << 24  # matches are fetched in passes of at most so many, 16 bytes each
_SPARE = 1.25  # blocks of reads are about equal: room for a little more than the first has
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

    def close(self) -> None:
        """Free what is on the device."""


@dataclass(frozen=True)
class _Lane:
    """Arrays for reads of one thread, with room for so many; ``matches`` at once."""

    prepared: Prepared
    bases: int
    bounds: int
    slots: int
    matches: int


def tree_of(codes: Codes, progress: Progress | None = None) -> Arrays:
    """What a `Searcher` needs of a text, which ends with an OTHER."""
    return {**tree_arrays(codes, progress), "reference": codes}


class Searcher:
    """A `Search` that runs the kernels on the tree of one page."""

    def __init__(self, kernel: TunedKernel, tree: Arrays, min_match_length: int) -> None:
        self._kernel = kernel
        self._page = {
            **tree,
            **tables(tree["reference"], min_match_length),
            "min_match_length": min_match_length,
        }
        self._min_match_length = min_match_length
        self._lock = threading.Lock()
        self._lanes: dict[int, _Lane] = {}  # by thread
        self._base: Prepared | None = None  # has the tree, which all lanes share
        self.lanes = 2 if kernel.kind == "cuda" else 1
        self.policy = ""

    def search(self, codes: Codes, offsets: Offsets) -> Mems:
        bounds = bounds_of(offsets, self._min_match_length)
        if not bounds["slot"][-1]:
            return Mems(*np.empty((4, 0), np.uint32))
        lane = self._lane(len(codes), len(bounds), int(bounds["slot"][-1]))
        with lane.prepared.stream():
            found = _found(lane, codes, bounds)
        if found is not None:
            return Mems(found["query"], found["position"], found["start"], found["length"])
        reads = len(offsets) - 1
        if reads == 1:
            raise WorkloadError(
                f"a read has {_TOO_MANY:,} matches or more of at least {self._min_match_length} bases, which is more "
                "than can be listed: take a larger min_match_length"
            )
        half = reads // 2
        first = self.search(codes[: offsets[half]], offsets[: half + 1])
        second = self.search(codes[offsets[half] :], offsets[half:] - offsets[half])
        return Mems(
            np.concatenate((first.reads, second.reads + np.uint32(half))),
            np.concatenate((first.positions, second.positions)),
            np.concatenate((first.starts, second.starts)),
            np.concatenate((first.lengths, second.lengths)),
        )

    def _lane(self, bases: int, bounds: int, slots: int) -> _Lane:
        """The calling thread's, made or made anew where there is no room for these."""
        thread = threading.get_ident()
        with self._lock:
            lane = self._lanes.get(thread)
            if lane and bases <= lane.bases and bounds <= lane.bounds and slots <= lane.slots:
                return lane
            if lane and lane.prepared is not self._base:
                lane.prepared.close()
            room = [int(count * _SPARE) for count in (bases, bounds, slots)]
            matches = min(_AT_ONCE, 2 * room[0])
            inputs = self._kernel.bind(
                **self._page,
                queries=np.full(room[0], OTHER, np.uint8),
                offsets=np.zeros(room[1], OFFSET),
                slots=room[2],
                mem_count=matches,
            )
            if self._base is None:
                prepared = self._base = self._kernel.prepare(inputs)
                self.policy = f"{prepared.variant.configuration.id} ({prepared.match})"
            else:
                prepared = self._base.beside(inputs)
            self._lanes[thread] = _Lane(prepared, room[0], room[1], room[2], matches)
            return self._lanes[thread]

    def close(self) -> None:
        """Safe to call twice."""
        with self._lock:
            for lane in self._lanes.values():
                if lane.prepared is not self._base:
                    lane.prepared.close()
            if self._base is not None:
                self._base.close()
            self._lanes.clear()
            self._base = None


def _found(lane: _Lane, codes: Codes, bounds: NDArray[Any]) -> NDArray[Any] | None:
    """The matches, or None where they are too many to be counted."""
    slots = int(bounds["slot"][-1])
    lane.prepared.refill(
        queries=np.concatenate((codes, np.full(lane.bases - len(codes), OTHER, np.uint8))),
        offsets=np.concatenate((bounds, np.repeat(bounds[-1:], lane.bounds - len(bounds)))),
    )
    run = lane.prepared.execution
    for kernel in ("match", "print_count", "scan_tiles", "scan_groups"):
        run.launch(kernel, slots=slots)
    total = int(run.head("group_sums", 1)[0])
    if total == _TOO_MANY:
        return None
    parts = [np.empty(0, lane.prepared.variant.family.data["mems"].dtype)]
    for first in range(0, total, lane.matches):
        run.launch("print_emit", slots=slots, first_mem=first)
        parts.append(run.head("mems", min(lane.matches, total - first)))
    return parts[-1] if len(parts) <= 2 else np.concatenate(parts)


def largest_text(device_bytes: int | None = None) -> int:
    """How many characters the tree of one page may have here: by the width of node ids, the host's memory, and the
    device's where it is known."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    largest = min(MAX_CHARACTERS - 1, memory // _HOST_BYTES_PER_CHARACTER)
    if device_bytes is not None:
        largest = min(largest, int(device_bytes * _DEVICE_SHARE) // _DEVICE_BYTES_PER_CHARACTER)
    return largest
