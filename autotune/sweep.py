"""The pipe: every configuration compiled, placed, verified, measured and recorded, in that order.

    configurations -> compile_many -> for each: place -> verify -> measure -> record -> finalists re-timed

A configuration that cannot be compiled, launched or trusted is a recorded trial with its reason, and the
sweep goes on. A measurement of an unverified variant cannot exist: ``_measured`` is only reached from
``_tried`` behind the verifier.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from autotune.backends import Backend, LaunchError
from autotune.cache import Cache
from autotune.compiler import Compiled, CompileFailure, compile_many
from autotune.decision import time_ms
from autotune.errors import DeviceError
from autotune.execution import Execution
from autotune.family import Family
from autotune.finalists import Finalists
from autotune.identity import header, single_presets
from autotune.measure import Protocol, Samples, measure, median
from autotune.profile import profiles
from autotune.record import Study
from autotune.reference import expected_outputs
from autotune.resident import Resident
from autotune.space import Configuration
from autotune.store import Store, StudyStore
from autotune.trial import KernelProfile, Measurement, State, Trial
from autotune.variant import Variant, batch
from autotune.verify import Verifier
from autotune.workload import Inputs, Workload

__all__ = ["DeviceLost", "Interrupted", "Phases", "Sweep"]

BATCH_SIZE = 24  # the front end is paid once a call, and the first batch is soon there
_TRIED_AGAIN = ("compile_failed", "launch_failed")
_SPLIT_RUNS = 5  # runs that share out a plan's time among its kernels


@dataclass
class Phases:
    """Wall seconds of a sweep by what they were spent on; ``kernels`` is the device time of the
    plans run in ``verify`` and ``measure``; the rest of those is comparing, flushing caches and queueing."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, phase: str, since: float) -> float:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - since
        return now


