"""One call's work on several devices: a process for each, a plan from a cost model, one result.

A family's ``units(arrays, names)`` in ``family.py`` says what the pieces are (see ``spread_plan.Units``, and
docs/several-gpus.md). Workers start once; the inputs are placed once; then any number of runs. A worker that is lost
has its units run again by the others: a unit counts once its result is in this process, and never twice.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import default_root
from autotune.declaration import Configuration, Family, Inputs, bind
from autotune.dispatch.spread.memory import Memory, Place, places, sized
from autotune.dispatch.spread.plan import Chunk, Model, Plan, Units, allocate, calibrated, predicted
from autotune.dispatch.spread.report import Report, Share
from autotune.dispatch.spread.team import Member, Team
from autotune.dispatch.spread.worker import Task
from autotune.errors import UsageError
from autotune.processes import own_folder, shared_arrays

__all__ = ["CHUNK_SECONDS", "Spread", "SpreadKernel"]


CHUNK_SECONDS = 120.0  # without a sign of life from a worker that has work: then it is ended

_CALIBRATED_SHARE = 1 / 16  # of a worker's work, at most, in one chunk that is run to learn what it takes


# For each chunk that is done: who did it, and what. In the spreading process.
Watch = Callable[[Member, Chunk], None]


class Spread:
    """Workers on ``devices`` (``["cuda:0", "cuda:1"]``, ``["cpu", "cpu"]``), ready to run the call that ``inputs`` are;
    a context manager.

    ``configuration`` holds policies by name (others take their default); without it the dispatcher of the first device
    chooses, and all take what it chose. ``chunk_seconds`` is for how long a worker may give no sign of life. Raises
    AutotuneError: a family without ``units``, a device that is not there, a kernel that does not compile.
    """

    def __init__(
        self,
        family: Family,
        inputs: Inputs,
        devices: Sequence[str],
        *,
        configuration: Mapping[str, Any] | None = None,
        policies: str | Path | None = None,
        chunk_seconds: float = CHUNK_SECONDS,
    ) -> None:
        self.check(family, devices)
        self.family, self.inputs, self.devices = family, inputs, tuple(devices)
        self._given, self._policies = configuration, Path(policies) if policies else None
        self._chunk_seconds = chunk_seconds
        self._stack = ExitStack()
        self._members: list[Member] = []
        self._is_gathered = self._is_kept = False
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
        for member in self._members:
            member.close(at_once)
        self._stack.close()

    @property
    def members(self) -> Sequence[Member]:
        """The workers, lost ones too."""
        return self._members

    # -- start ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        begin = time.perf_counter()
        folder = self._stack.enter_context(own_folder())
        task = Task(
            family=self.family.folder,
            space_digest=self.family.space_digest,
            arrays=self._stack.enter_context(shared_arrays(self.inputs.arrays)),
            sizes=dict(self.inputs.sizes),
            options=dict(self.inputs.options),
            scalars=dict(self.inputs.scalars),
            policies=self._policies,
            cache=default_root(),
            cpu_threads=max(1, len(os.sched_getaffinity(0)) // len(self.devices)),
        )
        file = os.memfd_create("autotune-spread")
        self._stack.callback(os.close, file)
        for number, name in enumerate(self.devices):
            self._members.append(Member(name, number, task, file, folder, self._chunk_seconds))
        self._team = Team(self._members, self._chunk_seconds)
        for member in self.members:
            member.device = self._team.answer(member)
        self.configuration, self.match = self._chosen()
        self.names = self.inputs.names(self.configuration)
        for member in self.members:
            member.ask("bind", dict(self.configuration))
        self.units: Units = self.family.module.units(self.inputs.arrays, self.names)  # type: ignore[union-attr]
        outputs = {data.name: self._shape(data.shape) for data in self.family.outputs}
        self.units.check(
            {name: int(np.prod(shape)) for name, shape in outputs.items()}, f"family {self.family.name}"
        )
        for member in self.members:
            self._team.answer(member)
        self._place(file, outputs)
        self.is_pinned, streamed = True, True
        for member in self.members:
            member.seconds, is_pinned, is_streamed = self._team.answer(member)
            self.is_pinned, streamed = self.is_pinned and is_pinned, streamed and is_streamed
        self._is_streamed = streamed
        self.models = [Model(1.0)] * len(self.members)
        self.is_calibrated = False
        self.started_s = time.perf_counter() - begin

    def _shape(self, extents: Sequence[str]) -> tuple[int, ...]:
        return tuple(int(self.inputs.sizes[extent]) for extent in extents)

    def _chosen(self) -> tuple[Configuration, str]:
        if self._given is not None:
            text = ",".join(f"{name}={value}" for name, value in self._given.items())
            return self.family.space.configuration(text or "control"), "given"
        self.members[0].ask("choose")
        values, match = self._team.answer(self.members[0])
        return Configuration(values), match

    def _place(self, file: int, outputs: Mapping[str, tuple[int, ...]]) -> None:
        """Room for all parts, and for each worker's own sums."""
        dtype = {data.name: data.dtype for data in self.family.outputs}
        wanted = {name: (outputs[name], dtype[name]) for name in self.units.parts}
        wanted |= {
            f"{name} {member.number}": (outputs[name], dtype[name])
            for name in self.units.sums
            for member in self.members
        }
        found, nbytes = places(wanted)
        memory = sized(file, nbytes)
        self._parts = {name: found[name].of(memory) for name in self.units.parts}
        self._sums = {
            name: [found[f"{name} {member.number}"].of(memory) for member in self.members]
            for name in self.units.sums
        }
        parts: dict[str, Place] = {name: found[name] for name in self.units.parts}
        for member in self.members:
            own = {name: found[f"{name} {member.number}"] for name in self.units.sums}
            member.ask("memory", Memory(nbytes, parts, own))

    # -- what it takes --------------------------------------------------------------------------------------

    @cached_property
    def bytes_per_unit(self) -> NDArray[np.float64]:
        """Result bytes that each unit sends to the host."""
        found = np.zeros(len(self.units))
        for name, offsets in self.units.parts.items():
            found += np.diff(offsets) * self._parts[name].itemsize
        return found

    def calibrate(self, share: float = _CALIBRATED_SHARE) -> None:
        """Time some chunks on every device, to know what a plan should take; see ``spread_calibration``. None of them
        has more than a ``share`` of a worker's units: 0.5 makes predictions good where a device needs many units to be
        filled. Raises DeviceError, and UsageError while results are on the devices only, which it would spoil."""
        if self._is_kept and not self._is_gathered:
            raise UsageError("results are on the devices only: fetch them before calibrating")
        begin = time.perf_counter()
        models, self.units = calibrated(
            self.units,
            self.bytes_per_unit,
            share / len(self.members),
            lambda chunks: self._team.ask("calibrate", lambda _: list(chunks)),
        )
        for number, model in models.items():
            self.models[number] = model
        self.is_calibrated = True
        self.calibrated_s = time.perf_counter() - begin

    def _samples(self, done: Sequence[tuple[Chunk, float, float]]) -> list[tuple[float, float, int, float]]:
        nbytes = self.bytes_per_unit
        return [
            (self.units.cost(c), seconds, int(nbytes[c.first : c.first + c.count].sum()), copied)
            for c, seconds, copied in done
        ]

    def plan(self, allocation: str = "auto", batch: int = 0, *, gather: bool = True) -> Plan:
        """Who would run what; see docs/several-gpus.md. ``batch`` 0 is the configuration's."""
        models = [self.models[member.number] for member in self._team.alive]
        return allocate(self.units, allocation, models, batch, self.bytes_per_unit if gather else 0.0)

    # -- runs -----------------------------------------------------------------------------------------------

    def run(
        self, allocation: str = "auto", batch: int = 0, *, gather: bool = True, watch: Watch | None = None
    ) -> Report:
        """One call. With ``gather`` the results are in this process at the end (``outputs``), else they stay on the
        devices until ``fetch``. ``watch`` is called for each chunk that is done. Raises DeviceError
        when no worker is left."""
        plan, alive = self.plan(allocation, batch, gather=gather), self._team.alive
        models = [self.models[member.number] for member in alive]
        seconds = predicted(plan, self.units, models, self.bytes_per_unit if gather else 0.0)
        expected = {member.number: s for member, s in zip(alive, seconds, strict=True)}
        self._is_kept = not (gather and self._is_streamed)
        self._is_gathered = False
        self._team.watch = watch
        begin = time.perf_counter()
        self._team.run(plan, leaves=gather, keeps=self._is_kept)
        if gather:
            self._gather()
        return self._reported(plan, expected, time.perf_counter() - begin)

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
        fetched = [member.number for member in self.members if not member.lost]
        sums = {
            name: np.sum([own[number] for number in fetched], axis=0, dtype=own[0].dtype)
            for name, own in self._sums.items()
        }
        return {data.name: self._parts[data.name] if data.name in self._parts else sums[data.name]
                for data in self.family.outputs}  # fmt: skip

    def _gather(self) -> None:
        if self._is_kept and not self._is_gathered:
            self._team.fetch()
        self._is_gathered = True

    def _reported(self, plan: Plan, expected: Mapping[int, float], elapsed_s: float) -> Report:
        shares = []
        for member in self.members:
            did = member.did
            shares.append(
                Share(
                    device=member.name,
                    units=sum(chunk.count for chunk, _, _ in did.samples),
                    chunks=len(did.samples),
                    cost=sum(self.units.cost(chunk) for chunk, _, _ in did.samples),
                    predicted_s=expected.get(member.number, 0.0) if self.is_calibrated else float("nan"),
                    measured_s=did.ended_s,
                    device_s=sum(seconds for _, seconds, _ in did.samples),
                    copied_s=sum(copied for _, _, copied in did.samples),
                    redone=did.redone,
                    lost=member.lost,
                )
            )
            if did.samples:
                model = self.models[member.number]
                self.models[member.number] = model.refined(self._samples(did.samples))
        return Report(
            family=self.family.name,
            configuration=self.configuration.id,
            allocation=plan.allocation,
            batch=plan.batch,
            started_s=self.started_s,
            calibrated_s=self.calibrated_s,
            elapsed_s=elapsed_s,
            shares=tuple(shares),
        )


