"""The pipe: every configuration compiled, placed, verified, measured and recorded, in that order.

    configurations -> compile_many -> for each: a worker places -> verifies -> measures -> recorded here
    -> finalists proved on ragged sizes and re-timed

Compiling goes on in a thread and in processes of its own, measuring in one process for each device; this module
hands out and records. A configuration that cannot be compiled, launched or trusted, or that takes its process
down, is a recorded trial with its reason, and the sweep goes on.
"""

import math
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autotune.compile import Cache, Pool, idle_policies
from autotune.declaration import (
    Configuration,
    Family,
    Inputs,
    Space,
    Unlisted,
    Workload,
    listed,
    shared_arrays,
    single_presets,
)
from autotune.device import LaunchError
from autotune.files import data_root
from autotune.measure import PROOF_VERSION, Protocol
from autotune.record import Provenance, Store, Study, StudyStore, Trial, header, time_ms
from autotune.search import Search
from autotune.sweep.crew import DeviceLost
from autotune.sweep.finalists import Finalists, fingerprint
from autotune.sweep.messages import Describe, Reference, Setting
from autotune.sweep.pipeline import Asking, Compiling
from autotune.sweep.proof import Proving
from autotune.sweep.trials import Phases, Trying
from autotune.sweep.worker import Made, Worker

__all__ = ["Interrupted", "Sweep"]


_ASKED = 4  # configurations asked of a search at a time, for each worker

_TRIED_AGAIN = ("compile_failed", "launch_failed")

_VERDICTS = ("measured", "wrong_result")  # what verification said


