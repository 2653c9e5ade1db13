"""The pipe: every configuration compiled, placed, verified, measured and recorded, in that order.

    search -> configurations -> compile_many -> for each: a worker places -> verifies -> measures -> recorded here
    -> finalists proved on odd sizes and re-timed

Compiling goes on in a thread and in processes of its own, measuring in one process for each device; this module
hands out and records. A configuration that cannot be compiled, launched or trusted, or that takes its process
down, is a recorded trial with its reason, and the sweep goes on.
"""

import math
import time
from collections import ChainMap, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from autotune.compile import Cache, Pool
from autotune.declaration import Configuration, Family, Inputs, Workload
from autotune.device import LaunchError
from autotune.engine.finalists import Finalists, baseline_digest, fingerprint, time_baseline
from autotune.engine.jobs import JobCompiler, Proposals
from autotune.engine.measuring_process import Measuring
from autotune.engine.messages import Made, Setting, write_expected
from autotune.engine.process_worker import ProcessWorker
from autotune.engine.proof import Prover
from autotune.engine.request import NotAsked, SweepRequest
from autotune.engine.runner import DeviceLost
from autotune.engine.shared_inputs import share_arrays
from autotune.engine.trials import Trials
from autotune.errors import FamilyError
from autotune.measure import PROOF_VERSION, GivenOutputs, Protocol
from autotune.record import Provenance, Store, Study, StudyStore, Trial, header, set_aside
from autotune.search import SURE, Prior, Search, Unlisted, list_configurations

_ASKED = 4  # configurations asked of a search at a time, for each worker
# May have been the machine's fault (no memory, full disk), and are cheap to repeat.
_TRIED_AGAIN = ("compile_failed", "launch_failed")


