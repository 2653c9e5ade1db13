"""A ``results.csv`` read back as studies, so that a table that was kept is as good as the record it came from.

What the table does not have is not made up: the remarks on the protocol, the declared values of policies that no
trial took, the seconds by phase.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune import family as families
from autotune.errors import AutotuneError, StoreError
from autotune.record import Study
from autotune.report.results import COUNTER, PHASES, PROFILE, RATE, text_of
from autotune.space import Configuration, PolicyValue
from autotune.trial import STATES, KernelProfile, Measurement, Trial

__all__ = ["read_results"]

_NEEDED = ("family", "workload", "device", "preset", "state", "median_ms")
_NOT_COUNTS = ("occupancy", "limited_by")
Row = Mapping[str, str]


def read_results(paths: Iterable[str | Path]) -> list[Study]:
    """The studies in files of the form of ``results.csv``: one for each family, workload, device and identity.

    Policies are the columns between ``preset`` and ``state``; one whose values all are whole numbers has int values.
    Other columns than ``family``, ``workload``, ``device``, ``preset``, ``state`` and ``median_ms`` may be missing,
    so that tables of other tools' measurements can be brought into this form. Raises StoreError for a file that
    cannot be read as one.
    """
    studies: list[Study] = []
    for path in paths:
        try:
            studies += _read(Path(path))
        except (OSError, ValueError, ArithmeticError, csv.Error) as problem:
            said = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
            raise StoreError(f"cannot read {path} as a results.csv: {said}") from None
    return studies


def _read(path: Path) -> list[Study]:
    if not path.is_file() and path.exists():  # a pipe would be waited for
        raise ValueError("it is no file")
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.reader(file)
        header = [text_of(name) for name in next(table, [])]
        if missing := [name for name in _NEEDED if name not in header]:
            raise ValueError(f"it has no column {', '.join(missing)}; docs/results-csv.md lists them all")
        if len(set(header)) < len(header):
            raise ValueError(f"two of its columns have the name {max(header, key=header.count)!r}")
        rows: list[Row] = []
        for cells in filter(None, table):
            if len(cells) != len(header):
                raise ValueError(f"line {table.line_num} has {len(cells)} cells, its header {len(header)}")
            rows.append(dict(zip(header, map(text_of, cells), strict=True)))
    policies = _policies(header)
    numbers = {
        column
        for column in policies.values()
        if all(re.fullmatch(r"-?\d+", row[column]) for row in rows if row[column])
    }
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row["family"], row["workload"], row["device"], row.get("identity", ""))
        groups.setdefault(key, []).append(row)
    return [_study(key, group, policies, numbers, header) for key, group in groups.items()]


def _policies(header: Sequence[str]) -> dict[str, str]:
    """Policy -> its column. A policy whose name another column has is called ``policy_<name>`` there."""
    columns = header[header.index("preset") + 1 : header.index("state")]
    if not columns:
        raise ValueError("it has no column of a policy between preset and state")
    others = set(header) - set(columns)
    return {
        c.removeprefix("policy_") if c.removeprefix("policy_") in others else c: c for c in columns
    }  # fmt: skip


def _study(
    key: tuple[str, ...], rows: Sequence[Row], policies: Mapping[str, str], numbers: set[str], header: Sequence[str]
) -> Study:  # fmt: skip
    own = {name: column for name, column in policies.items() if any(row[column] for row in rows)}
    kernels = [name.removeprefix("registers_") for name in header if name.startswith("registers_")]
    timed = [m[1] for name in header if (m := re.fullmatch("kernel_(.+)_ms", name))]
    trials = []
    presets: dict[str, Configuration] = {}
    for row in rows:
        values: dict[str, PolicyValue] = {
            name: int(row[c]) if c in numbers and row[c] else row[c] for name, c in own.items()
        }
        trials.append(_trial(key, row, Configuration(values), kernels, timed))
        for name in (row["preset"] or "").split():
            presets.setdefault(name, trials[-1].configuration)
    if "control" not in presets and (declared := _declared_control(key[0], own, numbers)):
        presets["control"] = declared
    if "control" not in presets:
        raise ValueError(
            f"{key[0]} on {key[1]} has no row with the preset control, to which all others are compared"
        )
    return Study(
        family=key[0], workload=key[1], device=key[2], identity=key[3], control=presets["control"],
        presets=presets, about=_about(rows, trials, own, kernels, header), trials=tuple(trials),
    )  # fmt: skip


def _declared_control(family: str, own: Mapping[str, str], numbers: set[str]) -> Configuration | None:
    """The control of a family that is installed here and still has these policies: a sweep of a preset need not have
    tried it."""
    try:
        control = families.load(family, check=False).space.control
    except AutotuneError:
        return None
    if set(control) != set(own):
        return None
    return Configuration(
        {name: control[name] if own[name] in numbers else str(control[name]) for name in own}
    )


def _trial(
    key: tuple[str, ...], row: Row, configuration: Configuration, kernels: Sequence[str], timed: Sequence[str]
) -> Trial:
    if row["state"] not in STATES:
        raise ValueError(f"state {row['state']!r} is not one of {', '.join(STATES)}")
    profiles = tuple(_profile(row, kernel) for kernel in kernels if row[f"registers_{kernel}"])
    return Trial(
        family=key[0], workload=key[1], device=key[2], configuration=configuration,
        state=row["state"],
        reason=row.get("reason") or "",
        profiles=profiles,
        measurement=_measurement(row, timed) if row["state"] == "measured" else None,
        phases_ms={p: float(row[f"{p}_ms"]) for p in PHASES if row.get(f"{p}_ms")},
        notes=tuple(row["notes"].split(" | ")) if row.get("notes") else (),
    )  # fmt: skip


def _profile(row: Row, kernel: str) -> KernelProfile:
    counts = {name: _count(row, f"{name}_{kernel}") for name in PROFILE if name not in _NOT_COUNTS}
    occupancy = float(row.get(f"occupancy_{kernel}") or 0)
    limit = row.get(f"limited_by_{kernel}") or ""
    return KernelProfile(kernel=kernel, occupancy=occupancy, limited_by=limit, **counts)


def _measurement(row: Row, timed: Sequence[str]) -> Measurement:
    def figure(name: str, missing: float = 0.0) -> float:
        value = float(row.get(name) or missing)
        if not 0 <= value < math.inf and name != "spread_relative":
            raise ValueError(f"{name} {row.get(name)!r} of a measured row is no time, and no count")
        return value

    if not figure("median_ms") > 0:
        raise ValueError(f"median_ms {row['median_ms']!r} of a measured row is no time")
    return Measurement(
        median_ms=figure("median_ms"),
        minimum_ms=figure("minimum_ms", figure("median_ms")),
        spread=figure("spread_relative", 1.0),  # as of a single sample: nothing is known
        samples=_count(row, "samples", 1),
        kernel_ms={name: figure(f"kernel_{name}_ms") for name in timed if row[f"kernel_{name}_ms"]},
        retimed_ms=figure("retimed_ms"),
        transform_ms=figure("transform_ms"),
        transfer_ms=figure("transfer_ms"),
        transfer_bytes=_count(row, "transfer_bytes"),
        footprint_bytes=_count(row, "footprint_bytes"),
        abandoned=row.get("abandoned") == "True",
    )


def _count(row: Row, name: str, missing: int = 0) -> int:
    value = float(row.get(name) or missing)
    if not 0 <= value < 2**63:
        raise ValueError(f"{name} {row.get(name)!r} is no count")
    return int(value)


def _about(
    rows: Sequence[Row],
    trials: Sequence[Trial],
    policies: Iterable[str],
    kernels: Sequence[str],
    header: Sequence[str],
) -> dict[str, Any]:
    first = rows[0]
    about: dict[str, Any] = {
        name: first[name] for name in ("device_name", "driver", "compiler", "date", "source") if first.get(name)
    }  # fmt: skip
    about["policies"] = {  # in the order of the columns, which is the declared one
        name: {"values": list(dict.fromkeys(t.configuration[name] for t in trials))} for name in policies
    }
    if first.get("clock_mhz"):
        about["clock_mhz"] = int(float(first["clock_mhz"]))
    if arch := re.search(r"\bsm_\d+[a-z]?\b", first.get("compiler") or ""):
        about["arch"] = arch[0]
    measured = header[header.index("state") :]
    rates = [n.removesuffix(RATE) for n in measured if n.endswith(RATE) and not n.startswith(COUNTER)]
    amounts: dict[str, float] = {}  # what the workload declared, from the rate that was made of it
    for name in rates:
        for row, trial in zip(rows, trials, strict=True):
            if trial.measurement and row.get(f"{name}{RATE}"):
                amounts[name] = float(row[f"{name}{RATE}"]) * trial.measurement.time_ms / 1000
                break
    about |= {name: amounts.pop(name) for name in ("operations", "bytes") if name in amounts}
    about |= {"needs": amounts} if amounts else {}
    columns = {}
    for name in header:
        ends = [k for k in kernels if name.startswith(COUNTER) and name.endswith(f"_{k}")]
        if ends:  # of kernels whose names end alike, the longer one is meant
            kernel = max(ends, key=len)
            columns[kernel, name.removeprefix(COUNTER).removesuffix(f"_{kernel}")] = name
    counters: dict[str, dict[str, dict[str, float]]] = {}
    for row, trial in zip(rows, trials, strict=True):
        for (kernel, counter), column in columns.items():
            if row[column]:
                of = counters.setdefault(trial.configuration.id, {}).setdefault(kernel, {})
                of[counter] = float(row[column])
    return about | ({"counters": counters} if counters else {})
