"""What a sweep leaves behind, as values: the studies that reports and policy files are made from.

A study is one family on one workload and one device, with everything that must match for its trials to be
comparable. Reports read studies and nothing else: no device, no kernel source.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autotune.declaration import Configuration
from autotune.record.decision import Decision, add_control, decide
from autotune.record.provenance import Provenance
from autotune.record.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Study:
    """``identity`` is a hash over kernel source with headers, space, workload content, compiler and device.

    ``parts`` are what ``identity`` is made of, by the words a reader knows them by: digests, or short texts that may be
    shown (compiler, device, cache).
    ``presets`` maps the names of one-configuration presets to configurations, in declared order.
    """

    family: str
    workload: str
    device: str
    identity: str
    control: Configuration
    presets: Mapping[str, Configuration] = field(default_factory=dict)
    about: Provenance = field(default_factory=Provenance)
    parts: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Family, workload and device: what a study is found by."""
        return self.family, self.workload, self.device

    def roles(
        self, decision: Decision | None = None, common: Configuration | None = None
    ) -> dict[str, Configuration]:
        """The configurations that have a name: winner and runner-up of ``decision``, the control, the presets in
        declared order, and ``minimax``, the choice for all workloads (``common``), where there is one."""
        roles: dict[str, Configuration] = {}
        if decision:
            roles["winner"] = decision.winner.configuration
            if decision.runner_up:
                roles["runner-up"] = decision.runner_up.configuration
        roles["control"] = self.control
        roles |= {name: one for name, one in self.presets.items() if name not in roles}
        return roles if common is None else roles | {"minimax": common}

    @property
    def decision(self) -> Decision | None:
        return self.decide()

    def decide(self, objective: str = "kernel") -> Decision | None:
        """The decision by that objective over the selection, with its margin over the
        control; None where nothing of the selection was measured."""
        found = decide(self.selection, self.control, objective)
        return add_control(found, self.trials, self.control) if found else None

    @property
    def selection(self) -> tuple[Trial, ...]:
        """The trials that may win: those in the selection."""
        return tuple(t for t in self.trials if t.configuration.id not in self._ids_beside)

    @property
    def beside(self) -> tuple[Trial, ...]:
        """The other trials: what there is to compare with."""
        return tuple(t for t in self.trials if t.configuration.id in self._ids_beside)

    @cached_property
    def _ids_beside(self) -> frozenset[str]:
        return frozenset(self.about.beside or ())

    @property
    def times(self) -> dict[Configuration, float]:
        """What was measured, in milliseconds."""
        return {t.configuration: t.time_ms for t in self.trials if t.measurement}

    @property
    def comparable(self) -> dict[Configuration, float]:
        """What was tried, in milliseconds; infinite where it failed."""
        return {t.configuration: t.time_ms for t in self.trials if t.state != "excluded"}

    def states(self) -> dict[str, int]:
        """How many trials of the selection ended in each state."""
        return dict(Counter(trial.state for trial in self.selection))


def find_newest(studies: Iterable[Study]) -> Study:
    """That with the latest date; one that tells none is the oldest. Raises ValueError for no studies."""
    return max(studies, key=lambda study: study.about.date)


def find_newest_of_each(studies: Iterable[Study]) -> list[Study]:
    """The newest study of each family, workload and device."""
    by_date = sorted(studies, key=lambda study: study.about.date)
    return list({study.key: study for study in by_date}.values())


def merge_latest(recorded: Iterable[Study], swept: Iterable[Study]) -> list[Study]:
    """The newest study of each family, workload and device; ``swept`` ones stand for themselves."""
    newest = {study.key: study for study in find_newest_of_each(recorded)}
    for study in swept:
        if study.key in newest and newest[study.key].identity != study.identity:
            newest[study.key] = study
    return list(newest.values())


def times_of(studies: Iterable[Study]) -> dict[str, dict[Configuration, float]]:
    """Workload -> configuration -> milliseconds; a second study of a workload has some of its identity in the name."""
    times: dict[str, dict[Configuration, float]] = {}
    for study in studies:
        name = study.workload if study.workload not in times else f"{study.workload} ({study.identity[:8]})"
        times[name] = study.times
    return {workload: row for workload, row in times.items() if row}


_SHOWN = ("device", "compiler", "cache", "verification")


def explain_new(study: Study, recorded: Sequence[Study]) -> str:
    """Why ``study`` cannot go on from one of those recorded before: what differs from the most similar of the same
    family and workload, and since when; empty where there is none."""
    others = [s for s in recorded if (s.family, s.workload) == (study.family, study.workload)]
    if not others:
        return ""

    def list_changed(other: Study) -> list[str]:
        names = dict.fromkeys([*study.parts, *other.parts])
        return [name for name in names if study.parts.get(name) != other.parts.get(name)]

    own = [s for s in others if s.device == study.device] or others
    latest_first = sorted(own, key=lambda other: other.about.date, reverse=True)
    nearest = min(latest_first, key=lambda other: len(list_changed(other)))
    said = []
    for name in list_changed(nearest):
        before, now = nearest.parts.get(name), study.parts.get(name)
        if before is None or now is None:
            said.append(f"{name} {'added' if before is None else 'removed'}")
        else:
            said.append(f"{name} is {now}, was {before}" if name in _SHOWN else f"{name} changed")
    return f"a new study: {'; '.join(said)} since {nearest.about.date[:10]}"


def describe_study(study: Study) -> dict[str, Any]:
    """Which study it is, and which configurations have names in it: in a store, and under ``autotune`` in a file of
    another tuner's form, which has no place for it."""
    return {
        "family": study.family, "workload": study.workload, "device": study.device, "identity": study.identity,
        "control": dict(study.control), "presets": {name: dict(one) for name, one in study.presets.items()},
    }  # fmt: skip