@dataclass(kw_only=True)
class Sweep:
    """One family on one workload and one device model, on ``workers``, which were started. ``searched`` makes a search
    over ``configurations`` from a function that says why one cannot run; else all are tried. Where they are too many to
    list they are None, and ``space`` says which they are. ``watch`` is called after each trial with (trial, trials
    done, trials in all or 0), ``compiled`` is ``Compiling.watch``, ``note`` is called with what a person should know at
    once. ``run`` returns the study as recorded; KeyboardInterrupt leaves a usable record. Raises AutotuneError.

    The control is tried beside a selection that leaves it out, so that there is something to compare with. What an
    older verification let through is verified again, and what it refused is tried again; with ``again`` everything is,
    with ``retime`` the finalists. ``budget`` says of the search what a reader of the study should know; ``root`` is the
    data folder.
    """

    family: Family
    workload: Workload
    inputs: Inputs
    configurations: Sequence[Configuration] | None
    space: Space | None = None
    searched: Callable[[Callable[[Configuration], str]], Search] | None = None
    store: Store
    cache: Cache
    protocol: Protocol
    workers: Sequence[Worker]
    processes: int = 1
    compilers: Pool | None = None
    again: bool = False
    retime: bool = False
    budget: Mapping[str, Any] = field(default_factory=lambda: {"by": "exhaustive"})
    root: Path = field(default_factory=data_root)
    watch: Callable[[Trial, int, int], None] = lambda trial, done, total: None
    compiled: Callable[[int, int], None] = lambda done, total: None
    note: Callable[[str], None] = lambda text: None
    phases: Phases = field(default_factory=Phases)
    best_ms: float = math.inf
    before: int = 0  # trials that were recorded before and are not tried again
    began: float = math.inf  # time.perf_counter() when the first configuration could be tried
    _compiling: Compiling = field(init=False)
    _setting: Setting = field(init=False)
    _beside: tuple[Configuration, ...] = field(init=False)  # tried with the selection, and no part of it

    @property
    def busy_share(self) -> float:
        """How much of the measuring processes' time the device ran kernels of the plans, so far."""
        wall_s = time.perf_counter() - self.began
        return self.phases.seconds.get("kernels", 0.0) / wall_s if wall_s > 0 else 0.0

    def run(self) -> Study:
        worker = self.workers[0]
        self._compiling = Compiling(
            self.family, self.inputs, worker, self.cache, compilers=self.compilers, watch=self.compiled
        )
        study = header(
            self.family, self.workload, self.inputs, worker.device, worker.toolchain.identity, self.protocol
        )
        wanted = self._wanted()
        control = self.family.space.control
        self._beside = () if control in wanted else (control,)
        study = replace(study, about=replace(study.about, beside=tuple(c.id for c in self._beside)))
        recorded = self.store.open(study, {p.name: p for p in self.family.space.policies})
        if recorded.why_new:
            self.note(recorded.why_new)
        known = recorded.known()
        known_before = frozenset(known)
        again = [c for c, t in known.items() if (c in wanted or c in self._beside) and self._is_due(t)]
        left = set(again)
        todo = [c for c in self._ordered(again) if c not in known or c in left]
        is_open = self.configurations is None  # nobody knows whether something is left to do
        tried_before = len(known)
        self.before = sum(c not in left for c in known if c in wanted or c in self._beside)
        self.best_ms = math.inf if self.again else min((time_ms(t) for t in known.values()), default=math.inf)
        began = time.perf_counter()
        interrupted, about = False, study.about
        try:
            if todo or is_open or self.retime or self._are_finalists_due(recorded, known):
                with shared_arrays(self.inputs.arrays) as arrays:
                    about = replace(about, reference_ms=self._set_out(arrays))
                    about = about.told(self._described())
                    self._try(todo, recorded, known)
                    about = about.told(self._finalists(recorded, known))
                    about = about.told(self._described())
        except KeyboardInterrupt:
            interrupted = True
            for each in self.workers:  # what it has in hand may never end
                each.close(at_once=True)
        except DeviceLost as problem:
            about = replace(about, lost=str(problem))
        visited = len(known) - tried_before if self.searched else len(todo)
        before = recorded.about()
        earlier = before.beside
        if earlier is None:
            earlier = tuple(c.id for c in self._beside if c not in known_before)
        beside = tuple(c.id for c in self._beside if c.id in earlier)  # of no selection that the record holds
        about = replace(about, searched=self._searched(known), beside=beside)
        about = self._about(about, before, time.perf_counter() - began, visited)
        about = replace(about, interrupted=interrupted)
        recorded.annotate(about)
        study = replace(study, about=about, trials=tuple(self._selected(known).values()))
        if interrupted:
            raise Interrupted(study)
        return study

    def _is_due(self, trial: Trial) -> bool:
        """Whether what is recorded is tried again. A failed compile or launch may have been the machine's fault (no
        memory, full disk), and is cheap to repeat; a verdict of an older verification is none of today's."""
        if self.again or trial.state in _TRIED_AGAIN:
            return True
        return trial.state in _VERDICTS and trial.proof < PROOF_VERSION

    def _selected(self, known: Mapping[Configuration, Trial]) -> dict[Configuration, Trial]:
        """What was asked for, and the control."""
        wanted = self._wanted()
        return {c: t for c, t in known.items() if c in wanted or c in self._beside}

    def _searched(self, known: Mapping[Configuration, Trial]) -> dict[str, Any]:
        """How much of the space was tried: of the selection, and ``space`` for all of it (None where it is too large
        to list)."""
        wanted = self._wanted()
        of = None if self.configurations is None else len(self.configurations)
        whole = listed(self.family.space)
        space = None if whole is None else len(whole)
        return {"tried": sum(c in wanted for c in known), "of": of, "space": space, **self.budget}

    # -- before the first configuration -------------------------------------------------------------------

    def _set_out(self, arrays: Path) -> float:
        """Tell every worker of the study: the milliseconds the reference took."""
        mark = time.perf_counter()
        setting = Setting.of(self.family, self.inputs, arrays, workload=self.workload, protocol=self.protocol)
        self._setting = setting
        first = next((worker for worker in self.workers if not worker.lost), None)
        if first is None:  # an earlier workload took them all
            raise DeviceLost("; ".join(worker.lost for worker in self.workers))
        reference_ms = first.reference(Reference(setting, self.cache.root), self.family, self.inputs)
        for worker in self.workers:
            worker.study(setting, self.family, self.inputs)
        self.phases.add("reference", time.perf_counter() - mark)
        return reference_ms

    def _wanted(self) -> Container[Configuration]:
        if self.configurations is None:
            return Unlisted(self.space or self.family.space)
        return set(self.configurations)

    def _ordered(self, again: list[Configuration]) -> list[Configuration]:
        """Presets first, then a thin spread over the space, then the rest: a good time to beat is found early, and
        what follows can be abandoned early. ``again`` where they cannot be listed."""
        if self.configurations is None:
            return list(dict.fromkeys([*self._beside, *again]))
        wanted = dict.fromkeys(self.configurations)
        first = [c for c in single_presets(self.family.space).values() if c in wanted]
        thin = self.configurations[:: max(1, len(self.configurations) // 24)]
        return list(dict.fromkeys([*self._beside, *first, *thin, *self.configurations]))

    # -- one configuration after another ------------------------------------------------------------------

    def _try(
        self, todo: Sequence[Configuration], recorded: StudyStore, known: dict[Configuration, Trial]
    ) -> None:
        """Every configuration of ``todo``: here, or in another sweep that shares the record."""
        total = len(self.configurations or ())
        done = 0 if self.searched else total - sum(c not in self._beside for c in todo)

        def watch(trial: Trial) -> None:
            nonlocal done
            done += trial.configuration not in self._beside
            self.best_ms = trying.best_ms
            self.watch(trial, done, total)

        again = frozenset(c for c in todo if c in known)
        timed = {} if self.again else {c: known[c] for c in again if known[c].measurement}
        trying = Trying(
            workers=self.workers, family=self.family, workload=self.workload, inputs=self.inputs, store=recorded,
            known=known, again=again, timed=timed, phases=self.phases, watch=watch, best_ms=self.best_ms,
        )  # fmt: skip
        self.began = time.perf_counter()
        if self.searched:
            first = [
                c for c in todo if (c in self._beside or c in timed) and not self._compiling.exclusion(c)
            ]
            self._try_asked(trying, self.searched(self._compiling.exclusion), known, first)
            return
        reasons = {c: self._compiling.exclusion(c) for c in todo}
        runnable = [c for c, reason in reasons.items() if not reason]
        excluded = {c: reason for c, reason in reasons.items() if reason}
        trying.run(excluded, lambda stopped: self._compiling.made(runnable, stopped, self.processes))

    def _try_asked(
        self,
        trying: Trying,
        search: Search,
        known: Mapping[Configuration, Trial],
        first: Sequence[Configuration],
    ) -> None:
        """What ``search`` asks for, a few at a time: what comes of them decides what is asked for next. ``first`` are
        tried before, and are none of its trials."""
        for configuration, trial in known.items():
            if configuration in trying.timed or not self._is_due(trial):
                search.tell(configuration, time_ms(trial) if trial.measurement else None)
        size = _ASKED * len(self.workers)
        is_cpu = self.workers[0].device.kind == "cpu"  # where nothing is compiled while something is measured
        asking = Asking(search, size, size if is_cpu else 2 * size)
        told, aside = trying.watch, frozenset(first)

        def watch(trial: Trial) -> None:
            if trial.configuration not in aside:
                asking.tell(trial)
            told(trial)

        def chunks(stopped: Callable[[], bool]) -> Iterator[list[Made]]:
            if first:
                yield from self._compiling.made(first, stopped, 1)
            for asked in asking.batches(stopped):
                # In this thread: processes are not worth their start for so few.
                yield from self._compiling.made(asked, stopped, 1)

        trying.watch, trying.set_aside = watch, asking.set_aside
        trying.run(search.excluded, chunks)

    # -- the end: finalists, and what the record says of itself --------------------------------------------

    def _are_finalists_due(self, recorded: StudyStore, known: Mapping[Configuration, Trial]) -> bool:
        """Whether the record holds measured trials that finalists were not chosen from: a sweep that was killed between
        the last trial and the last word leaves it so."""
        done = fingerprint(self._selected(known).values())
        return bool(done) and recorded.about().finalists != done

    def _finalists(self, recorded: StudyStore, known: dict[Configuration, Trial]) -> dict[str, Any]:
        """Prove and re-time the best: what the study's description says of that."""
        mark = time.perf_counter()

        def record(trial: Trial) -> None:
            recorded.record(trial)
            known[trial.configuration] = trial

        worker = next(worker for worker in self.workers if not worker.lost)
        variant = self._compiling.variant
        proving = Proving(worker, self.cache, self._setting, self.root, self.inputs, variant)
        finalists = Finalists(worker, self.cache, self.protocol, proving)
        about: dict[str, Any] = {}
        try:
            finalists.run(
                self._selected(known), self.family.space.control, self.family.accuracy, variant, record,
                frozenset(self._beside),
            )  # fmt: skip
            recorded.refresh()
            about["finalists"] = fingerprint(self._selected(recorded.known()).values())
        except LaunchError as problem:
            about["warning"] = f"the finalists could not be timed again: {problem}"
        finally:
            self.phases.add("finalists", time.perf_counter() - mark)
        if finalists.ratio:
            about["retime_ratio"] = finalists.ratio
        if proving.sizes is not None:
            told = [dict(size.told) for size in proving.sizes.sizes]
            about["proof"] = {"version": PROOF_VERSION, "sizes": told, "why_not": proving.sizes.why_not}
        return about

    def _described(self) -> dict[str, Any]:
        """What the first device says of itself now; nothing after a lost context."""
        with suppress(LaunchError):
            described: dict[str, Any] = self.workers[0].ask(Describe(), 1)
            return described
        return {}

    def _about(self, about: Provenance, before: Provenance, wall_s: float, visited: int) -> Provenance:
        """The study's description: this run's, with the seconds of the runs before it added up."""
        seconds = dict(before.phases_s)
        for phase, spent in {**self.phases.seconds, "total": wall_s}.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
        running = seconds.get("verify", 0.0) + seconds.get("measure", 0.0)
        about = replace(before, interrupted=False, lost="", warning="").told(about.to_dict())
        idle = before.idle_policies
        same = self._compiling.same
        if any(same.values()):  # a policy that changed nothing in any run
            now = idle_policies(self.family.space.policies, same)
            about = replace(about, idle_policies=tuple(p for p in now if idle is None or p in idle))
        return replace(
            about,
            phases_s=seconds,
            busy_share=seconds.get("kernels", 0.0) / running if running else 0.0,
            visited=visited + before.visited,
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; ``study`` is what was recorded."""

    def __init__(self, study: Study) -> None:
        super().__init__("interrupted")
        self.study = study
