"""The record as one table: a row per trial, failures too, units in the column names.

``results.csv`` is this table as text: it reads into pandas with ``pandas.read_csv(path)`` and no options, and back
into studies with ``read_results``.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.compile import KernelProfile
from autotune.declaration import Configuration, PolicyValue, load_family
from autotune.errors import AutotuneError, StoreError
from autotune.files import cell_text, clean, csv_text, unpacked, write_text
from autotune.measure import OBJECTIVES, QUANTITIES, TIME, Figure, unit
from autotune.record.decision import ranked
from autotune.record.provenance import Provenance
from autotune.record.study import Study
from autotune.record.trial import STATES, Measurement, Trial, parsed_remarks

_SPREAD = {  # of the figures that winners are chosen by, the columns of their intervals
    objective.figure: f"{objective.figure.rpartition('_')[0]}_spread_relative"
    for objective in OBJECTIVES.values()
    if QUANTITIES[objective.figure].is_extra
}
_PLAIN = [name for name, quantity in QUANTITIES.items() if not quantity.is_extra and name != TIME]
EXTRA = [
    column
    for name, quantity in QUANTITIES.items()
    if quantity.is_extra
    for column in filter(None, (name, _SPREAD.get(name)))
]

# In their order; docs/results-csv.md says what each of them is.
COLUMNS = (
    "family", "workload", "device", "configuration", "preset", "<policy>", "state", "reason", "rank", "time_ms",
    "median_ms", "minimum_ms", "spread_relative", "samples", "retimed_ms", *EXTRA, "abandoned", "error_<output>",
    "operations_per_s", "bytes_per_s", "<unit>_per_s", "kernel_<kernel>_ms", "counter_<counter>_<kernel>", *_PLAIN,
    "registers_<kernel>", "local_bytes_<kernel>", "spill_store_bytes_<kernel>", "spill_load_bytes_<kernel>",
    "static_shared_bytes_<kernel>", "dynamic_shared_bytes_<kernel>", "constant_bytes_<kernel>",
    "block_size_<kernel>", "blocks_per_sm_<kernel>", "occupancy_<kernel>", "limited_by_<kernel>", "compile_ms",
    "place_ms", "verify_ms", "measure_ms", "notes", "identity", "device_name", "driver", "clock_mhz", "compiler",
    "date",
)  # fmt: skip


COUNTER = "counter_"
ERROR = "error_"
RATE = "_per_s"
PHASES = ("compile", "place", "verify", "measure")
_KERNEL = "_<kernel>"
_PROFILE = [n.removesuffix(_KERNEL) for n in COLUMNS if n.endswith(_KERNEL) and not n.startswith(COUNTER)]
_COUNTS = [name for name in _PROFILE if name not in ("occupancy", "limited_by")]

# The columns that every table has: before the policies, behind them, and behind rates and what there is of each kernel.
_FIXED = [name for name in COLUMNS if "<" not in name]
_STATE, _COSTS = _FIXED.index("state"), _FIXED.index("transform_ms")
_HEAD, _MIDDLE, _TAIL = _FIXED[:_STATE], _FIXED[_STATE:_COSTS], _FIXED[_COSTS:]
_STUDY = _FIXED[_FIXED.index("device_name") :]


def policy_columns(studies: Iterable[Study]) -> dict[str, str]:
    """Policy name -> its column, in declared order where the record tells it."""
    studies = tuple(studies)
    taken = {*_FIXED, *_per_kernel(_kernels(studies))}
    names = dict.fromkeys(
        name
        for study in studies
        for name in (*(n for n in study.about.policies if n in study.control), *study.control)
    )
    return {name: f"policy_{name}" if name in taken else clean(name) for name in names}


def results_frame(studies: Iterable[Study]) -> pd.DataFrame:
    """One row per trial of ``studies``, in their order, with the columns ``COLUMNS``.

    A figure that a trial does not have is blank (NA): times of a failure, registers on a cpu.
    """
    studies = tuple(studies)
    policies = policy_columns(studies)
    kernels = _kernels(studies)
    rows = []
    for study in studies:
        presets: dict[str, str] = {}
        for name, configuration in study.presets.items():
            presets[configuration.id] = f"{presets.get(configuration.id, '')} {clean(name)}".strip()
        placed = ranked(study.trials, study.decision)
        ranks = {trial.configuration: place for place, trial in enumerate(placed, 1)}
        rows += [
            {
                **_row(study, trial, presets, policies),
                "rank": ranks[trial.configuration] if trial.measurement else None,
            }
            for trial in study.trials
        ]
    counters = dict.fromkeys(name for row in rows for name in row if name.startswith(COUNTER))
    rates = dict.fromkeys(f"{unit}{RATE}" for study in studies for unit in study.about.needs)
    head = [*_HEAD, *policies.values(), *_MIDDLE]
    errors = dict.fromkeys(name for row in rows for name in row if name.startswith(ERROR))
    order = list(dict.fromkeys([*head, *errors, *rates, *_per_kernel(kernels), *counters, *_TAIL]))
    missing = set(EXTRA).difference(*rows)
    order = [name for name in order if name not in missing]
    frame = pd.DataFrame(rows, columns=order)
    counts = ["rank", "samples", *(name for name in order if name in QUANTITIES and unit(name) == "bytes")]
    counts += [f"{name}_{kernel}" for name in _COUNTS for kernel in kernels]
    for column in counts:
        frame[column] = frame[column].astype("Int64")  # a blank must not turn 32 into 32.0
    return frame


def write_results(studies: Iterable[Study], path: str | Path) -> Path:
    """Write ``results_frame`` as CSV to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, csv_text(results_frame(studies)))


