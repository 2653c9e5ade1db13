"""One call's work on the devices of several hosts: a rank of an MPI program for each device.

Every rank reads the inputs and has a worker process for its device, as ``spread.Spread`` has; all know the cost model
of all devices, so that all make the same plan, and each runs its own part of it. Results go to the first rank while the
rest is computed, or stay in pieces where they were made. On the first rank's host the others write into its memory, as
the workers of a Spread do; from elsewhere results are sent.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Family, Inputs
from autotune.engine import SharedArray
from autotune.errors import UsageError
from autotune.spread.agreement import Agreement, digest_code
from autotune.spread.plan import Allocation, Chunk, Model, Times
from autotune.spread.ranks import Ranks, device_of
from autotune.spread.spread import CHUNK_SECONDS, Planned, Report, Spread, Watch
from autotune.spread.team import Member, Share

_NOTHING = np.empty(0, np.uint8)


class RankSpread(Spread):
    """This rank's part of a call that all ranks of ``comm`` (mpi4py's; all that were started, without it) make
    together: what is called here is called on each of them, with the same ``inputs``. ``device`` is as in
    ``ranks.device_of``, the rest as in Spread; the first rank's choice of a configuration is everyone's, and its code
    has to be.

    An error of one rank is raised on all, and names it; ``ranks.RankLost`` where a rank has given no sign of life for
    ``chunk_seconds``. A worker that is lost takes its rank along, and with it the run."""

    def __init__(
        self, family: Family, inputs: Inputs, device: str = "auto", *,
        configuration: Mapping[str, Any] | None = None, policies: str | Path | None = None,
        chunk_seconds: float = CHUNK_SECONDS, comm: Any = None,
    ) -> None:  # fmt: skip
        self.ranks = Ranks(chunk_seconds, comm)
        super().__init__(
            family, inputs, [device_of(device, self.ranks.local)],
            configuration=configuration, policies=policies, chunk_seconds=chunk_seconds,
        )  # fmt: skip
        self._meanwhile = self.ranks.look
        self._plan = Allocation("", 1, ())
        self._arrived: dict[str, list[NDArray[Any]]] = {}  # other ranks' sums
        self._writes_there = False  # to the first rank's memory, being on its host
        self._are_there: list[bool] = []  # which ranks do

    def __enter__(self) -> "RankSpread":
        with self.ranks.end_together():
            super().__enter__()
            self.ranks.gather(None)
        return self

    def _workers(self) -> int:
        return self.ranks.count

    def _cpu_threads(self) -> int:
        allowed = len(os.sched_getaffinity(0))
        is_bound = allowed < (os.cpu_count() or 1)  # by the launcher, to cores of its own
        return max(1, allowed if is_bound else allowed // self.ranks.beside)

    def _choose(self) -> tuple[Configuration, str]:
        Agreement(self.ranks.gather).require_equal(digest_code(self.family), self.family.name)
        own = super()._choose() if self.ranks.is_first else None
        chosen: tuple[Configuration, str] = self.ranks.broadcast(own)
        return chosen

    def calibrate(self, share: float = 1 / 16) -> None:
        """See Spread; on all devices at the same time."""
        with self.ranks.end_together():
            super().calibrate(share)

    def _share(self, parts: dict[str, SharedArray]) -> dict[str, SharedArray]:
        """The first rank's, where this one can map them: then nothing has to be sent."""
        places = {name: (array, _inode(array)) for name, array in parts.items()}
        firsts = self.ranks.broadcast(places)
        is_beside = self.ranks.is_beside_first and not self.ranks.is_first
        self._writes_there = is_beside and all(_inode(array) == inode for array, inode in firsts.values())
        self._are_there = self.ranks.gather(self._writes_there)
        return {name: array for name, (array, _) in firsts.items()} if self._writes_there else parts

    def _time(self, chunks: Sequence[Chunk]) -> Times:
        (own,) = super()._time(chunks).values()
        return dict(enumerate(self.ranks.gather(own)))

    def run(
        self,
        allocation: str = "automatic",
        batch: int = 0,
        *,
        gather: bool = True,
        watch: Watch | None = None,
    ) -> Report:
        """One call. With ``gather`` the results are in the first rank at the end (``outputs``), else every rank has its
        own (``pieces``) until ``fetch``. ``watch`` is called for each chunk that is done here. Each rank has its part
        from the beginning on, so that ``allocation`` is ``automatic`` or ``contiguous``. Raises UsageError for another,
        and what any rank raises."""
        if allocation == "dynamic":
            raise UsageError(
                "--allocation dynamic hands out units within one host; ranks take automatic or contiguous"
            )
        with self.ranks.end_together():
            return super().run(allocation, batch, gather=gather, watch=watch)

    def _models(self) -> dict[int, Model]:
        return dict(enumerate(self.models))

    def _run(
        self, planned: Planned, gather: bool, watch: Watch | None, begin: float
    ) -> tuple[float, tuple[Share, ...]]:
        number = self.ranks.number
        self._plan = plan = planned.plan

        def note_done(member: Member, chunk: Chunk) -> None:
            if not self._is_kept:
                self._send(chunk)
            if watch:
                watch(member, chunk)

        self._team.watch = note_done
        self.ranks.gather(None)
        begin = time.perf_counter()  # when all of them have a plan
        awaited = self._list_awaited() if gather else {}
        own = Allocation(plan.allocation, plan.batch, (plan.queues[number],))
        self._team.run(own, leaves=gather, keeps=self._is_kept)
        if gather:
            self._collect(awaited)
            if self.ranks.is_first:
                self._add_sums()
        elapsed_s = time.perf_counter() - begin
        share = self.members[0].share
        share.predicted_s = planned.seconds[number] if self.is_calibrated else share.predicted_s
        share.device = f"rank {number} {share.device}"
        model = self._refine(self.members[0], self.models[number])
        told = self.ranks.gather((replace(share, done=[]), model, elapsed_s))
        self.models = [model for _, model, _ in told]
        return told[0][2], tuple(share for share, _, _ in told)

    def fetch(self) -> dict[str, NDArray[Any]]:
        """``outputs`` after a run that left them in pieces; empty but on the first rank."""
        with self.ranks.end_together():
            if not self._is_gathered:
                self._collect(self._list_awaited())
        return self.outputs() if self.ranks.is_first else {}

    def outputs(self) -> dict[str, NDArray[Any]]:
        """See Spread. Raises UsageError on other ranks than the first."""
        if not self.ranks.is_first:
            raise UsageError("the results are gathered in the first rank; pieces() gives those of this one")
        return super().outputs()

    def pieces(self) -> dict[str, list[tuple[int, NDArray[Any]]]]:
        """Of the last run, what this rank made: for each output (first element, values) of the canonical array,
        flattened; for an output to which units add, this rank's own sum of it. Raises DeviceError."""
        if self._is_kept and not self._is_gathered:
            self._team.fetch()
        pieces: dict[str, list[tuple[int, NDArray[Any]]]] = {}
        for name, offsets in self.units.parts.items():
            chunks = sorted(self._plan.queues[self.ranks.number])
            pieces[name] = [(int(offsets[chunk.first]), self._part(name, chunk)) for chunk in chunks]
        return {**pieces, **{name: [(0, own[0].reshape(-1))] for name, own in self._sums.items()}}

    def _part(self, name: str, chunk: Chunk) -> NDArray[Any]:
        offsets = self.units.parts[name]
        return self._parts[name].reshape(-1)[offsets[chunk.first] : offsets[chunk.first + chunk.count]]

    def _send(self, chunk: Chunk) -> None:
        """A chunk's results to the first rank, unless they are there. What a rank sends arrives in that order."""
        if not (self.ranks.is_first or self._writes_there):
            for name in self.units.parts:
                self.ranks.send(self._part(name, chunk))

    def _list_awaited(self) -> dict[int, list[Any]]:
        """What the first rank is to receive, by the rank that it comes from."""
        awaited: dict[int, list[Any]] = {}
        self._arrived = {name: [] for name in self.units.sums}
        for rank in range(1, self.ranks.count) if self.ranks.is_first else ():
            chunks = () if self._are_there[rank] else self._plan.queues[rank]
            arrays = [self._part(name, chunk) for chunk in chunks for name in self.units.parts]
            for name, arrived in self._arrived.items():
                arrived.append(np.empty_like(self._sums[name][0]))
                arrays.append(arrived[-1])
            each = (self.ranks.receive(array, rank) for array in (*arrays, _NOTHING))
            awaited[rank] = [request for requests in each for request in requests]
        return awaited

    def _collect(self, awaited: dict[int, list[Any]]) -> None:
        """The results of all ranks are in the first one when this returns there, and have left when it does here."""
        was_kept = self._is_kept
        self._gather()
        if self.ranks.is_first:
            left = set(awaited)

            def is_over() -> bool:
                left.difference_update([rank for rank in left if self.ranks.has_come(awaited[rank])])
                return not left

            self.ranks.wait_until(is_over, left)
            return
        for chunk in self._plan.queues[self.ranks.number] if was_kept else ():
            self._send(chunk)
        for name in self.units.sums:
            self.ranks.send(self._sums[name][0])
        self.ranks.send(_NOTHING)  # which says that all is done
        self.ranks.wait_sent()

    def _summands(self, name: str) -> list[NDArray[Any]]:
        return [*super()._summands(name), *self._arrived[name]]


def _inode(array: SharedArray) -> tuple[int, int] | None:
    """Which file it is, wherever its path is looked up; None where that leads nowhere."""
    try:
        found = array.path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
