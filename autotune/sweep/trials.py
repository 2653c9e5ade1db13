"""What becomes of the configurations of one sweep: each is claimed, tried by a worker, and recorded once."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.compile import CompileFailure
from autotune.declaration import Configuration, Family, Inputs, Workload
from autotune.record import State, StudyStore, Trial, time_ms
from autotune.sweep.crew import Crew
from autotune.sweep.messages import Died, Job, Tried, static_profiles, trial_of
from autotune.sweep.pipeline import Feed
from autotune.sweep.worker import Made, Worker

__all__ = ["Phases", "Trying", "Twins", "first_of", "own_notes"]


_NOTE = "same code as "


@dataclass
class Twins:
    """By ``Job.same``, the first configuration that was sent, and those that wait for what comes of it."""

    _firsts: dict[str, Configuration] = field(default_factory=dict)
    _waiting: dict[Configuration, list[Job]] = field(default_factory=dict)

    def first(self, job: Job) -> Configuration | None:
        """The configuration whose trial will do for ``job``; None when ``job`` itself is the first of its kind."""
        if not job.same:
            return None
        first = self._firsts.setdefault(job.same, job.configuration)
        return None if first == job.configuration else first

    def wait(self, first: Configuration, job: Job) -> None:
        self._waiting.setdefault(first, []).append(job)

    def released(self, trial: Trial) -> list[Trial]:
        """The trials of those that waited for this one."""
        return [twin(trial, job) for job in self._waiting.pop(trial.configuration, ())]


def twin(trial: Trial, job: Job) -> Trial:
    """``trial`` as that of another configuration with the same code, data and launches."""
    return replace(
        trial,
        configuration=job.configuration,
        phases_ms={"compile": job.compiled.seconds * 1e3},
        notes=(*trial.notes, f"{_NOTE}{trial.configuration.id}"),
    )


def own_notes(trial: Trial) -> tuple[str, ...]:
    """Its notes but for the one that names another's figures."""
    return tuple(note for note in trial.notes if not note.startswith(_NOTE))


def first_of(trials: Iterable[Trial]) -> Mapping[Configuration, Configuration]:
    """For each trial that was recorded with another's figures, the configuration that was measured."""
    known = list(trials)
    by_id = {trial.configuration.id: trial.configuration for trial in known}
    named = (
        (trial.configuration, note.removeprefix(_NOTE))
        for trial in known
        for note in trial.notes
        if note.startswith(_NOTE)
    )
    return {configuration: by_id[first] for configuration, first in named if first in by_id}


Chunks = Callable[[Callable[[], bool]], Iterator[list[Made]]]  # given whether to stop

_OTHERS_S = 0.3  # between looks at what other sweeps have recorded


