"""What a sweep leaves behind, as values: the studies that reports and policy files are made from.

A study is one family on one workload and one device, with everything that must match for its trials to be
comparable. Reports read studies and nothing else: no device, no kernel source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autotune.declaration import Configuration
from autotune.record.decision import Decision, compared, decide
from autotune.record.trial import Trial

__all__ = ["Study", "why_new"]


@dataclass(frozen=True, kw_only=True)
class Study:
    """``identity`` is a hash over kernel source with headers, space, workload content, compiler and device.

    ``about`` holds what a reader needs to trust the figures: ``title`` and ``device_name``, ``device_kind``,
    ``arch``, ``driver``, ``versions``, ``protocol``, ``date``, ``source_digest``, ``space_digest``,
    ``workload_digest``, ``features`` (extent -> size), ``options``, ``operations`` and ``operation_unit``,
    ``bytes``, ``reference_ms``, ``floor_ms`` (empty-kernel time), ``clock_mhz``, ``phases_s`` (wall seconds by
    phase), ``busy_share``, ``policies`` (name -> {values, default, layout}), ``searched`` (tried, of, space, by, seed,
    budget), ``beside`` (what was tried with the selection and is part of none that the record
    holds), ``finalists`` (see ``finalists.fingerprint``), ``retime_ratio`` (median over the finalists of their second
    time over their first), ``proof`` (version, ragged sizes, why there are none).
    ``parts`` are what ``identity`` is made of, by the words a reader knows them by: digests, or short texts that may be
    shown (compiler, device, cache). Studies from before this was kept have none.
    ``presets`` maps the names of one-configuration presets to configurations, in declared order.
    """

    family: str
    workload: str
    device: str
    identity: str
    control: Configuration
    presets: Mapping[str, Configuration] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()

    @property
    def decision(self) -> Decision | None:
        return self.decided()

    def decided(self, objective: str = "kernel") -> Decision | None:
        """The decision by that objective (see ``decision.cost_ms``) over the selection, with its margin over the
        control; None where nothing of the selection was measured."""
        found = decide(self.selection, self.control, objective)
        return compared(found, self.trials, self.control) if found else None

    @property
    def selection(self) -> tuple[Trial, ...]:
        """The trials that may win: all but what was tried beside the selection."""
        return tuple(t for t in self.trials if t.configuration.id not in self._ids_beside)

    @property
    def beside(self) -> tuple[Trial, ...]:
        """The other trials: what there is to compare with."""
        return tuple(t for t in self.trials if t.configuration.id in self._ids_beside)

    @cached_property
    def _ids_beside(self) -> frozenset[str]:
        return frozenset(self.about.get("beside", ()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict and the configurations that have a name."""
        from autotune import study_html

        return study_html(self)

    def states(self) -> dict[str, int]:
        """How many trials of the selection ended in each state."""
        counts: dict[str, int] = {}
        for trial in self.selection:
            counts[trial.state] = counts.get(trial.state, 0) + 1
        return counts


_SHOWN = ("device", "compiler", "cache")


def why_new(study: Study, recorded: Sequence[Study]) -> str:
    """Why ``study`` cannot go on from one of those recorded before: what differs from the most similar of the same
    family and workload, and since when; empty where there is none."""
    others = [s for s in recorded if (s.family, s.workload) == (study.family, study.workload)]
    if not others:
        return ""

    def date(other: Study) -> str:
        return str(other.about.get("date", ""))

    def changed(other: Study) -> list[str]:
        names = dict.fromkeys([*study.parts, *other.parts])
        return [name for name in names if study.parts.get(name) != other.parts.get(name)]

    own = [s for s in others if s.device == study.device] or others
    nearest = min(sorted(own, key=date, reverse=True), key=lambda other: len(changed(other)))
    if not nearest.parts:
        return f"a new study: that of {date(nearest)[:10]} does not say what its identity was made of"
    said = []
    for name in changed(nearest):
        before, now = nearest.parts.get(name), study.parts.get(name)
        if before is None or now is None:
            said.append(f"{name} {'added' if before is None else 'removed'}")
        else:
            said.append(f"{name} is {now}, was {before}" if name in _SHOWN else f"{name} changed")
    return f"a new study: {'; '.join(said)} since {date(nearest)[:10]}"
