"""The policy file: winners with their provenance, in YAML that a person can read and edit.

One file per family and device. Sweeps merge their entries into it under a lock, and it is replaced whole,
so a reader never sees half of one.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from autotune import yamlfile
from autotune.decision import Decision, Minimax, minimax, time_ms
from autotune.errors import PolicyFileError
from autotune.record import Study
from autotune.space import Configuration

__all__ = ["Entry", "PolicyFile", "entry", "file_name", "read", "update"]

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One workload's winner. Times in milliseconds, ``spread`` relative; ``margin_over_control`` is control's time
    over the winner's (0 when control was not measured). The digests say what it was measured with."""

    workload: str
    features: Mapping[str, int]
    options: Mapping[str, Any]
    configuration: Mapping[str, Any]
    median_ms: float
    spread: float
    samples: int
    tie_set: list[str] = field(default_factory=list)
    runner_up: str = ""
    runner_up_ms: float = 0.0
    margin_over_control: float = 0.0
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    source_digest: str = ""
    layouts_digest: str = ""
    space_digest: str = ""
    workload_digest: str = ""
    compiler: str = ""
    driver: str = ""
    autotune: str = ""
    date: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PolicyFile:
    """``default`` is the minimax-regret configuration over the entries' workloads, ``default_regret`` its worst
    slowdown minus 1."""

    family: str
    device: Mapping[str, Any]
    entries: Mapping[str, Entry]
    default: Mapping[str, Any]
    default_regret: float = 0.0
    path: Path | None = None


def file_name(family: str, device: str) -> Path:
    """Where a policy file lies below a policies folder."""
    return Path(family) / f"{device}.yaml"


def entry(study: Study, decision: Decision) -> Entry:
    """The policy file's entry for a finished study."""
    measurement = decision.winner.measurement
    assert measurement is not None
    about = study.about
    return Entry(
        workload=study.workload,
        features=dict(about["features"]),
        options=dict(about["options"]),
        configuration=dict(decision.winner.configuration),
        median_ms=round(measurement.time_ms, 7),
        spread=round(measurement.spread, 5),
        samples=measurement.samples,
        tie_set=[t.configuration.id for t in decision.tie_set],
        runner_up=decision.runner_up.configuration.id if decision.runner_up else "",
        runner_up_ms=round(time_ms(decision.runner_up), 7) if decision.runner_up else 0.0,
        margin_over_control=round(decision.margin_over_control, 3) if decision.control else 0.0,
        transform_ms=round(measurement.transform_ms, 4),
        transfer_ms=round(measurement.transfer_ms, 4),
        **{
            key: str(about.get(key, ""))
            for key in (
                "source_digest", "layouts_digest", "space_digest", "workload_digest", "compiler", "driver",
                "autotune", "date",
            )
        },
        protocol=dict(about["protocol"]),
    )  # fmt: skip


def read(path: Path) -> PolicyFile:
    """Raises PolicyFileError for anything that is not a policy file of this schema."""
    content = yamlfile.read(path, PolicyFileError)
    if content.get("schema") != SCHEMA:
        raise PolicyFileError(
            f"{path}: schema {content.get('schema')!r} is not {SCHEMA}, the one this version reads; sweep again or "
            "take a matching version of autotune"
        )
    try:
        entries = {
            str(name): Entry(**{**value, "workload": str(name)}) for name, value in content["entries"].items()
        }
        loaded = PolicyFile(
            family=content["family"],
            device=content["device"],
            entries=entries,
            default=content["default"],
            default_regret=float(content.get("default_regret", 0.0)),
            path=path,
        )
        for item in entries.values():
            _check_entry(item)
        Configuration(loaded.default)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        yamlfile.check(content, "policy", path, PolicyFileError)
        raise PolicyFileError(f"{path}: not a policy file: {type(problem).__name__}: {problem}") from None
    return loaded


def _check_entry(item: Entry) -> None:
    numbers = (item.median_ms, item.spread, item.margin_over_control, *item.features.values())
    if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise ValueError(f"entry {item.workload}: figures and features must be numbers")
    if not all(isinstance(v, (int, str)) for v in item.configuration.values()):
        raise ValueError(f"entry {item.workload}: configuration values must be words or whole numbers")


def update(folder: Path, studies: list[Study]) -> Path:
    """Merge the winners of ``studies`` (one family, one device) into their policy file below ``folder`` and return
    its path. An entry of another workload stays; one of the same workload is replaced, unless it is faster, was
    measured with the same sources and input, and is of a configuration that the new sweep did not measure. Raises
    PolicyFileError when the file or folder cannot be written."""
    import filelock

    first = studies[-1]
    path = folder / file_name(first.family, first.device)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{path}.lock", timeout=60):
            before: PolicyFile | None = None
            if path.exists():
                try:
                    before = read(path)
                except PolicyFileError:
                    path.replace(path.with_suffix(".yaml.unreadable"))
            entries = dict(before.entries) if before else {}
            kept = False
            for study in studies:
                if decision := study.decision:
                    new, old = entry(study, decision), entries.get(study.workload)
                    if old is not None and _stays(old, new, study):
                        kept = True
                    else:
                        entries[study.workload] = new
            if before and kept:  # a partial sweep knows too little to choose the default anew
                chosen = Minimax(Configuration(before.default), before.default_regret)
            else:
                chosen = _default(studies, entries)
            _write(path, _content(first, entries, chosen))
    except OSError as problem:
        raise PolicyFileError(
            f"cannot write {path}: {problem.strerror or problem}; name a folder you may write with --policies"
        ) from None
    return path


def _stays(old: Entry, new: Entry, study: Study) -> bool:
    """Whether a sweep of part of the space must not replace the better entry of a wider one."""
    same = ("options", "source_digest", "layouts_digest", "space_digest", "workload_digest", "compiler")
    alike = all(getattr(old, name) == getattr(new, name) for name in same)
    measured = {t.configuration for t in study.trials if t.measurement}
    return alike and old.median_ms < new.median_ms and Configuration(old.configuration) not in measured


def _default(studies: list[Study], entries: Mapping[str, Entry]) -> Minimax:
    """Minimax regret over the studies at hand; with one study its winner has no regret."""
    times = {s.workload: {t.configuration: time_ms(t) for t in s.trials if t.measurement} for s in studies}
    found = minimax({w: row for w, row in times.items() if row})
    if found is None:  # nothing was measured everywhere: the entry that won by most stands in
        best = max(entries.values(), key=lambda e: e.margin_over_control)
        return Minimax(Configuration(best.configuration), 0.0)
    winners = {Configuration(e.configuration) for e in entries.values() if e.workload in times}
    return Minimax(next(iter(winners)), 0.0) if len(times) == 1 and len(winners) == 1 else found


def _content(study: Study, entries: Mapping[str, Entry], chosen: Minimax) -> dict[str, Any]:
    about = study.about
    plain = {}
    for name in sorted(entries):
        plain[name] = asdict(entries[name])
        del plain[name]["workload"]
    return {
        "schema": SCHEMA,
        "family": study.family,
        "device": {
            "kind": about["device_kind"],
            "name": about["device_name"],
            "compute_capability": about["compute_capability"],
            "driver": str(about["driver"]),
        },
        "default": dict(chosen.configuration),
        "default_regret": round(chosen.regret, 4),
        "entries": plain,
    }


def _write(path: Path, content: Mapping[str, Any]) -> None:
    text = "# Written by autotune; may be edited. `autotune sweep` merges new measurements into it.\n"
    text += yaml.safe_dump(content, sort_keys=False, width=110, allow_unicode=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
