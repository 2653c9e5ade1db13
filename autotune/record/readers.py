"""Studies from whatever holds them: a sweep's folder, a database, tables that were kept, other tuners' files; and the
ceilings of a device that may lie beside them."""

import json
import math
from pathlib import Path
from typing import Any

from autotune.errors import StoreError
from autotune.extensions import reader_of
from autotune.files import plain_file
from autotune.record.shared_folder import SHARED, is_shared
from autotune.record.study import Study, newest_of_each


def read_record(record: str) -> list[Study]:
    """The studies in ``record``: the newest of each family, workload and device.

    A folder with a ``store.journal``, one that hosts share, or one with a ``results.csv``; a ``--store`` address; a
    table of the form of ``results.csv`` (``.csv``, or ``.csv.xz``); a file that an extension reads. Raises StoreError
    for anything else, and where nothing is recorded.
    """
    if holds_store(record):
        from autotune.record.store import Store

        if studies := newest_of_each(Store(record).studies()):
            return studies
        raise StoreError(f"the record in {record} is empty")
    path = Path(record)
    if path.is_dir() and (path / "results.csv").is_file():
        path /= "results.csv"
    if is_table(path):
        from autotune.record.results_csv import read_results

        return newest_of_each(read_results([path]))
    if reader := reader_of(path.name, "records"):
        return [reader.read_study(path)]
    raise StoreError(
        f"{record} holds no record; name a sweep's --out folder, a --store address, a results.csv, or a .json "
        "file of Kernel Tuner's cache or of T4 results"
    )


def is_table(record: str | Path) -> bool:
    """Whether ``record`` names a table of the form of ``results.csv``, compressed by xz or not."""
    return str(record).endswith((".csv", ".csv.xz"))


def holds_store(record: str | Path) -> bool:
    """Whether ``record`` is the address of a database, or a folder that a sweep has kept its store in."""
    text = str(record)
    if text.startswith(SHARED):
        return is_shared(Path(text.removeprefix(SHARED)))
    return "://" in text or (Path(text) / "store.journal").is_file() or is_shared(Path(text))


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