def _per_kernel(kernels: Iterable[str]) -> list[str]:
    kernels = tuple(kernels)
    times = [f"kernel_{kernel}_ms" for kernel in kernels]
    return times + [f"{name}_{kernel}" for kernel in kernels for name in _PROFILE]


def _kernels(studies: Iterable[Study]) -> list[str]:
    names: dict[str, None] = {}
    for study in studies:
        for trial in study.trials:
            names.update(dict.fromkeys(profile.kernel for profile in trial.profiles))
            if trial.measurement:
                names.update(dict.fromkeys(trial.measurement.kernel_ms))
    return list(names)


def _said(study: Study, name: str) -> Any:
    value = getattr(study.about, name)
    return (clean(value) or None) if isinstance(value, str) else value


def _row(
    study: Study, trial: Trial, presets: Mapping[str, str], policies: Mapping[str, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "family": clean(study.family),
        "workload": clean(study.workload),
        "device": clean(study.device),
        "configuration": clean(trial.configuration.id),
        "preset": presets.get(trial.configuration.id),
        "state": trial.state,
        "reason": clean(trial.reason) or None,
        "abandoned": bool(trial.measurement and trial.measurement.abandoned),
        "notes": clean(" | ".join(trial.remarks)) or None,
        "identity": study.identity,
        **{name: _said(study, name) for name in _STUDY},
    }
    for name, value in trial.configuration.items():
        row[policies[name]] = clean(value) if isinstance(value, str) else value
    if trial.measurement:
        row |= _times(study, trial.measurement)
    row |= {f"{ERROR}{clean(name)}": value for name, value in trial.errors.items()}
    for profile in trial.profiles:
        row |= _profile(profile)
    for kernel, counters in study.about.counters.get(trial.configuration.id, {}).items():
        row |= {f"{COUNTER}{counter}_{kernel}": value for counter, value in counters.items()}
    for phase in PHASES:
        row[f"{phase}_ms"] = trial.phases_ms.get(phase)
    return row


def _times(study: Study, measured: Measurement) -> dict[str, Any]:
    row: dict[str, Any] = {f"kernel_{name}_ms": ms for name, ms in measured.kernel_ms.items()}
    row |= {
        "time_ms": measured.time_ms,
        "median_ms": measured.median_ms,
        "minimum_ms": measured.minimum_ms,
        "spread_relative": measured.spread,
        "samples": measured.samples,
        "retimed_ms": measured.retimed_ms or None,
        **{name: figure.value for name, figure in measured.figures.items()},
    }
    for name, column in _SPREAD.items():
        if (found := measured.figure(name)) and found.spread is not None:
            row[column] = found.spread
    amounts = {name: amount for name in ("operations", "bytes") if (amount := getattr(study.about, name))}
    if measured.time_ms > 0:
        seconds = measured.time_ms / 1000
        row |= {f"{unit}{RATE}": n / seconds for unit, n in {**amounts, **study.about.needs}.items()}
    return row


def _profile(profile: KernelProfile) -> dict[str, Any]:
    if not profile.registers:  # a cpu: the compiler says nothing of a thread
        return {}
    return {f"{name}_{profile.kernel}": getattr(profile, name) for name in _PROFILE}


_NEEDED = ("family", "workload", "device", "preset", "state", "median_ms")
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
    with io.StringIO(unpacked(path), newline="") as file:
        table = csv.reader(dropwhile(lambda line: line.startswith("# "), file))
        header = [cell_text(name) for name in next(table, [])]
        if missing := [name for name in _NEEDED if name not in header]:
            raise ValueError(f"it has no column {', '.join(missing)}; docs/results-csv.md lists them all")
        if len(set(header)) < len(header):
            raise ValueError(f"two of its columns have the name {max(header, key=header.count)!r}")
        rows: list[Row] = []
        for cells in filter(None, table):
            if len(cells) != len(header):
                raise ValueError(f"line {table.line_num} has {len(cells)} cells, its header {len(header)}")
            rows.append(dict(zip(header, map(cell_text, cells), strict=True)))
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
        control = load_family(family, check=False).space.control
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
    profiles = tuple(_profile_read(row, kernel) for kernel in kernels if row[f"registers_{kernel}"])
    notes, same_as = parsed_remarks((row.get("notes") or "").split(" | "), configuration)
    return Trial(
        family=key[0], workload=key[1], device=key[2], configuration=configuration,
        state=row["state"],
        reason=row.get("reason") or "",
        profiles=profiles,
        measurement=_measurement(row, timed) if row["state"] == "measured" else None,
        phases_ms={p: float(row[f"{p}_ms"]) for p in PHASES if row.get(f"{p}_ms")},
        notes=tuple(filter(None, notes)),
        same_as=same_as,
        errors={name.removeprefix(ERROR): float(row[name]) for name in _error_columns(row) if row[name]},
    )  # fmt: skip


def _error_columns(header: Iterable[str]) -> list[str]:
    """Those behind the state: a policy may have such a name."""
    names = list(header)
    return [name for name in names[names.index("state") :] if name.startswith(ERROR)]


def _profile_read(row: Row, kernel: str) -> KernelProfile:
    counts = {name: _count(row, f"{name}_{kernel}") for name in _COUNTS}
    occupancy = float(row.get(f"occupancy_{kernel}") or 0)
    limit = row.get(f"limited_by_{kernel}") or ""
    return KernelProfile(kernel=kernel, occupancy=occupancy, limited_by=limit, **counts)


def _measurement(row: Row, timed: Sequence[str]) -> Measurement:
    def figure(name: str, missing: float = 0.0) -> float:
        value = float(row.get(name) or missing)
        if not 0 <= value < math.inf and not name.endswith("spread_relative"):
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
        figures={
            name: Figure(
                _count(row, name) if unit(name) == "bytes" else figure(name),
                figure(_SPREAD[name]) if row.get(_SPREAD.get(name, "")) else None,
            )
            for name in QUANTITIES
            if name != TIME and row.get(name)
        },
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
) -> Provenance:
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
    return Provenance.from_dict({**about, "counters": counters})
