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
    """The winner of a sweep.

    ``ms`` is its time, ``speedup`` the control's time over it with the 95 % ``interval`` (NaN if the control was not
    measured), ``tie_set`` the configurations that noise does not separate from it. If the objective is not a time,
    ``cost`` is its value for one call, and all but ``ms`` refer to it.
    """

    configuration: Configuration
    ms: float
    speedup: float
    interval: tuple[float, float]
    tie_set: tuple[Configuration, ...]
    cost: float = 0.0


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep of one family on one workload and device.

    ``autotune.load(result)`` opens the kernel with its winner. ``record`` is the recorded study, ``request`` the
    options of the sweep; ``wall_s`` and ``phases`` are the seconds of this call alone. With a budget of 0 there are no
    trials: ``named`` are the five configurations that should be fastest, best first.
    """

    family: Family
    record: Study
    request: SweepRequest
    wall_s: float
    phases: Mapping[str, float]
    named: tuple[Configuration, ...] = ()

    @property
    def workload(self) -> str:
        """Return the workload's name; for given arrays, one derived from their content."""
        return self.record.workload

    @property
    def device(self) -> str:
        """Return the device that was swept, as ``autotune.load`` takes it: cpu, cuda or cuda:N."""
        name = device_names(self.request.device)[0]
        return str(self.record.about.device_kind) if name == "auto" else name

    @property
    def folder(self) -> Path:
        """Return the family's folder."""
        return self.family.folder

    @property
    def out(self) -> Path:
        """Return the folder of the record and of the workload that was made of given arrays."""
        return self.request.folder

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Return every configuration that was tried, the control included, with its time or its reason."""
        return self.record.trials

    @property
    def failures(self) -> tuple[Trial, ...]:
        """Return the trials that failed: did not compile or launch, were wrong, crashed or timed out."""
        return tuple(trial for trial in self.trials if trial.state in FAILED)

    @cached_property
    def decision(self) -> Decision:
        """Return winner, tie set, runner-up and margins. Raises NothingMeasured."""
        found = self.record.decide(self.request.objective)
        if found is None:
            why = "the budget was 0, `named` has five to try" if self.named else "`failures` has the reasons"
            raise NothingMeasured(f"no configuration of {self.family.name} was measured; {why}")
        return found

    @property
    def best(self) -> Best:
        decision = self.decision
        over, winner = decision.over_control, decision.winner
        cost = winner.cost(decision.objective)
        ms = cost if find_objective(decision.objective).is_time else winner.time_ms
        tied = tuple(trial.configuration for trial in decision.tie_set)
        return Best(winner.configuration, ms, over.ratio, (over.low, over.high), tied, cost)

    @cached_property
    def policy_file(self) -> PolicyFile:
        """Return what ``save_policy`` writes if there is no policy file yet."""
        assert self.decision is not None  # else NothingMeasured
        return merge_winners(None, [self.record], self.request.objective)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a DataFrame with a row for each trial and the columns of results.csv."""
        from autotune.record import results_frame

        return results_frame([self.record])

    def report(self, folder: str | Path | None = None) -> Path:
        """Write ``report.html`` and its tables for the newest study of each workload in the record.

        Args:
            folder: where to write them; by default the folder of the record.

        Returns:
            The path of ``report.html``.

        Raises:
            StoreError: the record cannot be read, or the folder cannot be written.
        """
        from autotune.report import write_all

        place = Path(folder) if folder else self.out
        known = {self.family.name: self.family}
        return write_all(self._newest, place, known, self.out, [policy_folder()])["report"]

    def save_policy(self, folder: str | Path | None = None) -> Path:
        """Merge the winner, and those of the same device that the record has for other workloads, into a policy file.

        Args:
            folder: the folder of policy files; by default AUTOTUNE_POLICIES, else ./policies: where programs look.

        Returns:
            The path of the policy file.

        Raises:
            PolicyFileError: the file cannot be read or written.
            NothingMeasured: there is no winner.
        """
        place = policy_folder(Path(folder) if folder else None)
        return save_winners(place, self._newest, self.record, self.request.objective)

    @property
    def _newest(self) -> list[Study]:
        assert self.decision is not None  # else NothingMeasured
        return merge_latest(read_record(self.request.store or str(self.out)), [self.record])

    def __repr__(self) -> str:
        what = f"{self.family.name} on {self.workload}"
        if self.named:
            return f"<SweepResult {what}: {len(self.named)} named, none measured>"
        where = f"{what}, {self.record.about.device_name or self.device}"
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
