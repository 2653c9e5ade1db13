"""What becomes of the configurations of one sweep: each is claimed, tried by a worker, and recorded once."""

import math
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.declaration import Configuration, Family, Inputs, Workload
from autotune.engine.messages import Died, Job, Made, Tried, static_profiles, trial_of
from autotune.engine.process_worker import ProcessWorker
from autotune.engine.runner import Chunks, Runner, TrialEnd
from autotune.record import State, StudyStore, Trial

_OTHERS_S = 0.3  # between looks at what other sweeps have recorded


def _copy_trial(trial: Trial, job: Job) -> Trial:
    """``trial`` as that of another configuration with the same code, data and launches."""
    first = trial.same_as or trial.configuration
    same_as = None if first == job.configuration else first
    return replace(
        trial,
        configuration=job.configuration,
        phases_ms=job.phases_ms({}),
        same_as=same_as,
        begun_s=0.0,
        worker="",
    )


def first_of(trials: Iterable[Trial]) -> Mapping[Configuration, Configuration]:
    """For each of ``trials`` that has another's figures, the configuration among them that was measured."""
    known = {trial.configuration: trial.same_as for trial in trials}
    return {one: first for one, first in known.items() if first is not None and first in known}


@dataclass(kw_only=True)
class Trials:
    """``known`` is what the record holds, and is kept up to date; ``again`` are those in it that are to be tried
    nevertheless. ``watch`` is called with each trial that is done, here or in another sweep on the same record,
    ``set_aside`` with each configuration that another one is trying just now. ``phases`` counts the seconds (see
    Sweep)."""

    workers: Sequence[ProcessWorker]
    family: Family
    workload: Workload
    inputs: Inputs
    store: StudyStore
    known: dict[Configuration, Trial]
    again: Container[Configuration]
    phases: dict[str, float]
    watch: Callable[[Trial], None]
    set_aside: Callable[[Configuration], None] = lambda configuration: None
    best_ms: float = math.inf
    claimed: set[Configuration] = field(default_factory=set)
    _done: dict[Configuration, Trial] = field(default_factory=dict)
    _elsewhere: dict[Configuration, Job | Trial] = field(default_factory=dict)
    _firsts: dict[str, Configuration] = field(default_factory=dict)  # by Job.same, the first that was sent
    _waiting: dict[Configuration, list[Job]] = field(default_factory=dict)  # for the trial of such a first
    _released: list[Trial] = field(default_factory=list)

    def run(self, excluded: Mapping[Configuration, str], chunks: Chunks) -> None:
        """Try what ``chunks`` (walked through in a thread) gives; ``excluded`` are trials by their reason alone. Ends
        when everything is recorded. Raises DeviceLost, and StoreError when the record cannot be written."""
        try:
            self._pass(chunks)
            for configuration, reason in excluded.items():
                self._settle(self._trial(configuration, "excluded", reason))
            while self._elsewhere:
                self._try_left_over(self._take_released())
        finally:
            for configuration in self.claimed:
                self.store.release(configuration)

    def _pass(self, chunks: Chunks) -> None:
        with closing(Runner(self.workers, self._admit).answers(chunks)) as answers:
            for answer in answers:
                self._take(answer)
                self._record_released()
        self._record_released()

    def _try_left_over(self, jobs: list[Made]) -> None:
        self._pass(lambda _stopped: iter([jobs]))
        if not jobs:
            time.sleep(_OTHERS_S)

    def _admit(self, job: Job) -> Job | None:
        """The job as it is to be sent now; None when it is not to be."""
        if not self._is_mine(job.configuration):
            self._leave(job.configuration, job)
            return None
        first = self._firsts.setdefault(job.same, job.configuration) if job.same else job.configuration
        if first == job.configuration:
            return replace(job, best_ms=self.best_ms)
        if first in self._done:
            self._released.append(_copy_trial(self._done[first], job))
        else:
            self._waiting.setdefault(first, []).append(job)
        return None

    def _is_mine(self, configuration: Configuration) -> bool:
        if configuration not in self.claimed:
            if not self.store.claim(configuration, again=configuration in self.again):
                return False
            self.claimed.add(configuration)
        return True

    def _take_released(self) -> list[Made]:
        """Of what other sweeps had: the jobs that none of them has any more. What they recorded is known now."""
        self.store.refresh()
        mine: list[Made] = []
        for configuration, held in list(self._elsewhere.items()):
            if trial := self._news(configuration):
                del self._elsewhere[configuration]
                self._know(trial)
            elif self._is_mine(configuration):
                del self._elsewhere[configuration]
                if isinstance(held, Trial):
                    self._record(held)
                else:
                    mine.append(held)
        return mine

    def _take(self, answer: TrialEnd) -> None:
        if isinstance(answer, Tried):
            for phase, seconds in answer.seconds.items():
                self.phases["compile" if phase == "wait" else phase] += seconds / len(self.workers)
            self._record(answer.trial)
        elif isinstance(answer, Died):
            device = self.workers[0].device
            static = static_profiles(self.family, self.inputs, device, answer.job)
            self.phases["faults"] += answer.seconds / len(self.workers)
            spent = answer.job.phases_ms({"fault": answer.seconds})
            what = answer.job.configuration, answer.state, answer.reason
            self._record(self._trial(*what, profiles=static, phases_ms=spent))
        else:
            configuration, failure = answer
            self._settle(self._trial(configuration, "compile_failed", failure.message))

    def _settle(self, trial: Trial) -> None:
        """Record a trial that no worker had to make, unless another sweep does."""
        if self._is_mine(trial.configuration):
            self._record(trial)
        else:
            self._leave(trial.configuration, trial)

    def _leave(self, configuration: Configuration, held: Job | Trial) -> None:
        """Another sweep has recorded it, or is trying it."""
        if recorded := self._news(configuration):
            self._know(recorded)
        else:
            self._elsewhere[configuration] = held
            self.set_aside(configuration)

    def _news(self, configuration: Configuration) -> Trial | None:
        """What another sweep has recorded of it since this one began."""
        trial = self.store.get_known().get(configuration)
        return trial if trial is not self.known.get(configuration) else None

    def _record_released(self) -> None:
        released, self._released = self._released, []
        for trial in released:
            self._record(trial)

    def _record(self, trial: Trial) -> None:
        mark = time.perf_counter()
        is_recorded = self.store.record(trial)
        self.claimed.discard(trial.configuration)
        self.phases["record"] += time.perf_counter() - mark
        self._released += [_copy_trial(trial, job) for job in self._waiting.pop(trial.configuration, ())]
        if is_recorded:
            self._know(trial)
        else:  # this process stood still so long that another took it over
            self._leave(trial.configuration, trial)

    def _know(self, trial: Trial) -> None:
        self.known[trial.configuration] = self._done[trial.configuration] = trial
        if trial.measurement:
            self.best_ms = min(self.best_ms, trial.time_ms)
        self.watch(trial)

    def _trial(self, configuration: Configuration, state: State, reason: str, **more: Any) -> Trial:
        return trial_of(self.workload, self.workers[0].device, configuration, state, reason, **more)
