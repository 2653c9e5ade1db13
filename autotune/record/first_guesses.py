"""``ranking.csv``: configurations, the one that is expected to be fastest first; a search begins with some."""

import csv
from pathlib import Path

from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError

RANKING = "ranking.csv"


def first_guesses(folder: Path, family: Family, workload: str, count: int) -> list[Configuration]:
    """The ``count`` first of ``ranking.csv`` in ``folder``, of these sources, this space and that workload; none where
    there is no such file, or it cannot be read."""
    wanted = {
        "family": family.name, "workload": workload,
        "source_digest": family.source_digest, "space_digest": family.space_digest,
    }  # fmt: skip
    try:
        with (folder / RANKING).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if all(row.get(k) == v for k, v in wanted.items())]
        rows = [row for row in rows if row["rank"]]
        rows.sort(key=lambda row: int(row["rank"]))
        return [family.space.configuration(row["configuration"]) for row in rows[:count]]
    except (OSError, ValueError, KeyError, TypeError, csv.Error, AutotuneError):
        return []
