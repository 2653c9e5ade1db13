"""Studies from whatever holds them: a sweep's folder, a database, tables that were kept, other tuners' files; and the
ceilings of a device that may lie beside them."""

import gzip
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration
from autotune.errors import StoreError, UnknownName, UsageError
from autotune.files import plain_file
from autotune.record.storages import holds_store
from autotune.record.study import Study, newest_of_each

_MOST_BYTES = 1 << 30  # that a packed file may hold


def read_record(record: str) -> list[Study]:
    """The studies in ``record``: the newest of each family, workload and device.

    A folder with a ``store.journal``, one that hosts share, or one with a ``results.csv``; a ``--store`` address; a
    table of the form of ``results.csv`` (``.csv``, or ``.csv.xz``); a cache file of Kernel Tuner or results in the T4
    format (``.json``, or ``.json.gz`` as the benchmark hub keeps them). Raises StoreError for anything else, and where
    nothing is recorded.
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
    if _is_json(path):
        return [_foreign(path)]
    raise StoreError(
        f"{record} holds no record; name a sweep's --out folder, a --store address, a results.csv, or a .json "
        "file of Kernel Tuner's cache or of T4 results"
    )


def is_table(record: str | Path) -> bool:
    """Whether ``record`` names a table of the form of ``results.csv``, compressed by xz or not."""
    return str(record).endswith((".csv", ".csv.xz"))


def _is_json(path: Path) -> bool:
    return path.name.endswith((".json", ".json.gz"))


def _foreign(path: Path) -> Study:
    from autotune.record import kernel_tuner, t4

    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for
            raise StoreError(f"{path} is no file")
        text = _unpacked(path) if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as problem:
        raise StoreError(f"cannot read {path}: {problem}") from None
    content = kernel_tuner.parsed(text)
    if isinstance(content, dict) and "cache" in content:
        return kernel_tuner.from_cache(content, str(path))
    if isinstance(content, dict) and "results" in content:
        return t4.from_t4(content, str(path))
    raise StoreError(
        f"{path} is neither a cache file of Kernel Tuner (a JSON object with a cache) nor results in the T4 format "
        f"(one with results), but {_kind(content)}"
    )


def _unpacked(path: Path) -> str:
    with gzip.open(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise StoreError(
            f"{path} holds more than {_MOST_BYTES >> 20} MiB: unpack it, and name the .json file"
        )
    return content.decode("utf-8")


def _kind(content: object) -> str:
    if isinstance(content, dict):
        return f"an object with {', '.join(map(json.dumps, list(content)[:5])) or 'nothing'}"
    return "no JSON" if content is None else f"a {type(content).__name__}"


def import_files(
    files: Sequence[Path], *, family: str = "", workload: str = "", device: str = "", control: str = ""
) -> list[Study]:
    """The studies in Kernel Tuner's cache files and T4 results; names that are given replace the files'.

    ``control`` is ``policy=value,…`` of one configuration in every file; without it every parameter's first value, or
    what autotune wrote into the file. Raises StoreError, UsageError, UnknownName.
    """
    studies = []
    for path in files:
        if not _is_json(path):
            raise UsageError(
                f"cannot import {path}: name .json files of Kernel Tuner's cache or of T4 results"
            )
        for study in read_record(str(path)):
            named = _named(study, family, workload, device)
            studies.append(_controlled(named, control) if control else named)
    if len({study.key for study in studies}) < len(studies):
        raise UsageError(
            "two of the files have the same family, workload and device: import them one by one, with names of "
            "their own (--workload, --device)"
        )
    return studies


def _named(study: Study, family: str, workload: str, device: str) -> Study:
    family, workload, device = family or study.family, workload or study.workload, device or study.device
    trials = tuple(replace(t, family=family, workload=workload, device=device) for t in study.trials)
    return replace(study, family=family, workload=workload, device=device, trials=trials)


def _controlled(study: Study, control: str) -> Study:
    asked = dict(pair.partition("=")[::2] for pair in control.split(","))
    known = {
        name: {str(t.configuration[name]): t.configuration[name] for t in study.trials}
        for name in study.control
    }
    for name, value in asked.items():
        if name not in known:
            raise UnknownName("policy", name, known, study.family)
        if value not in known[name]:
            raise UnknownName(f"value of {name}", value, known[name], study.family)
    if missing := [name for name in known if name not in asked]:
        raise UsageError(f"--control leaves out {', '.join(missing)}: name a value for every policy")
    chosen = Configuration({name: known[name][value] for name, value in asked.items()})
    if chosen not in {t.configuration for t in study.trials}:
        raise UsageError(f"--control {chosen.id} is not among the configurations of {study.family}")
    return replace(study, control=chosen, presets={**study.presets, "control": chosen})


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
