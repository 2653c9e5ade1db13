"""Studies from whatever holds them: a sweep's folder, a database, tables that were kept, other tuners' files; and the
ceilings of a device that may lie next to them."""

import csv
import json
import math
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError, StoreError
from autotune.extensions import reader_of
from autotune.files import plain_file
from autotune.record.storages import holds_store
from autotune.record.study import Study, find_newest_of_each

RANKING = "ranking.csv"  # configurations, the one that is expected to be fastest first


def read_record(record: str) -> list[Study]:
    """The studies in ``record``: the newest of each family, workload and device.

    A folder with a ``store.journal``, or one with a ``results.csv``; a ``--store`` address; a
    table of the form of ``results.csv`` (``.csv``, or ``.csv.xz``); a file that an extension reads. Raises StoreError
    for anything else, and where nothing is recorded.
    """
    if holds_store(record):
        from autotune.record.store import Store

        if studies := find_newest_of_each(Store(record).studies()):
            return studies
        raise StoreError(f"the record in {record} is empty")
    path = Path(record)
    if path.is_dir() and (path / "results.csv").is_file():
        path /= "results.csv"
    if is_table(path):
        from autotune.record.results_csv import read_results

        return find_newest_of_each(read_results([path]))
    if reader := reader_of(path.name, "records"):
        return [reader.read_study(path)]
    raise StoreError(
        f"{record} holds no record; name a sweep's --out folder, a --store address, a results.csv, or a .json "
        "file of Kernel Tuner's cache or of T4 results"
    )


def is_table(record: str | Path) -> bool:
    """Whether ``record`` names a table of the form of ``results.csv``, compressed by xz or not."""
    return str(record).endswith((".csv", ".csv.xz"))


def read_ceilings(path: Path) -> dict[str, Any] | None:
    """The ceilings in ``path``, None where there is no such file. Raises StoreError for another form."""
    try:
        known = json.loads(plain_file(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as problem:
        raise StoreError(f"cannot read the device's ceilings in {path}: {problem}") from None
    found = known.get("ceilings") if isinstance(known, dict) else None
    fit = isinstance(found, dict) and all(
        type(v) in (int, float) and math.isfinite(v) and v > 0 for v in found.values()
    )
    if not fit or not isinstance(known.get("device_name"), str):
        raise StoreError(
            f'{path} is not of the form {{"device_name": "...", "ceilings": {{"bytes_per_s": 4.26e12}}}} with '
            "ceilings above zero"
        )
    return dict(known)


def read_first_guesses(folder: Path, family: Family, workload: str, count: int) -> list[Configuration]:
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
