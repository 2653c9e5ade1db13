"""Each trial of a measuring process: places, verifies and samples one variant after another on its device.

A measurement of an unverified variant cannot exist: ``_measure`` is only reached from ``try_job`` behind the
verifier.
"""

import importlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import median
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Compiled, Variant
from autotune.declaration import Configuration, Family, Inputs, Workload, find_single_presets
from autotune.device import Backend, ClockWatch, Execution, LaunchError, Resident
from autotune.engine.messages import Compared, Job, OddSize, Proved, Retimed, Tried, static_profiles, trial_of
from autotune.errors import AutotuneError, LayoutRefusal, cause
from autotune.measure import (
    AGAIN,
    GUARD_BYTES,
    PROOF_VERSION,
    Deviations,
    Figure,
    Protocol,
    Samples,
    Timing,
    Verifier,
    sampling,
)
from autotune.record import Measurement, State

Proof = tuple[Inputs, Mapping[str, NDArray[Any]]]  # inputs with their expected outputs


_CHECKED_SHARE = 0.1  # of the time that finalists take
_PRODUCED_TURNS = 5  # of finalists, for a figure that takes calls of its own
_SPLIT_RUNS = 5  # runs that share out a plan's time among its kernels


@cache
def _nvtx() -> Any:
    """The package of the extra nvtx; None without it, or with one that was built for another Python."""
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


def _mark_range(name: str, category: str) -> AbstractContextManager[Any]:
    """Mark a range that Nsight Systems shows next to the kernels. ``category`` is ``trial`` or ``phase``."""
    nvtx = _nvtx()
    return nvtx.annotate(message=name, category=category, domain="autotune") if nvtx else nullcontext()