@dataclass(kw_only=True)
class Sweep:
    """One sweep of ``request``: one of its workloads, on one device model, by ``workers`` that are already started. A
    search over the configurations chooses what to try; it tries ``seeds`` early, learns from ``prior``, and its budget
    counts from ``clock_s``. ``watch`` is called after each trial with (trial, trials done, trials in all or 0),
    ``compiled`` is ``JobCompiler.watch``, ``note`` is called with what a person should know at once. ``answer`` gives
    the right outputs in place of the family's reference.
    ``run`` returns the study as recorded; KeyboardInterrupt leaves a usable record. Raises AutotuneError.

    The control is also tried if the selection leaves it out, so that there is something to compare with. A request that
    joins raises NotAsked for a study that is not in the record, and leaves finalists, baseline and the study's
    description to the sweep that it joins.

    ``phases`` are wall seconds by activity. Those of the measuring processes (``compile``: waiting for it; ``place``,
    ``verify``, ``measure``) are an average over them, and ``kernels`` is the device time of the plans run in ``verify``
    and ``measure``; the rest of those is comparing, flushing caches and queueing. ``faults`` is what was spent on
    configurations that took their process down; ``record`` overlaps with all of them.
    """

    request: SweepRequest
    workload: Workload
    inputs: Inputs
    answer: GivenOutputs | None = None
    seeds: Sequence[Configuration] = ()
    prior: Prior = field(default_factory=Prior)
    clock_s: float | None = None
    store: Store
    cache: Cache
    protocol: Protocol
    workers: Sequence[ProcessWorker]
    compilers: Pool | None = None
    watch: Callable[[Trial, int, int], None] = lambda trial, done, total: None
    compiled: Callable[[int, int], None] = lambda done, total: None
    note: Callable[[str], None] = lambda text: None
    phases: dict[str, float] = field(init=False, default_factory=lambda: defaultdict(float))
    best_ms: float = field(init=False, default=math.inf)
    before: int = field(init=False, default=0)  # trials that were recorded before and are not tried again
    _began: float = field(init=False, default=math.inf)  # when the first configuration could be tried
    _record: StudyStore = field(init=False)
    _known: dict[Configuration, Trial] = field(init=False)
    _visited: int = field(init=False, default=0)
    _compiler: JobCompiler = field(init=False)
    _setting: Setting = field(init=False)
    _reference_ms: float = field(init=False, default=0.0)
    _wanted: Container[Configuration] = field(init=False)
    _left: float | None = field(init=False, default=None)
    _beside: tuple[Configuration, ...] = field(init=False)  # tried with the selection, and no part of it

    @property
    def family(self) -> Family:
        return self.request.family

    @property
    def configurations(self) -> Sequence[Configuration] | None:
        """None where they are too many to list."""
        return self.request.configurations

    @property
    def busy_share(self) -> float:
        """How much of the measuring processes' time the device ran kernels of the plans, so far."""
        wall_s = time.perf_counter() - self._began
        return self.phases.get("kernels", 0.0) / wall_s if wall_s > 0 else 0.0

    def run(self) -> Study:
        study = self._open()
        beside_before = [c.id for c in self._beside if c not in self._known]
        again = {
            c: t for c, t in self._collect_selected().items() if self.request.again or t.state in _TRIED_AGAIN
        }
        self.before = len(self._collect_selected()) - len(again)
        times = [] if self.request.again else [trial.time_ms for trial in self._known.values()]
        self.best_ms = min(times, default=math.inf)
        began = time.perf_counter()
        told: dict[str, Any] = {}
        try:
            if self._is_work_left(again):
                self._work(again, told)
        except KeyboardInterrupt:
            told["interrupted"] = True
            for each in self.workers:  # what it has in hand may never end
                each.close(at_once=True)
        except DeviceLost as problem:
            told["lost"] = str(problem)
        before = self._record.get_provenance()
        earlier = beside_before if before.beside is None else before.beside
        told["beside"] = [c.id for c in self._beside if c.id in earlier]  # of no selection in the record
        about = self._describe_study(study.about.update(told), before, time.perf_counter() - began)
        if not self.request.joins:
            self._record.annotate(about)
        study = replace(study, about=about, trials=tuple(self._collect_selected().values()))
        if about.interrupted:
            raise SweepInterrupted(study)
        return study

    def _open(self) -> Study:
        """The study without its trials, and the record's part of it."""
        worker, space = self.workers[0], self.family.space
        processes = self.request.compiler_processes(worker.device.kind, len(self.workers))
        self._compiler = JobCompiler(
            self.family, self.inputs, worker, self.cache,
            processes if self.request.strategy.is_foreseen else 1,  # not worth their start for a few at a time
            self.compilers, self.compiled,
        )  # fmt: skip
        study = header(
            self.family, self.workload, self.inputs, worker.device, worker.toolchain.identity, self.protocol,
            answer=self.answer.digest if self.answer else "",
        )  # fmt: skip
        listed_ones = self.configurations
        self._wanted = Unlisted(self.request.space) if listed_ones is None else set(listed_ones)
        self._beside = () if space.control in self._wanted else (space.control,)
        study = replace(study, about=replace(study.about, beside=tuple(c.id for c in self._beside)))
        if self.request.joins and (why := self.store.explain_unknown(study)):
            raise NotAsked(why)
        self._record = self.store.open(study, {p.name: p for p in space.policies})
        if not self.request.joins:
            self._record.ask(self.request.serialise(self.workload))
        if self._record.why_new:
            self.note(self._record.why_new)
        if self.family.is_own_reference and not self.answer:
            self.note("there is no reference: each configuration is compared with its own first run")
        self._known, self._visited = self._record.get_known(), 0
        return study

    def _collect_selected(self) -> dict[Configuration, Trial]:
        """What is known of what was asked for, and of the control."""
        return {c: t for c, t in self._known.items() if self._is_selected(c)}

    def _is_selected(self, configuration: Configuration) -> bool:
        return configuration in self._wanted or configuration in self._beside

    def _is_work_left(self, again: Mapping[Configuration, Trial]) -> bool:
        if self.configurations is None or again or self.request.retime:  # of what is not listed, nobody knows
            return True
        is_new = any(c not in self._known for c in (*self._beside, *self.configurations))
        if self.request.joins:
            return is_new
        return is_new or self._are_finalists_due() or self._is_baseline_due()

    def _work(self, again: Mapping[Configuration, Trial], told: dict[str, Any]) -> None:
        """``told`` is added to: it holds what is known when this ends early, too."""
        with share_arrays(self.inputs.arrays) as arrays:
            told["reference_ms"] = self._reference_ms = self._set_out(arrays)
            told |= self._describe_device()
            self._try(again)
            if self.request.joins:
                return
            self._try_in_full()
            told |= self._finalists()
            told |= self._compare_baseline()
            told |= self._describe_device()

    def _set_out(self, arrays: Path) -> float:
        """Tell every worker of the study: the milliseconds the reference took."""
        mark = time.perf_counter()
        setting = Setting.make(
            self.family, self.inputs, arrays, workload=self.workload, protocol=self.protocol
        )
        self._setting = setting
        if self.answer:
            reference_ms = self.answer.elapsed_ms
            write_expected(arrays, self.answer.outputs)
        else:
            try:
                reference_ms = self._alive.ask(math.inf, Measuring.reference, setting, self.cache.root)
            except LaunchError as problem:
                raise FamilyError(
                    f"the reference of family {self.family.name} gave nothing: {problem}"
                ) from None
        for worker in self.workers:
            worker.study(setting)
        self.phases["reference"] += time.perf_counter() - mark
        return reference_ms

    @property
    def _alive(self) -> ProcessWorker:
        """The first worker that is left. Raises DeviceLost."""
        for worker in self.workers:
            if not worker.lost:
                return worker
        raise DeviceLost("; ".join(worker.lost for worker in self.workers))

    def _try(self, again: Mapping[Configuration, Trial]) -> None:
        """Try every configuration that the search asks for, here or in another sweep that shares the record. Those
        outside the selection come first and do not count as its trials."""
        first = [c for c in self._beside if c not in self._known or c in again]
        excluded = {c: reason for c in first if (reason := self._compiler.explain_exclusion(c))}
        search = self._search(again)
        size = None if self.request.strategy.is_foreseen else _ASKED * len(self.workers)
        is_cpu = self.workers[0].device.kind == "cpu"  # where nothing is compiled while something is measured
        first = [c for c in first if c not in excluded]
        proposals = Proposals(search, size, 1 if is_cpu else 2, first, self.protocol.figure)
        total = len(self.configurations or ())
        done = (
            sum(c in self._known and c not in again for c in self.configurations or ()) if size is None else 0
        )

        def watch(trial: Trial) -> None:
            nonlocal done
            done += trial.configuration not in self._beside
            self._visited += 1
            self.best_ms = trials.best_ms
            proposals.tell(trial)
            self.watch(trial, done, total)

        def chunks(stopped: Callable[[], bool]) -> Iterator[list[Made]]:
            for proposed in proposals.batches(stopped):
                yield from self._compiler.chunks(proposed, lambda: stopped() or search.is_late)

        trials = self._trials(
            again=again.keys(), watch=watch, set_aside=proposals.set_aside, best_ms=self.best_ms
        )
        self._began = time.perf_counter()
        trials.run(ChainMap(excluded, search.excluded), chunks)
        self._left = self._estimate_gain_left(search)

    def _estimate_gain_left(self, search: Search) -> float | None:
        """How much less time than the best, as a share of it, what was not tried takes at most, as the search has it;
        None where all was tried."""
        if self.configurations is not None and all(c in self._known for c in self.configurations):
            return None
        for configuration, trial in self._known.items():  # it may have ended before it had all results
            search.tell(configuration, trial.value(self.protocol.figure))
        return search.estimate_gain_left(SURE)

    def _try_in_full(self) -> None:
        """Where all were set aside at their first runs, the best of them is verified and timed as one that may win has
        to be; the next one where that turns out wrong."""
        tried: set[Configuration] = set()
        while True:
            selected = [t for c, t in self._collect_selected().items() if c not in self._beside]
            due = {t.configuration for t in set_aside(selected, self.family.accuracy)} - tried
            if not due:
                return
            tried |= due
            self._try_again(due)

    def _try_again(self, due: set[Configuration]) -> None:
        jobs: list[Made] = [replace(job, in_full=True) for job in self._compiler.jobs(list(due))]
        trials = self._trials(again=due, claimed=set(due), watch=lambda _trial: None)
        trials.run({}, lambda _stopped: iter([jobs]))

    def _trials(self, **given: Any) -> Trials:
        return Trials(
            workers=self.workers, family=self.family, workload=self.workload, inputs=self.inputs,
            store=self._record, known=self._known, phases=self.phases, **given,
        )  # fmt: skip

    def _search(self, again: Mapping[Configuration, Trial]) -> Search:
        """Make a search that has the results of what need not be tried again."""
        search = Search(
            self.request.space, self.configurations, self.request.strategy,
            seeds=self.seeds, prior=self.prior, exclusion=self._compiler.explain_exclusion, began=self.clock_s,
        )  # fmt: skip
        for configuration, trial in self._known.items():
            if configuration not in again:
                search.tell(configuration, trial.value(self.protocol.figure))
        return search

    def _are_finalists_due(self) -> bool:
        """Whether the record holds measured trials that finalists were not chosen from: a sweep that was killed between
        the last trial and the last word leaves it so."""
        done = fingerprint(self._collect_selected().values())
        return bool(done) and self._record.get_provenance().finalists != done

    def _finalists(self) -> dict[str, Any]:
        """Prove and re-time the best: what the study's description says of that."""
        mark = time.perf_counter()

        def record(trial: Trial) -> None:
            self._record.record(trial)
            self._known[trial.configuration] = trial

        prover = Prover(
            self._alive, self._compiler, self._setting, self.request.root, self.inputs, self.answer, self._reference_ms
        )  # fmt: skip
        finalists = Finalists(
            prover=prover, protocol=self.protocol, control=self.family.space.control,
            accuracy=self.family.accuracy, aside=frozenset(self._beside), record=record,
        )  # fmt: skip
        about: dict[str, Any] = {}
        try:
            finalists.run(self._collect_selected())
            self._record.refresh()
            recorded = self._record.get_known()
            about["finalists"] = fingerprint(t for c, t in recorded.items() if self._is_selected(c))
        except LaunchError as problem:
            about["warning"] = f"the finalists could not be timed again: {problem}"
        finally:
            self.phases["finalists"] += time.perf_counter() - mark
        if finalists.ratio:
            about["retime_ratio"] = finalists.ratio
        if prover.sizes is not None:
            about["proof"] = {
                "version": PROOF_VERSION, "sizes": prover.sizes.list_reported(self.inputs.sizes),
                "why_not": prover.sizes.why_not,
            }  # fmt: skip
            own = "its own first run" if self.family.is_own_reference else self.family.reference_configuration
            if own and not self.answer:
                about["proof"]["against"] = own
        return about

    def _compare_baseline(self) -> dict[str, Any]:
        """Time the family's baseline in turn with control and winner, and return what the study records of it."""
        if (baseline := self.family.baseline) is None:
            return {}
        mark = time.perf_counter()
        compiler = replace(self._compiler, worker=self._alive)
        found = time_baseline(baseline, compiler, self._collect_selected(), self.family.space.control)
        self.phases["baseline"] += time.perf_counter() - mark
        return {"baseline": asdict(found)}

    def _is_baseline_due(self) -> bool:
        """Whether the baseline is another than the one that was timed."""
        baseline = self.family.baseline
        known = self._record.get_provenance().baseline
        return baseline is not None and (known is None or known.digest != baseline_digest(baseline))

    def _describe_device(self) -> dict[str, Any]:
        """What the first device says of itself now; nothing after a lost context."""
        with suppress(LaunchError):
            return self.workers[0].ask(1, Measuring.describe)
        return {}

    def _describe_study(self, about: Provenance, before: Provenance, wall_s: float) -> Provenance:
        """The study's description: this run's, with the seconds of the runs before it added up."""
        seconds = dict(before.phases_s)
        for phase, spent in {**self.phases, "total": wall_s}.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
        running = seconds.get("verify", 0.0) + seconds.get("measure", 0.0)
        about = replace(before, interrupted=False, lost="", warning="").update(about.to_dict())
        idle = before.idle_policies
        if (now := self._compiler.idle_policies()) is not None:  # a policy that changed nothing in any run
            about = replace(about, idle_policies=tuple(p for p in now if idle is None or p in idle))
        return replace(
            about,
            searched=self._describe_searched(),
            phases_s=seconds,
            busy_share=seconds.get("kernels", 0.0) / running if running else 0.0,
            visited=self._visited + before.visited,
        )

    def _describe_searched(self) -> dict[str, Any]:
        """How much of the space was tried: of the selection, and ``space`` for all of it (None where it is too large
        to list)."""
        of = None if self.configurations is None else len(self.configurations)
        whole = list_configurations(self.family.space)
        space = None if whole is None else len(whole)
        tried = sum(c in self._wanted for c in self._known)
        left = {} if self._left is None else {"left_to_gain": self._left}
        return {"tried": tried, "of": of, "space": space, **self.request.strategy.describe(), **left}


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; ``study`` is what was recorded."""

    def __init__(self, study: Study) -> None:
        super().__init__("interrupted")
        self.study = study