@dataclass(kw_only=True)
class Sweep:
    """One family on one workload and one device. ``watch`` is called after each trial with (trial, trials done,
    trials in all). ``run`` returns the study as recorded; KeyboardInterrupt leaves a usable record."""

    backend: Backend
    family: Family
    workload: Workload
    inputs: Inputs
    configurations: Sequence[Configuration]
    store: Store
    cache: Cache
    protocol: Protocol
    compiler: str = ""
    processes: int = 1
    watch: Callable[[Trial, int, int], None] = lambda trial, done, total: None
    phases: Phases = field(default_factory=Phases)
    best_ms: float = math.inf

    @cached_property
    def presets(self) -> dict[Configuration, None]:
        """The presets of one configuration, in declared order; found once, asked for at every trial."""
        return dict.fromkeys(single_presets(self.family.space).values())

    def run(self) -> Study:
        with self.backend.current():  # what the pipe makes on the device is also dropped there
            return self._run()

    def _run(self) -> Study:
        study = header(
            self.family, self.workload, self.inputs, self.backend.device,
            self.backend.toolchain(self.compiler).identity, self.protocol,
        )  # fmt: skip
        recorded = self.store.open(study, {p.name: p for p in self.family.space.policies})
        known = recorded.known()
        # A failed compile or launch may have been the machine's fault (no memory, full disk), and is cheap to repeat.
        todo = [c for c in self._ordered() if c not in known or known[c].state in _TRIED_AGAIN]
        self.best_ms = min((time_ms(t) for t in known.values()), default=math.inf)
        done = len(self.configurations) - len(todo)
        began = time.perf_counter()
        resident = Resident(self.backend, self.inputs, most=self.protocol.finalists + 3)
        verifier: Verifier | None = None
        interrupted, lost, trouble = False, "", ""
        try:
            if todo:
                expected, reference_ms = expected_outputs(self.family, self.inputs, self.cache.root)
                self.phases.seconds["reference"] = reference_ms / 1e3
                verifier = Verifier(self.backend, self.family, expected)
                study = replace(study, about={**study.about, "reference_ms": reference_ms})
                for trial in self._trials(todo, resident, verifier):
                    self._record(recorded, known, trial)
                    done += 1
                    self.watch(trial, done, len(self.configurations))
            if todo or recorded.about().get("interrupted"):
                trouble = self._finalists(recorded, known, resident, verifier)
        except KeyboardInterrupt:
            interrupted = True
        except DeviceLost as problem:
            lost = str(problem)
        finally:
            if verifier:
                verifier.close()
            resident.close()
        about = self._about(study.about, recorded.about(), time.perf_counter() - began, len(todo))
        about |= {"interrupted": interrupted, **({"lost": lost} if lost else {})}
        about |= {"warning": trouble} if trouble else {}
        recorded.annotate(about)
        wanted = set(self.configurations)
        trials = tuple(t for c, t in known.items() if c in wanted)
        if interrupted:
            raise Interrupted(replace(study, about=about, trials=trials))
        return replace(study, about=about, trials=trials)

    # -- one configuration after another ------------------------------------------------------------------

    def _ordered(self) -> list[Configuration]:
        """Presets first, then a thin spread over the space, then the rest: a good time to beat is found early, and
        what follows can be abandoned early."""
        wanted = dict.fromkeys(self.configurations)
        first = [c for c in self.presets if c in wanted]
        thin = self.configurations[:: max(1, len(self.configurations) // 24)]
        return list(dict.fromkeys([*first, *thin, *self.configurations]))

    def _trials(self, todo: Sequence[Configuration], resident: Resident, verifier: Verifier) -> Any:
        variants, excluded = [], []
        for configuration in todo:
            variant = Variant(self.family, configuration, tuple(self.inputs.options.items()))
            reason = variant.exclusion(self._names(configuration), self.backend.device.limits)
            if reason:
                excluded.append((configuration, reason))
            else:
                variants.append(variant)
        toolchain = self.backend.toolchain(self.compiler)
        mark = time.perf_counter()
        chunks = compile_many(
            batch(self.family, tuple(variants)), toolchain, self.cache, self.processes, BATCH_SIZE
        )
        if self.backend.device.kind == "cpu":  # compilers would disturb the measurement
            chunks = iter(list(chunks))
        remaining = iter(variants)
        for chunk in chunks:
            mark = self.phases.add("compile", mark)
            for compiled in chunk:
                yield self._tried(next(remaining), compiled, resident, verifier)
            mark = time.perf_counter()
        for configuration, reason in excluded:
            yield self._trial(configuration, "excluded", reason)

    def _tried(
        self, variant: Variant, compiled: Compiled | CompileFailure, resident: Resident, verifier: Verifier
    ) -> Trial:
        if isinstance(compiled, CompileFailure):
            return self._trial(variant.configuration, "compile_failed", compiled.message)
        names = self._names(variant.configuration)
        static = profiles(variant, compiled, names, self.backend.device)
        spent = {"compile": compiled.seconds * 1e3}
        if unfit := [p.kernel for p in static if p.limited_by == "launch"]:
            reason = f"kernel {unfit[0]}: one block needs more registers or shared memory than a multiprocessor has"
            return self._trial(variant.configuration, "launch_failed", reason, static, spent)
        mark = time.perf_counter()
        try:
            module = self.backend.load(compiled)
            execution = resident.execution(variant, module)
            mark, spent["place"] = self.phases.add("place", mark), (time.perf_counter() - mark) * 1e3
            reason, first_ms = verifier.run(execution, self.workload.cold)
            self.phases.seconds["kernels"] = self.phases.seconds.get("kernels", 0.0) + first_ms / 1e3
            mark, spent["verify"] = self.phases.add("verify", mark), (time.perf_counter() - mark) * 1e3
            if reason:
                return self._trial(variant.configuration, "wrong_result", reason, static, spent)
            measurement = self._measured(execution, first_ms)
            spent["measure"] = (time.perf_counter() - mark) * 1e3
            self.phases.add("measure", mark)
        except LaunchError as problem:
            return self._failed(variant.configuration, str(problem), static, spent)
        self.best_ms = min(self.best_ms, measurement.median_ms)
        return self._trial(variant.configuration, "measured", "", static, spent, measurement)

    def _measured(self, execution: Execution, first_ms: float) -> Measurement:
        # A preset is there to be compared with, so it is always sampled properly.
        best_ms = math.inf if execution.variant.configuration in self.presets else self.best_ms
        samples = measure(
            self.backend,
            execution.run,
            self.protocol,
            cold=self.workload.cold,
            first_ms=first_ms,
            best_ms=best_ms,
        )
        # The verified run is counted already, and is among the samples of what was abandoned at once.
        new = sum(samples.times_ms) - (first_ms if first_ms in samples.times_ms else 0.0)
        self.phases.seconds["kernels"] += new / 1e3
        kernels = list(self.family.kernels)
        split = len(kernels) > 1 or execution.has_own_plan
        return Measurement(
            median_ms=samples.median_ms,
            minimum_ms=min(samples.times_ms),
            spread=samples.spread,
            samples=len(samples.times_ms),
            kernel_ms=self._kernel_ms(execution, samples) if split else {kernels[0]: samples.median_ms},
            transform_ms=execution.transform_ms,
            transfer_ms=execution.transfer_ms,
            footprint_bytes=execution.footprint_bytes,
            abandoned=samples.abandoned,
        )

    def _kernel_ms(self, execution: Execution, samples: Samples) -> dict[str, float]:
        """The median time of each kernel of the plan, over a few runs of their own: no longer than sampling took."""
        count = 1 if samples.abandoned else min(_SPLIT_RUNS, len(samples.times_ms))
        runs = [self.backend.kernel_times(execution.run) for _ in range(count)]
        return {kernel: median([run.get(kernel, 0.0) for run in runs]) for kernel in runs[0]}

    def _failed(
        self,
        configuration: Configuration,
        reason: str,
        static: tuple[KernelProfile, ...],
        spent: Mapping[str, float],
    ) -> Trial:
        """A refused launch leaves the device usable; a crashed kernel does not, and then the sweep cannot go on in
        this process."""
        try:
            self.backend.synchronize()
        except LaunchError:
            return self._trial(configuration, "crashed", reason, static, spent)
        return self._trial(configuration, "launch_failed", reason, static, spent)

    def _record(self, recorded: StudyStore, known: dict[Configuration, Trial], trial: Trial) -> None:
        mark = time.perf_counter()
        recorded.record(trial)
        known[trial.configuration] = trial
        self.phases.add("record", mark)
        if trial.state == "crashed":
            raise DeviceLost(
                f"{trial.configuration.id} took the device's context with it ({trial.reason}); it is recorded as "
                "crashed. Run the same command again: it goes on behind that configuration"
            )

    # -- the end: finalists, and what the record says of itself --------------------------------------------

    def _finalists(
        self,
        recorded: StudyStore,
        known: dict[Configuration, Trial],
        resident: Resident,
        verifier: Verifier | None,
    ) -> str:
        """Re-time the best; why it could not be done, or empty."""
        wanted = set(self.configurations)
        mark = time.perf_counter()

        def record(trial: Trial) -> None:
            recorded.record(trial)
            known[trial.configuration] = trial

        finalists = Finalists(
            self.backend, resident, self.cache, self.protocol, self.workload.cold, self.compiler
        )
        options = tuple(self.inputs.options.items())
        try:
            finalists.run(
                {c: t for c, t in known.items() if c in wanted},
                self.family.space.control,
                lambda configuration: Variant(self.family, configuration, options),
                verifier,
                record,
            )
        except LaunchError as problem:
            return f"the finalists could not be timed again: {problem}"
        finally:
            self.phases.add("finalists", mark)
        return ""

    def _trial(
        self,
        configuration: Configuration,
        state: State,
        reason: str,
        static: tuple[KernelProfile, ...] = (),
        spent: Mapping[str, float] | None = None,
        measurement: Measurement | None = None,
    ) -> Trial:
        return Trial(
            family=self.family.name,
            workload=self.workload.name,
            device=self.backend.device.slug,
            configuration=configuration,
            state=state,
            reason=reason,
            profiles=static,
            measurement=measurement,
            phases_ms=dict(spent or {}),
        )

    def _names(self, configuration: Configuration) -> dict[str, Any]:
        return dict(
            self.family.names(configuration, self.inputs.sizes, self.inputs.options, self.inputs.scalars)
        )

    def _about(
        self, about: Mapping[str, Any], before: Mapping[str, Any], wall_s: float, visited: int
    ) -> dict[str, Any]:
        """The study's description: this run's, with the seconds of the runs before it added up."""
        seconds = dict(before.get("phases_s", {}))
        for phase, spent in {**self.phases.seconds, "total": wall_s}.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
        running = seconds.get("verify", 0.0) + seconds.get("measure", 0.0)
        extra: dict[str, Any] = {
            "phases_s": seconds,
            "busy_share": seconds.get("kernels", 0.0) / running if running else 0.0,
            "visited": visited + int(before.get("visited", 0)),
        }
        if "reference_ms" in before:
            extra["reference_ms"] = before["reference_ms"]
        with suppress(LaunchError):  # after a lost context there is nothing to ask
            extra |= self.backend.describe()
            if floor := getattr(self.backend, "floor_ms", None):
                extra["floor_ms"] = floor()
        return {**about, **extra}


class DeviceLost(DeviceError):
    """A configuration took the device's context with it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; ``study`` is what was recorded."""

    def __init__(self, study: Study) -> None:
        super().__init__("interrupted")
        self.study = study