class SpreadKernel:
    """``run`` starts the workers, runs once and ends them. ``told`` gets the report of each run. Raises UsageError for
    a family that has no units."""

    def __init__(
        self,
        family: Family,
        devices: Sequence[str],
        policies: Path | None,
        allocation: str = "auto",
        told: Callable[[Spread, Report], None] | None = None,
    ) -> None:
        Spread.check(family, devices)
        self.family, self._devices, self._policies = family, tuple(devices), policies
        self._allocation, self._told = allocation, told

    @property
    def device(self) -> str:
        """What it runs on."""
        return ", ".join(self._devices)

    @property
    def kind(self) -> str:
        """cpu or cuda."""
        return self._devices[0].partition(":")[0]

    def __enter__(self) -> "SpreadKernel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held between calls."""

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """See ``dispatch.Kernel``."""
        outputs = self.run(self.bind(*arrays, **named))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def bind(self, *arrays: Any, **named: Any) -> Inputs:
        """The arguments of a call, checked."""
        given = dict(zip((data.name for data in self.family.inputs), arrays, strict=False))
        options = {name: value for name, value in named.items() if name in self.family.options}
        others = {name: value for name, value in named.items() if name not in options}
        if len(given) < len(arrays) or given.keys() & others.keys():
            raise UsageError(f"{self.family.name}: more arrays than inputs, or one of them twice")
        return bind(self.family, {**given, **others}, options, {})

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
