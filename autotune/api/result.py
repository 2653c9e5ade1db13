"""What a sweep from a program found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.declaration import Configuration, Family
from autotune.device import device_names
from autotune.engine import SweepRequest
from autotune.errors import NothingMeasured
from autotune.figures import duration
from autotune.files import policy_folder
from autotune.measure import find_objective
from autotune.policy import PolicyFile, merge_winners, update
from autotune.record import FAILED, Decision, Study, Trial, merge_latest, read_record, remarks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Best:
    """The winner: its ``ms``, how many times of that the control takes (``speedup``, with the 95 % ``interval``; NaN
    where the control was not measured), and the ``tie_set``, whose times noise cannot tell from the best one. Where the
    objective is no time, ``cost`` is what it counts of a call, and all but ``ms`` are of that."""

    configuration: Configuration
    ms: float
    speedup: float
    interval: tuple[float, float]
    tie_set: tuple[Configuration, ...]
    cost: float = 0.0


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found for one family, workload and device; ``autotune.load(study)`` is the kernel with its winner.

    ``record`` is all that was recorded. ``request`` is what was asked for, ``wall_s`` and ``phases`` are the seconds of
    this call alone."""

    family: Family
    record: Study
    request: SweepRequest
    wall_s: float
    phases: Mapping[str, float]

    @property
    def workload(self) -> str:
        """Its name; for arrays that were given, one that follows from what is in them."""
        return self.record.workload

    @property
    def device(self) -> str:
        """What it was swept on, as ``autotune.load`` takes it: cpu, cuda or cuda:N."""
        name = device_names(self.request.device)[0]
        return str(self.record.about.device_kind) if name == "auto" else name

    @property
    def folder(self) -> Path:
        """Where the family lies."""
        return self.family.folder

    @property
    def out(self) -> Path:
        """Where the record lies, and the workload of arrays that were given."""
        return self.request.folder

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every configuration that was tried, with its time or the reason why it has none; the control too."""
        return self.record.trials

    @property
    def failures(self) -> tuple[Trial, ...]:
        """The trials that failed: that did not compile or launch, were wrong, crashed or took too long."""
        return tuple(trial for trial in self.trials if trial.state in FAILED)

    @cached_property
    def decision(self) -> Decision:
        """Winner, tie set, runner-up and margins. Raises NothingMeasured."""
        found = self.record.decide(self.request.objective)
        if found is None:
            raise NothingMeasured(f"no configuration of {self.family.name} was measured; look at failures")
        return found

    @property
    def best(self) -> Best:
        decision = self.decision
        over, winner = decision.over_control, decision.winner
        cost = winner.cost(decision.objective)
        return Best(
            winner.configuration,
            cost if find_objective(decision.objective).is_time else winner.time_ms,
            over.ratio,
            (over.low, over.high),
            tuple(trial.configuration for trial in decision.tie_set),
            cost,
        )

    @cached_property
    def policy_file(self) -> PolicyFile:
        """What ``save_policy`` writes where there is no policy file yet."""
        return merge_winners(None, [self.record], self.request.objective)

    def to_pandas(self) -> "pd.DataFrame":
        """A row for each trial, with the columns of results.csv."""
        from autotune.record import results_frame

        return results_frame([self.record])

    def report(self, folder: str | Path | None = None) -> Path:
        """``report.html``, with the tables beside it, of the newest study of each workload in the record, in ``folder``
        or beside the record. Raises StoreError."""
        from autotune.report import write_all

        place = Path(folder) if folder else self.out
        known = {self.family.name: self.family}
        return write_all(self._newest, place, known, self.out, [policy_folder()])["report"]

    def save_policy(self, folder: str | Path | None = None) -> Path:
        """Merge the winner, with those of the same device that the record has for other workloads, into the policy file
        below ``folder`` (by default AUTOTUNE_POLICIES, else ./policies), where ``autotune.load`` finds it. Raises
        PolicyFileError, NothingMeasured."""
        assert self.decision
        place = policy_folder(Path(folder) if folder else None)
        return save_winners(place, self._newest, self.record, self.request.objective)

    @property
    def _newest(self) -> list[Study]:
        return merge_latest(read_record(self.request.store or str(self.out)), [self.record])

    def __repr__(self) -> str:
        where = f"{self.family.name} on {self.workload}, {self.record.about.device_name or self.device}"
        decision = self.record.decide(self.request.objective)
        if decision is None:
            return f"<SweepResult {where}: {len(self.trials)} trials, none measured>"
        best, aim = self.best, find_objective(decision.objective)
        told = duration(best.ms) if aim.is_time else f"{aim.text(best.cost)} in {duration(best.ms)}"
        if not math.isnan(best.speedup):
            better = f"{best.speedup:.2f} x {aim.better} than control"
            told += f", {remarks.describe_unbeaten(decision) or better}"
        changes = best.configuration.changes(self.record.control)
        return f"<SweepResult {where}: {len(self.trials)} trials, best {changes}: {told}>"

    def _repr_html_(self) -> str:
        from autotune.report import study_html

        return study_html(self.record)


def save_winners(folder: Path, newest: Sequence[Study], study: Study, objective: str) -> Path:
    """The policy file below ``folder`` with what of ``newest`` won for the family and device of ``study``. Raises
    PolicyFileError."""
    same = [one for one in newest if (one.family, one.device) == (study.family, study.device)]
    return update(folder, [one for one in same if one.decision], objective)
