"""One call's work on several devices: a process for each, a plan from a cost model, one result.

A family's ``units(arrays, names)`` in ``family.py`` says what the pieces are (see ``declaration.Units``, and
docs/guides/several-gpus.md). Workers start once, inputs are placed once; then any number of runs. A worker that is lost
has its units run again by the others: a unit counts once its result is in this process, and never twice.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import default_root
from autotune.declaration import Configuration, Family, Inputs, Units, bind
from autotune.device import Closing
from autotune.dispatch import arguments
from autotune.engine import SharedArray, share_array, share_arrays
from autotune.errors import UsageError
from autotune.figures import seconds as in_words
from autotune.processes import own_folder
from autotune.spread.plan import Allocation, Chunk, Model, Times, allocate, calibrate, predict
from autotune.spread.team import Member, Share, Team
from autotune.spread.worker import ChunkTask, ChunkWorker

CHUNK_SECONDS = 120.0  # without a sign of life from a worker that has work: then it is ended
_CALIBRATED_SHARE = 1 / 16  # of a worker's work, at most, in one chunk that is run to learn what it takes


# For each chunk that is done: who did it, and what. In the spreading process.
Watch = Callable[[Member, Chunk], None]


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run. ``started_s`` (processes, contexts, compiling, placing) and ``calibrated_s`` are not part of
    ``elapsed_s``, which is from the call, its plan included, until the result is whole, sums added up; over ranks from
    when all of them have a plan."""

    family: str
    configuration: str
    allocation: str
    batch: int
    started_s: float
    calibrated_s: float
    elapsed_s: float
    shares: tuple[Share, ...]

    @property
    def predicted_s(self) -> float:
        """What the slowest worker was predicted to take; NaN when nothing was calibrated."""
        return max(share.predicted_s for share in self.shares)

    @property
    def balance(self) -> float:
        """The devices' busy time as a share of the time that the run kept them: 1 when none ever waited."""
        return sum(share.device_s for share in self.shares) / (self.elapsed_s * len(self.shares))

    def lines(self) -> list[str]:
        """A table for people."""
        rows = [["device", "units", "chunks", "predicted", "measured", "computing", "copying", "redone"]]
        for share in self.shares:
            times = (share.predicted_s, share.measured_s, share.device_s, share.copied_s)
            counts = [str(share.units), str(share.chunks)]
            rows.append([share.device, *counts, *map(in_words, times), str(share.redone)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        head = (
            f"{self.allocation}, at most {self.batch} units a chunk: {in_words(self.elapsed_s)} (devices busy "
            f"{self.balance:.1%}), predicted {in_words(self.predicted_s)}; start {in_words(self.started_s)}, "
            f"calibration {in_words(self.calibrated_s)}"
        )
        lost = [f"{share.device} was lost: {share.lost}" for share in self.shares if share.lost]
        return [head, *table, *lost]


class Spread:
    """A call that several devices share; a context manager.

    Args:
        family, inputs: the call.
        devices: a worker for each: ``["cuda:0", "cuda:1"]``, ``["cpu", "cpu"]``.
        configuration: values of policies by name (others have their default); by default the dispatcher of the first
            device chooses for all.
        policies: the folder of policy files.
        chunk_seconds: how long, in seconds, a worker may not respond.

    Raises:
        AutotuneError: the family has no ``units``, a device does not exist, a kernel does not compile.
    """

    def __init__(
        self, family: Family, inputs: Inputs, devices: Sequence[str], *,
        configuration: Mapping[str, Any] | None = None, policies: str | Path | None = None,
        chunk_seconds: float = CHUNK_SECONDS,
    ) -> None:  # fmt: skip
        self.check(family, devices)
        self.family, self.inputs, self.devices = family.apply_types(inputs.options), inputs, tuple(devices)
        self._given, self._policies = configuration, Path(policies) if policies else None
        self._chunk_seconds = chunk_seconds
        self._stack = ExitStack()
        self.members: list[Member] = []  # lost ones too
        self._is_gathered = self._is_kept = False
        self._plans: dict[tuple[str, int, bool], Planned] = {}
        self._totals: dict[str, NDArray[Any]] = {}  # of the last run's sums, once they are added up
        self._room: dict[str, NDArray[Any]] = {}  # for the next ones
        self._meanwhile: Callable[[], None] | None = None
        self.started_s = self.calibrated_s = 0.0

    @staticmethod
    def check(family: Family, devices: Sequence[str]) -> None:
        """Raise UsageError for a family whose work cannot be spread."""
        if getattr(family.module, "units", None) is None:
            raise UsageError(
                f"family {family.name} has no units function in family.py, so its work cannot be spread over "
                f"{', '.join(devices)}: name one device"
            )

    def __enter__(self) -> "Spread":
        try:
            self._start()
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(at_once=kind is not None)

    def close(self, at_once: bool = False) -> None:
        """End the workers, with what they are at where ``at_once``. Arrays from ``outputs`` stay good."""
        for member in self.members:
            member.child.close(at_once)
        self._stack.close()

    def _start(self) -> None:
        begin = time.perf_counter()
        folder = self._stack.enter_context(own_folder())
        place = self._stack.enter_context(share_arrays(self.inputs.arrays))
        more = {"policies": self._policies, "cache": default_root(), "cpu_threads": self._cpu_threads()}
        task = ChunkTask.make(self.family, self.inputs, place, **more)
        for number, name in enumerate(self.devices):
            self.members.append(Member(name, number, task, folder, self._chunk_seconds))
        self._team = Team(self.members, self._meanwhile)
        self._team.drive()
        for member in self.members:
            member.device = member.answer
        self.configuration, self.match = self._choose()
        self.names = self.inputs.names(self.configuration)
        for member in self.members:
            member.ask(ChunkWorker.bind, dict(self.configuration))
        self.units: Units = self.family.module.units(self.inputs.arrays, self.names)  # type: ignore[union-attr]
        outputs = {data.name: data.shape_for(self.inputs.sizes) for data in self.family.outputs}
        sizes = {name: math.prod(shape) for name, shape in outputs.items()}
        self.units.check(sizes, f"family {self.family.name}")
        self._team.drive()
        self._place(outputs)
        self._team.starting = False
        self.models = [Model(1.0)] * self._workers()
        self.is_calibrated = False
        self.started_s = time.perf_counter() - begin

    def _workers(self) -> int:
        """How many there are in all."""
        return len(self.members)

    def _cpu_threads(self) -> int:
        """Of each worker on the cpu."""
        return max(1, len(os.sched_getaffinity(0)) // len(self.devices))

    def _choose(self) -> tuple[Configuration, str]:
        if self._given is not None:
            text = ",".join(f"{name}={value}" for name, value in self._given.items())
            return self.family.space.configuration(text or "control"), "given"
        self.members[0].ask(ChunkWorker.choose)
        self._team.drive()
        values, match = self.members[0].answer
        return Configuration(values), match

    def _place(self, outputs: Mapping[str, tuple[int, ...]]) -> None:
        """Room for all parts, and for each worker's own sums."""

        def room(name: str) -> SharedArray:
            return self._stack.enter_context(share_array(outputs[name], self.family.data[name].dtype))

        parts = self._share({name: room(name) for name in self.units.parts})
        sums = {name: [room(name) for _ in self.members] for name in self.units.sums}
        self._parts = {name: array.map_memory() for name, array in parts.items()}
        self._sums = {name: [array.map_memory() for array in arrays] for name, arrays in sums.items()}

        def take(member: Member) -> None:
            member.ask(ChunkWorker.take, parts, {name: many[member.number] for name, many in sums.items()})

        kept = self._team.ask(take).values()
        self.is_pinned = all(is_pinned for is_pinned, _ in kept)
        self._is_streamed = all(is_streamed for _, is_streamed in kept)

    def _share(self, parts: dict[str, SharedArray]) -> dict[str, SharedArray]:
        """Where parts are to be written."""
        return parts

    @cached_property
    def bytes_per_unit(self) -> NDArray[np.float64]:
        """Result bytes that each unit sends to the host."""
        found = np.zeros(len(self.units))
        for name, offsets in self.units.parts.items():
            found += np.diff(offsets) * self._parts[name].itemsize
        return found

    def calibrate(self, share: float = _CALIBRATED_SHARE) -> None:
        """Time some chunks on every device, to know what a plan should take; see ``plan.calibrate``. None of them
        has more than a ``share`` of a worker's units: 0.5 makes predictions good where a device needs many units to be
        filled. Raises DeviceError, and UsageError while results are on the devices only, which it would spoil."""
        if self._is_kept and not self._is_gathered:
            raise UsageError("results are on the devices only: fetch them before calibrating")
        begin = time.perf_counter()
        most = share / len(self.models)
        models, self.units = calibrate(self.units, self.bytes_per_unit, most, self._time)
        for number, model in models.items():
            self.models[number] = model
        self._plans.clear()
        self.is_calibrated = True
        self.calibrated_s = time.perf_counter() - begin

    def _time(self, chunks: Sequence[Chunk]) -> Times:
        """What each chunk takes on every device."""
        return self._team.ask(lambda member: member.ask(ChunkWorker.calibrate, chunks))

    def run(
        self,
        allocation: str = "automatic",
        batch: int = 0,
        *,
        gather: bool = True,
        watch: Watch | None = None,
    ) -> Report:
        """One call. With ``gather`` the results are in this process at the end (``outputs``), else they stay on the
        devices until ``fetch``. ``watch`` is called for each finished chunk; see docs/guides/several-gpus.md for who
        runs what. ``batch`` 0 is the configuration's. Raises DeviceError when no worker is left."""
        begin = time.perf_counter()
        planned = self._plan_run(allocation, batch, gather)
        self._is_kept = not (gather and self._is_streamed)
        self._is_gathered, self._totals = False, {}
        elapsed_s, shares = self._run(planned, gather, watch, begin)
        return Report(
            family=self.family.name, configuration=self.configuration.id, allocation=planned.plan.allocation,
            batch=planned.plan.batch, started_s=self.started_s, calibrated_s=self.calibrated_s,
            elapsed_s=elapsed_s, shares=shares,
        )  # fmt: skip

    def _run(
        self, planned: "Planned", gather: bool, watch: Watch | None, begin: float
    ) -> tuple[float, tuple[Share, ...]]:
        """Seconds of the run since ``begin``, and each worker's share."""
        self._team.watch = watch
        room = self._make_room if gather else None
        self._team.run(planned.plan, leaves=gather, keeps=self._is_kept, beside=room)
        if gather:
            self._is_gathered = True
            self._add_sums()
        elapsed_s = time.perf_counter() - begin
        for member in self.members if self.is_calibrated else ():
            member.share.predicted_s = planned.seconds.get(member.number, 0.0)
        self.models = [self._refine(*pair) for pair in zip(self.members, self.models, strict=True)]
        return elapsed_s, tuple(member.share for member in self.members)

    def _models(self) -> dict[int, Model]:
        """Of the workers that a plan is for, by number."""
        return {member.number: self.models[member.number] for member in self._team.alive}

    def _plan_run(self, allocation: str, batch: int, gather: bool) -> "Planned":
        """Return the plan. It is made again if a worker's model changed or a worker is lost; making it takes as
        long as a short run."""
        models = self._models()
        key = allocation, batch, gather
        if not (known := self._plans.get(key)) or not known.is_good_for(models):
            given, nbytes = list(models.values()), self.bytes_per_unit * gather
            plan = allocate(self.units, allocation, given, batch, nbytes)
            seconds = predict(plan, self.units, given, nbytes)
            known = self._plans[key] = Planned(plan, models, dict(zip(models, seconds, strict=True)))
        return known

    def fetch(self) -> dict[str, NDArray[Any]]:
        """``outputs`` after a run that left them on the devices. Raises DeviceError."""
        self._gather()
        return self.outputs()

    def outputs(self) -> dict[str, NDArray[Any]]:
        """The results of the last run by name: canonical arrays. Those in parts lie in memory that the next run writes
        to."""
        if not self._is_gathered:
            raise UsageError(
                "nothing is gathered: run, or fetch after a run that left its results on the devices"
            )
        if not self._totals:
            self._add_sums()
        arrays = {**self._totals, **self._parts}
        return {data.name: arrays[data.name] for data in self.family.outputs}

    def _make_room(self) -> None:
        """For the totals of sums, new memory each time: the last ones stay good. It is touched while the devices work,
        since the first touch of a page takes longer than adding up what is in it."""
        self._room = {name: np.full_like(summands[0], 0) for name, summands in self._sums.items()}

    def _add_sums(self) -> None:
        """The workers' sums."""
        if not self._room:
            self._make_room()
        self._totals, self._room = self._room, {}
        for name, total in self._totals.items():
            _add(self._summands(name), total)

    def _summands(self, name: str) -> list[NDArray[Any]]:
        """Each worker's own sum of that output."""
        return [self._sums[name][member.number] for member in self._team.alive]

    def _gather(self) -> None:
        if self._is_kept and not self._is_gathered:
            self._team.fetch()
        self._is_gathered = True

    def _refine(self, member: Member, model: Model) -> Model:
        """Its model, by what chunks of the run took."""
        costs, nbytes = self.units.costs, self.bytes_per_unit
        done = [(one, one.chunk) for one in member.share.done]
        samples = [(c.sum_over(costs), one.seconds, c.sum_over(nbytes), one.copied) for one, c in done]
        return model.refine(samples) if samples else model


@dataclass(frozen=True)
class Planned:
    """A plan by ``models``, and the ``seconds`` that it should take, each by the worker's number."""

    plan: Allocation
    models: Mapping[int, Model]
    seconds: Mapping[int, float]

    def is_good_for(self, models: Mapping[int, Model]) -> bool:
        return models.keys() == self.models.keys() and all(
            model is self.models[number] or model.is_near(self.models[number])
            for number, model in models.items()
        )


def _add(summands: Sequence[NDArray[Any]], total: NDArray[Any]) -> None:
    if len(summands) == 1:
        total[...] = summands[0]
        return
    np.add(summands[0], summands[1], out=total)
    for other in summands[2:]:
        total += other


class SpreadKernel(Closing):
    """``run`` starts the workers, runs once and ends them. ``told`` gets the report of each run. Raises UsageError for
    a family that has no units."""

    def __init__(
        self, family: Family, devices: Sequence[str], policies: Path | None, allocation: str = "automatic",
        told: Callable[[Spread, Report], None] | None = None,
    ) -> None:  # fmt: skip
        Spread.check(family, devices)
        self.family, self._devices, self._policies = family, tuple(devices), policies
        self._allocation, self._told = allocation, told
        self.device = ", ".join(devices)
        self.kind = devices[0].partition(":")[0]  # cpu or cuda

    def close(self) -> None:
        """Nothing is held between calls."""

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """See ``dispatch.TunedKernel``."""
        outputs = self.run(self.bind(*arrays, **named))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def bind(self, *arrays: Any, **named: Any) -> Inputs:
        """The arguments of a call, checked."""
        given = arguments(self.family, [data.name for data in self.family.inputs], arrays, named)
        return bind(self.family, given.arrays, given.options, given.scalars)

    def prepare(self, *_arrays: Any, **_named: Any) -> Any:
        """Raises UsageError: what stays on one device cannot be spread."""
        raise UsageError(
            f"this use of {self.family.name} keeps data on one device: name one, not {self.device}"
        )

    def run(self, inputs: Inputs) -> dict[str, NDArray[Any]]:
        """The outputs by name, canonical. Raises AutotuneError."""
        with Spread(self.family, inputs, self._devices, policies=self._policies) as spread:
            spread.calibrate()
            report = spread.run(self._allocation)
            if self._told:
                self._told(spread, report)
            return spread.outputs()