@dataclass
class Phases:
    """Wall seconds of a sweep by what they were spent on. Those of the measuring processes (``compile``: waiting for
    it; ``place``, ``verify``, ``measure``) are an average over them, and ``kernels`` is the device time of the
    plans run in ``verify`` and ``measure``; the rest of those is comparing, flushing caches and queueing.
    ``faults`` is what was
    spent on configurations that took their process down; ``record`` goes on beside them."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


@dataclass(kw_only=True)
class Trying:
    """``known`` is what the record holds, and is kept up to date; ``again`` are those in it that are to be tried
    nevertheless, ``timed`` those of them whose figures stand and are only to be verified again. ``watch`` is called
    with each trial that is done, here or in another sweep on the same record, ``set_aside`` with each configuration
    that another one is trying just now."""

    workers: Sequence[Worker]
    family: Family
    workload: Workload
    inputs: Inputs
    store: StudyStore
    known: dict[Configuration, Trial]
    again: frozenset[Configuration]
    timed: Mapping[Configuration, Trial]
    phases: Phases
    watch: Callable[[Trial], None]
    set_aside: Callable[[Configuration], None] = lambda configuration: None
    best_ms: float = math.inf
    _done: dict[Configuration, Trial] = field(default_factory=dict)
    _claimed: set[Configuration] = field(default_factory=set)
    _elsewhere: dict[Configuration, Job | Trial] = field(default_factory=dict)
    _twins: Twins = field(default_factory=Twins)
    _ready: list[Trial] = field(default_factory=list)

    def run(self, excluded: Mapping[Configuration, str], chunks: Chunks) -> None:
        """Try what ``chunks`` (walked through in a thread) gives; ``excluded`` are trials by their reason alone. Ends
        when everything is recorded. Raises DeviceLost, and StoreError when the record cannot be written."""
        try:
            self._pass(chunks)
            for configuration, reason in excluded.items():
                self._settled(self._trial(configuration, "excluded", reason))
            while self._elsewhere:
                mine = self._shared_out()
                self._pass(lambda _stopped, jobs=mine: iter([jobs]))  # type: ignore[misc]
                if not mine:
                    time.sleep(_OTHERS_S)
        finally:
            for configuration in self._claimed:
                self.store.release(configuration)

    def _pass(self, chunks: Chunks) -> None:
        feed = Feed(chunks)
        try:
            for answer in Crew(self.workers, feed, self._admitted).answers():
                self._take(answer)
                self._record_ready()
            self._record_ready()
        finally:
            feed.stop()

    def _admitted(self, job: Job) -> Job | None:
        """The job as it is to be sent now; None when it is not to be."""
        if not self._is_mine(job.configuration):
            self._leave(job.configuration, job)
            return None
        first = self._twins.first(job)
        if first is None:
            before = self.timed.get(job.configuration)
            return replace(job, best_ms=self.best_ms, timed=before.measurement if before else None)
        if first in self._done:
            self._ready.append(twin(self._done[first], job))
        else:
            self._twins.wait(first, job)
        return None

    def _is_mine(self, configuration: Configuration) -> bool:
        if configuration not in self._claimed:
            if not self.store.claim(configuration, again=configuration in self.again):
                return False
            self._claimed.add(configuration)
        return True

    def _shared_out(self) -> list[Made]:
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

    # -- trials ---------------------------------------------------------------------------------------------

    def _take(self, answer: Tried | Died | tuple[Configuration, CompileFailure]) -> None:
        if isinstance(answer, Tried):
            for phase, seconds in answer.seconds.items():
                self.phases.add("compile" if phase == "wait" else phase, seconds / len(self.workers))
            trial = answer.trial
            if trial.measurement and (before := self.timed.get(trial.configuration)):
                trial = replace(trial, notes=own_notes(before))
            self._record(trial)
        elif isinstance(answer, Died):
            device = self.workers[0].device
            static = static_profiles(self.family, self.inputs, device, answer.job)
            self.phases.add("faults", answer.seconds / len(self.workers))
            spent = {"fault": answer.seconds * 1e3}
            self._record(
                trial_of(self.workload, device, answer.job, answer.state, answer.reason, static, spent)
            )
        else:
            configuration, failure = answer
            self._settled(self._trial(configuration, "compile_failed", failure.message))

    def _settled(self, trial: Trial) -> None:
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
        trial = self.store.known().get(configuration)
        return trial if trial is not self.known.get(configuration) else None

    def _record_ready(self) -> None:
        ready, self._ready = self._ready, []
        for trial in ready:
            self._record(trial)

    def _record(self, trial: Trial) -> None:
        mark = time.perf_counter()
        self.store.record(trial)
        self._claimed.discard(trial.configuration)
        self.phases.add("record", time.perf_counter() - mark)
        self._ready += self._twins.released(trial)
        self._know(trial)

    def _know(self, trial: Trial) -> None:
        self.known[trial.configuration] = self._done[trial.configuration] = trial
        if trial.measurement:
            self.best_ms = min(self.best_ms, time_ms(trial))
        self.watch(trial)

    def _trial(self, configuration: Configuration, state: State, reason: str) -> Trial:
        return Trial(
            family=self.family.name,
            workload=self.workload.name,
            device=self.workers[0].device.slug,
            configuration=configuration,
            state=state,
            reason=reason,
        )