@dataclass
class _Attempt:
    """What is known of one configuration, however far trying it comes: seconds by phase, notes, errors of outputs."""

    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Counts the seconds of a phase, which a profiler sees as a range."""
        begin = time.perf_counter()
        with _mark_range(name, "phase"):
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


@dataclass
class Measurer:
    """One study on one device. ``try_job`` never raises LaunchError. ``close`` frees what it holds there. Raises
    DeviceError where the protocol wants a figure that the device does not tell."""

    backend: Backend
    family: Family
    workload: Workload
    inputs: Inputs
    expected: Mapping[str, NDArray[Any]] | None
    protocol: Protocol
    best_ms: float = math.inf
    _resident: Resident = field(init=False)
    _verifier: Verifier = field(init=False)
    _watch: ClockWatch = field(init=False)
    _producer: sampling.Producer | None = field(init=False)
    _deviations: Deviations | None = field(init=False)
    _ragged: dict[int, tuple[Resident, Verifier]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        most = self.protocol.finalists + 3
        self._resident = Resident(self.backend, self.inputs, most=most, guard=GUARD_BYTES)
        self._verifier = Verifier(self.backend, self.family, self.expected)
        self._watch = ClockWatch(self.backend.device)
        producer = sampling.PRODUCERS.get(self.protocol.figure)
        self._producer = producer(self.backend) if producer else None
        told = self.family.has_storage and self.expected is not None
        self._deviations = Deviations(self.expected) if told and self.expected else None

    @cached_property
    def _presets(self) -> frozenset[Configuration]:
        return frozenset(find_single_presets(self.family.space).values())

    @property
    def _timing(self) -> Timing:
        cold = self.workload.cold
        return Timing(backend=self.backend, protocol=self.protocol, cold=cold, watch=self._watch)

    def _execution(self, job: Job, resident: Resident) -> Execution:
        variant = Variant.make(self.family, job.configuration, resident.inputs.options)
        return resident.execution(variant, self.backend.load(job.compiled))

    def try_job(self, job: Job, placed: Callable[[], None] = lambda: None) -> Tried:
        """Place, verify, measure. ``placed`` is called when the data are there and the kernels come next.

        Raises AutotuneError for what no other configuration would survive either (a family's own mistake).
        """
        self.best_ms = min(self.best_ms, job.best_ms)
        attempt = _Attempt()
        static = static_profiles(self.family, self.inputs, self.backend.device, job)
        state: State = "launch_failed"
        reason, measurement, lost = "", None, False
        try:
            if unfit := [p.kernel for p in static if p.limited_by == "launch"]:
                reason = f"kernel {unfit[0]}: one block needs more registers or shared memory than a multiprocessor has"
            else:
                with _mark_range(job.configuration.id, "trial"):
                    state, reason, measurement = self._run(job, placed, attempt)
        except LayoutRefusal as refusal:
            state, reason = "excluded", str(refusal)
        except Exception as problem:  # a family's plan may raise anything; it costs one trial
            if isinstance(problem, AutotuneError) and not isinstance(problem, LaunchError):
                raise
            lost = self._is_lost()
            state = "crashed" if lost else "launch_failed"
            reason = cause(problem)
        if measurement:
            self.best_ms = min(self.best_ms, measurement.median_ms)
        spent = {name: s for name, s in attempt.seconds.items() if name != "kernels"}
        trial = trial_of(
            self.workload, self.backend.device, job.configuration, state, reason, profiles=static,
            measurement=measurement, phases_ms=job.phases_ms(spent), notes=tuple(attempt.notes), errors=attempt.errors,
            proof=PROOF_VERSION,
        )  # fmt: skip
        return Tried(trial, attempt.seconds, lost)

    def _run(
        self, job: Job, placed: Callable[[], None], attempt: _Attempt
    ) -> tuple[State, str, Measurement | None]:
        with attempt.phase("place"):
            execution = self._execution(job, self._resident)
        placed()
        try:
            return self._prove_and_time(execution, job, attempt)
        except Exception:
            with suppress(LaunchError):  # a kernel that failed may have written to its inputs before
                self._verifier.restore_inputs(execution)
            raise

    def _prove_and_time(
        self, execution: Execution, job: Job, attempt: _Attempt
    ) -> tuple[State, str, Measurement | None]:
        # A preset is there to be compared with, so it is always verified and sampled properly.
        in_full = job.in_full or job.configuration in self._presets
        best_ms = math.inf if in_full else self.best_ms
        once_above_ms = sampling.hopeless_ms(self.protocol, best_ms)
        if self.backend.device.kind == "cpu":  # often busy: more runs cost no more than samples would
            once_above_ms = max(once_above_ms, self.protocol.seconds * 1e3)
        ran_ms = self._verifier.ran_ms
        with attempt.phase("verify"):
            reason, first_ms = self._verifier.run(execution, self.workload.cold, once_above_ms=once_above_ms)
            if self._deviations:
                attempt.errors |= self._deviations.compute(execution)
        attempt.seconds["kernels"] = (self._verifier.ran_ms - ran_ms) / 1e3
        if reason:
            return "wrong_result", reason, None
        with attempt.phase("measure"):
            # The last verified run is as any other: in the order of timed ones, the caches flushed before.
            last_ms = self._verifier.last_ms
            begun = (last_ms,) if self.workload.cold and last_ms > sampling.LONG_MS else ()
            samples = self._timing.measure(execution.run, first_ms, best_ms, begun)
            measurement = self._measure(execution, samples, (first_ms, *begun), attempt)
        with attempt.phase("verify"):
            reason = self._check_left(execution, samples) if samples.ran or self._is_split(execution) else ""
        if reason:
            return "wrong_result", f"right when first verified, wrong when it was timed: {reason}", None
        return "measured", "", measurement

    def _check_left(self, execution: Execution, samples: Samples) -> str:
        """What the last two runs did wrong, since a fault may come in every second one; of a long kernel, which has
        few, the last."""
        reason = self._verifier.check_left(execution)
        if reason or samples.abandoned or samples.median_ms > sampling.LONG_MS:
            return reason
        self.backend.sample(execution.run, 1, self.workload.cold)
        return self._verifier.check_left(execution)

    def _is_split(self, execution: Execution) -> bool:
        """Whether a plan's time is shared out among its kernels, which takes runs of its own."""
        return len(execution.variant.kernels) > 1 or execution.has_own_plan

    def _measure(
        self, execution: Execution, samples: Samples, verified_ms: Sequence[float], attempt: _Attempt
    ) -> Measurement:
        # Verified runs are counted already: one stands in for the samples of what was abandoned at once.
        new = sum(ms for ms in samples.times_ms if ms not in verified_ms)
        attempt.seconds["kernels"] += (new + samples.dropped_ms) / 1e3
        attempt.notes += samples.notes
        return Measurement(
            median_ms=samples.median_ms, minimum_ms=min(samples.times_ms), spread=samples.spread,
            samples=len(samples.times_ms), kernel_ms=self._kernel_ms(execution, samples, attempt),
            figures=self._figures(execution, samples), abandoned=samples.abandoned, times_ms=tuple(samples.times_ms),
        )  # fmt: skip

    def _figures(self, execution: Execution, samples: Samples) -> dict[str, Figure]:
        """What every call has, and what takes calls of its own where that is wanted and this is not out of the race."""
        names = ("transform_ms", "transfer_ms", "transfer_bytes", "footprint_bytes")
        found = {name: Figure(getattr(execution, name)) for name in names}
        if self._producer is None or samples.abandoned:
            return found
        return found | sampling.produce(self._producer, {None: execution}, {None: samples.median_ms})[None]

    def _kernel_ms(self, execution: Execution, samples: Samples, attempt: _Attempt) -> dict[str, float]:
        """The median time of each kernel of the plan, over a few runs of their own: no longer than sampling took."""
        if not self._is_split(execution):
            return {next(iter(self.family.kernels)): samples.median_ms}
        count = 1 if samples.abandoned else min(_SPLIT_RUNS, len(samples.times_ms))
        runs = [self.backend.kernel_times(execution.run) for _ in range(count)]
        attempt.seconds["kernels"] += sum(sum(run.values()) for run in runs) / 1e3
        return {kernel: median([run.get(kernel, 0.0) for run in runs]) for kernel in runs[0]}

    def _is_lost(self) -> bool:
        """Return whether the device is unusable: after a kernel crashed, but not after a launch was rejected."""
        try:
            self.backend.synchronize()
        except LaunchError:
            return True
        return False

    def retime(self, jobs: Sequence[Job], few: frozenset[Configuration], estimate_ms: float) -> Retimed:
        """The finalists in turn, those in ``few`` in a few rounds only, each checked again afterwards, and its outputs
        after its turns; ``estimate_ms`` as in ``Timing.interleave``. Raises LaunchError."""
        executions = {job.configuration: self._execution(job, self._resident) for job in jobs}
        checks = _Checks(self._verifier, executions)
        with _mark_range("finalists", "phase"):
            samples = self._run_in_turn(executions, estimate_ms, few=few, after=checks.turn)
        figures: dict[Configuration, dict[str, Figure]] = {}
        if self._producer is not None:
            times = {configuration: one.median_ms for configuration, one in samples.items()}
            figures = sampling.produce(self._producer, executions, times, _PRODUCED_TURNS)
        # Who wrote to an input while all took turns cannot be said; who does so again is found.
        for execution in executions.values():
            self._verifier.restore_inputs(execution)
        control_first = sorted(samples, key=lambda c: c != self.family.space.control)
        wrong = {c: self._verifier.run(executions[c], self.workload.cold, AGAIN)[0] for c in control_first}
        return Retimed(samples, {**wrong, **checks.wrong}, figures)

    def _run_in_turn(
        self, executions: Mapping[Any, Execution], estimate_ms: float, **more: Any
    ) -> dict[Any, Samples]:
        plans = {key: execution.run for key, execution in executions.items()}
        before = {key: execution.prepare for key, execution in executions.items()}
        return self._timing.interleave(plans, before, estimate_ms, **more)

    def compare(self, compiled: Compiled, jobs: Sequence[Job], estimate_ms: float) -> Compared:
        """The family's baseline, which ``compiled`` is, proved as any configuration is and in turn with others; one
        sample of those takes ``estimate_ms`` together. Raises LaunchError."""
        family = self.family.baseline
        assert family is not None
        variant = Variant.make(family, family.space.control, self.inputs.options)
        placed = Resident(self.backend, self.inputs, guard=GUARD_BYTES)
        with closing(placed) as resident, closing(Verifier(self.backend, family, self.expected)) as verifier:
            baseline = resident.execution(variant, self.backend.load(compiled))
            reason, first_ms = verifier.run(baseline, self.workload.cold)
            if reason:
                return Compared(None, {}, reason)
            executions: dict[Configuration | None, Execution] = {None: baseline}
            for job in jobs:
                executions[job.configuration] = self._execution(job, self._resident)
            samples = self._run_in_turn(executions, estimate_ms + first_ms)
            reason = verifier.check_left(baseline)
            return Compared(None if reason else samples.pop(None), samples, reason)

    def prove(self, job: Job, size: OddSize | None, ragged: Callable[[OddSize], Proof]) -> Proved:
        """Whether the configuration is right for the inputs that are swept, or for a size that they do not have;
        ``ragged`` gives its inputs and expected outputs."""
        try:
            if size is None:
                execution = self._execution(job, self._resident)
                reason, repeats = self._verifier.repeat(execution, self.workload.cold)
                return Proved("wrong_result" if reason else "measured", reason, repeats=repeats)
            if size.is_of_winners:
                return self._prove_large(job, *ragged(size))
            if size.number not in self._ragged:
                self._ragged[size.number] = self._place(*ragged(size))
            resident, verifier = self._ragged[size.number]
            reason, _ = verifier.run(self._execution(job, resident), cold=False)
        except Exception as problem:  # noqa: BLE001 - whatever a plan or an order makes of such a size
            lost = self._is_lost()
            return Proved("crashed" if lost else "launch_failed", cause(problem), lost)
        return Proved("wrong_result" if reason else "measured", reason)

    def _place(self, inputs: Inputs, outputs: Mapping[str, NDArray[Any]]) -> tuple[Resident, Verifier]:
        resident = Resident(self.backend, inputs, guard=GUARD_BYTES)
        return resident, Verifier(self.backend, self.family.apply_types(inputs.options), outputs)

    def _prove_large(self, job: Job, inputs: Inputs, outputs: Mapping[str, NDArray[Any]]) -> Proved:
        """On inputs that may be as large as the swept ones, right after a run on those where it is the same binary:
        what a kernel keeps from one input is none of another's."""
        resident, verifier = self._place(inputs, outputs)
        with closing(resident), closing(verifier):
            try:
                execution = self._execution(job, resident)
            except LaunchError as problem:
                return Proved("excluded", cause(problem))
            if inputs.options == self.inputs.options:
                self.backend.sample(self._execution(job, self._resident).run, 1, False)
            reason, _ = verifier.run(execution, cold=False)
            return Proved("wrong_result" if reason else "measured", reason)

    def describe(self) -> dict[str, Any]:
        """What the device says of itself now; as much as it answers."""
        about: dict[str, Any] = {}
        with suppress(LaunchError):
            about |= self.backend.describe()
            about |= sampling.floors(self.backend)
        return about

    def close(self) -> None:
        for resident, verifier in ((self._resident, self._verifier), *self._ragged.values()):
            verifier.close()
            resident.close()
        self._ragged.clear()


@dataclass
class _Checks:
    """Checks the outputs after a finalist's turn, while all checks take a small share of the time of the turns."""

    verifier: Verifier
    executions: Mapping[Configuration, Execution]
    wrong: dict[Configuration, str] = field(default_factory=dict)
    _begun: float = field(default_factory=time.perf_counter)
    _spent: float = 0.0

    def turn(self, configuration: Configuration) -> None:
        begin = time.perf_counter()
        if self._spent > _CHECKED_SHARE * (begin - self._begun):
            return
        execution = self.executions[configuration]
        reason = self.verifier.outputs(execution)
        if reason and not self.verifier.restore_inputs(execution):  # else another's fault
            self.wrong.setdefault(configuration, reason)
        self._spent += time.perf_counter() - begin
