"""Configurations that make the device do the very same: one is measured, the others are recorded with its figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autotune.jobs import Job
from autotune.space import Configuration
from autotune.trial import Trial

__all__ = ["Twins", "first_of", "own_notes"]

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
