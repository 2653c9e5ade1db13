"""Studies from whatever holds them: a sweep's folder, a database, tables that were kept, other tuners' files."""

import json
from collections.abc import Iterable
from pathlib import Path

from autotune.errors import StoreError
from autotune.record import Study

__all__ = ["latest", "read_record"]


def read_record(record: str) -> list[Study]:
    """The studies in ``record``: the newest of each family, workload and device.

    A folder with a ``store.journal`` or, without one, a ``results.csv``; a ``postgresql://`` address; a table of the
    form of ``results.csv``; a cache file of Kernel Tuner or results in the T4 format (``.json``). Raises StoreError
    for anything else, and where nothing is recorded.
    """
    if "://" in record:
        return _stored(record)
    path = Path(record)
    if path.is_dir() and (path / "store.journal").is_file():
        return _stored(record)
    if path.is_dir() and (path / "results.csv").is_file():
        path /= "results.csv"
    if path.suffix == ".csv":
        from autotune.report.recorded import read_results

        return latest(read_results([path]))
    if path.suffix == ".json":
        return [_foreign(path)]
    raise StoreError(
        f"{record} holds no record; name a sweep's --out folder, a postgresql:// address, a results.csv, or a .json "
        "file of Kernel Tuner's cache or of T4 results"
    )


def latest(studies: Iterable[Study]) -> list[Study]:
    """The newest study of each family, workload and device, by the date that it tells."""
    ordered = sorted(studies, key=lambda study: str(study.about.get("date", "")))
    return list({(s.family, s.workload, s.device): s for s in ordered}.values())


def _stored(record: str) -> list[Study]:
    from autotune.store import Store

    if studies := latest(Store(record).studies()):
        return studies
    raise StoreError(f"the record in {record} is empty")


def _foreign(path: Path) -> Study:
    from autotune import kernel_tuner_cache, t4

    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for
            raise StoreError(f"{path} is no file")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise StoreError(f"cannot read {path}: {problem}") from None
    content = kernel_tuner_cache.parsed(text)
    if isinstance(content, dict) and "cache" in content:
        return kernel_tuner_cache.from_cache(content, str(path))
    if isinstance(content, dict) and "results" in content:
        return t4.from_t4(content, str(path))
    raise StoreError(
        f"{path} is neither a cache file of Kernel Tuner (a JSON object with a cache) nor results in the T4 format "
        f"(one with results), but {_kind(content)}"
    )


def _kind(content: object) -> str:
    if isinstance(content, dict):
        return f"an object with {', '.join(map(json.dumps, list(content)[:5])) or 'nothing'}"
    return "no JSON" if content is None else f"a {type(content).__name__}"
