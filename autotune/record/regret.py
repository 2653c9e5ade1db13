"""What each workload loses with each configuration, and what one for all would cost.

Regret is a time over the best time on the same workload, minus 1 (Savage, The theory of statistical decision,
1951: the minimax-regret rule).
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from autotune.declaration import Configuration
from autotune.errors import StoreError
from autotune.files import cell, written
from autotune.record.decision import Minimax, minimax
from autotune.record.readers import read_record
from autotune.record.study import Study, newest_of_each

Times = Mapping[str, Mapping[Configuration, float]]


@dataclass(frozen=True, kw_only=True)
class Regrets:
    """One family on one device: ``times`` in milliseconds by workload and configuration, those measured only."""

    family: str
    device: str
    times: Times

    @cached_property
    def best(self) -> dict[str, Configuration]:
        """The fastest configuration of each workload."""
        return {w: min(row, key=lambda c: (row[c], c.id)) for w, row in self.times.items()}

    @cached_property
    def everywhere(self) -> tuple[Configuration, ...]:
        """The configurations measured on every workload, by id."""
        common = set.intersection(*(set(row) for row in self.times.values()))
        return tuple(sorted(common, key=lambda c: c.id))

    @cached_property
    def minimax(self) -> Minimax | None:
        """The configuration with the smallest worst regret; None when none was measured everywhere."""
        return minimax(self.times)

    def regret(self, workload: str, configuration: Configuration) -> float:
        """Raises KeyError when it was not measured there."""
        row = self.times[workload]
        return row[configuration] / row[self.best[workload]] - 1

    def cost_of_one(self, configuration: Configuration) -> dict[str, float]:
        """``worst`` and ``median`` regret over the workloads, and ``total``: the time of one run of each workload over
        that with each one's best, minus 1."""
        found = [self.regret(w, configuration) for w in self.times]
        all_ms = sum(row[configuration] for row in self.times.values())
        best_ms = sum(self.times[w][c] for w, c in self.best.items())
        return {"worst": max(found), "median": median(found), "total": all_ms / best_ms - 1}


def read_regrets(record: str) -> list[Regrets]:
    """Of what ``readers.read_record`` reads. Raises StoreError."""
    return of_studies(read_record(record), record)


def of_studies(studies: Iterable[Study], where: str = "the record") -> list[Regrets]:
    """One for each family and device; of the studies of one workload the newest that measured anything counts. Raises
    StoreError when nothing was measured."""
    rows: dict[tuple[str, str], dict[str, Mapping[Configuration, float]]] = {}
    for study in newest_of_each(s for s in studies if s.times):
        rows.setdefault((study.family, study.device), {})[study.workload] = study.times
    if not rows:
        raise StoreError(f"{where}: nothing was measured")
    return [
        Regrets(family=family, device=device, times=dict(sorted(times.items())))
        for (family, device), times in sorted(rows.items())
    ]


def write_matrix(all_regrets: Sequence[Regrets], path: Path) -> None:
    """Every configuration as a row of a CSV, a column of regrets for each workload; blank where it was not measured;
    whole or not at all. Raises StoreError."""
    workloads = list(dict.fromkeys(w for r in all_regrets for w in r.times))
    try:
        with written(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["family", "device", "configuration", *map(cell, workloads)])
            for regrets in all_regrets:
                found = dict.fromkeys(c for row in regrets.times.values() for c in row)
                for configuration in sorted(found, key=lambda c: c.id):
                    cells = [
                        f"{regrets.regret(w, configuration):.6f}"
                        if configuration in regrets.times.get(w, {})
                        else ""
                        for w in workloads
                    ]
                    named = map(cell, (regrets.family, regrets.device, configuration.id))
                    writer.writerow([*named, *cells])
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror or problem}") from None
