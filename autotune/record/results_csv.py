"""The record as one table: a row per trial, failures too, units in the column names."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.compile import KernelProfile
from autotune.declaration import Configuration, load_family
from autotune.errors import AutotuneError, StoreError
from autotune.files import cell_text, clean, csv_text, read_packed, write_text
from autotune.measure import OBJECTIVES, QUANTITIES, TIME, Figure, unit
from autotune.record.decision import rank_trials
from autotune.record.provenance import Provenance
from autotune.record.study import Study
from autotune.record.trial import STATES, Measurement, Trial

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

# In their order; docs/reference/results-csv.md says what each of them is.
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
_KERNEL, _KERNEL_MS = "_<kernel>", re.compile("kernel_(.+)_ms")
_PROFILE = [n.removesuffix(_KERNEL) for n in COLUMNS if n.endswith(_KERNEL) and not n.startswith(COUNTER)]
_COUNTS = [name for name in _PROFILE if name not in ("occupancy", "limited_by")]

# The columns that every table has: before the policies, behind them, and behind rates and what there is of each kernel.
_FIXED = [name for name in COLUMNS if "<" not in name]
_STATE, _COSTS = _FIXED.index("state"), _FIXED.index("transform_ms")
_HEAD, _MIDDLE, _TAIL = _FIXED[:_STATE], _FIXED[_STATE:_COSTS], _FIXED[_COSTS:]
_STUDY = _FIXED[_FIXED.index("device_name") :]


def policy_columns(studies: Sequence[Study]) -> dict[str, str]:
    """Policy name -> its column, in declared order where the record tells it."""
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
    policies, kernels = policy_columns(studies), _kernels(studies)
    rows = [row for study in studies for row in _rows(study, policies)]
    columns = dict.fromkeys(name for row in rows for name in row)
    errors, counters = ([name for name in columns if name.startswith(of)] for of in (ERROR, COUNTER))
    rates = [f"{unit}{RATE}" for study in studies for unit in study.about.needs]
    order = dict.fromkeys(
        [*_HEAD, *policies.values(), *_MIDDLE, *errors, *rates, *_per_kernel(kernels), *counters, *_TAIL]
    )
    frame = pd.DataFrame(rows, columns=[name for name in order if name in columns or name not in EXTRA])
    counts = ["rank", "samples", *(name for name in QUANTITIES if unit(name) == "bytes" and name in frame)]
    counts += [f"{name}_{kernel}" for name in _COUNTS for kernel in kernels]
    return frame.astype(dict.fromkeys(counts, "Int64"))  # a blank must not turn 32 into 32.0


def write_results(studies: Iterable[Study], path: str | Path) -> Path:
    """Write ``results_frame`` as CSV to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, csv_text(results_frame(studies)))


def _per_kernel(kernels: Sequence[str]) -> list[str]:
    times = [f"kernel_{kernel}_ms" for kernel in kernels]
    return times + [f"{name}_{kernel}" for kernel in kernels for name in _PROFILE]


def _kernels(studies: Iterable[Study]) -> list[str]:
    trials = [trial for study in studies for trial in study.trials]
    return list(dict.fromkeys(k for t in trials for k in (*(p.kernel for p in t.profiles), *t.kernel_ms)))


def _rows(study: Study, policies: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A row for each trial. ``policies`` are ``policy_columns``."""
    presets: dict[str, str] = {}
    for name, configuration in study.presets.items():
        presets[configuration.id] = f"{presets.get(configuration.id, '')} {clean(name)}".strip()
    ranks = {
        trial.configuration: rank for rank, trial in enumerate(rank_trials(study.trials, study.decision), 1)
    }
    said = {name: getattr(study.about, name) for name in _STUDY}
    for trial in study.trials:
        one = trial.configuration
        row: dict[str, Any] = {
            "family": study.family,
            "workload": study.workload,
            "device": study.device,
            "configuration": one.id,
            "preset": presets.get(one.id),
            "state": trial.state,
            "reason": trial.reason or None,
            "rank": ranks[one] if trial.measurement else None,
            "abandoned": bool(trial.measurement and trial.measurement.abandoned),
            "notes": " | ".join(trial.remarks) or None,
            "identity": study.identity,
            **{name: value or None if isinstance(value, str) else value for name, value in said.items()},
            **{policies[name]: value for name, value in one.items()},
            **(_times(study, trial.measurement) if trial.measurement else {}),
            **{f"{ERROR}{clean(name)}": value for name, value in trial.errors.items()},
            **{f"{phase}_ms": trial.phases_ms.get(phase) for phase in PHASES},
        }
        for profile in trial.profiles:
            if profile.registers:  # on a cpu the compiler says nothing of a thread
                row |= {f"{name}_{profile.kernel}": getattr(profile, name) for name in _PROFILE}
        for kernel, counters in study.about.counters.get(one.id, {}).items():
            row |= {f"{COUNTER}{counter}_{kernel}": value for counter, value in counters.items()}
        yield {name: clean(value) if isinstance(value, str) else value for name, value in row.items()}


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
        if (figure := measured.figure(name)) and figure.spread is not None:
            row[column] = figure.spread
    if measured.time_ms > 0:
        of = study.about
        amounts = {"operations": of.operations, "bytes": of.bytes, **of.needs}
        row |= {f"{unit}{RATE}": n / (measured.time_ms / 1000) for unit, n in amounts.items() if n}
    return row


_NEEDED = ("family", "workload", "device", "preset", "state", "median_ms")
Row = Mapping[str, Any]  # texts, and whole numbers of policies that have no others


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
    with io.StringIO(read_packed(path), newline="") as file:
        table = csv.reader(dropwhile(lambda line: line.startswith("# "), file))
        header = [cell_text(name) for name in next(table, [])]
        if missing := [name for name in _NEEDED if name not in header]:
            raise ValueError(
                f"it has no column {', '.join(missing)}; docs/reference/results-csv.md lists them all"
            )
        if len(set(header)) < len(header):
            raise ValueError(f"two of its columns have the name {max(header, key=header.count)!r}")
        rows: list[dict[str, Any]] = []
        for cells in filter(None, table):
            if len(cells) != len(header):
                raise ValueError(f"line {table.line_num} has {len(cells)} cells, its header {len(header)}")
            rows.append(dict(zip(header, map(cell_text, cells), strict=True)))
    policies = _policies(header)
    for column in policies.values():
        if all(re.fullmatch(r"-?\d+", row[column]) for row in rows if row[column]):
            for row in rows:
                row[column] = int(row[column]) if row[column] else ""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row["family"], row["workload"], row["device"], row.get("identity", ""))
        groups.setdefault(key, []).append(row)
    return [_study(key, group, policies, header) for key, group in groups.items()]


def _policies(header: Sequence[str]) -> dict[str, str]:
    """Policy -> its column. A policy whose name another column has is called ``policy_<name>`` there."""
    columns = header[header.index("preset") + 1 : header.index("state")]
    if not columns:
        raise ValueError("it has no column of a policy between preset and state")
    others = set(header) - set(columns)
    return {bare if (bare := c.removeprefix("policy_")) in others else c: c for c in columns}


def _study(
    key: tuple[str, ...], rows: Sequence[Row], policies: Mapping[str, str], header: Sequence[str]
) -> Study:
    own = {name: column for name, column in policies.items() if any(row[column] != "" for row in rows)}
    kernels = [name.removeprefix("registers_") for name in header if name.startswith("registers_")]
    trials = []
    presets: dict[str, Configuration] = {}
    for row in rows:
        one = Configuration({name: row[column] for name, column in own.items()})
        trials.append(_trial(key, row, one, kernels))
        for name in (row["preset"] or "").split():
            presets.setdefault(name, one)
    if "control" not in presets:
        presets["control"] = _find_control(key[0], trials[0].configuration)
    if not presets["control"]:
        raise ValueError(
            f"{key[0]} on {key[1]} has no row with the preset control, to which all others are compared"
        )
    return Study(
        family=key[0], workload=key[1], device=key[2], identity=key[3], control=presets["control"],
        presets=presets, about=_read_provenance(rows, trials, own, kernels), trials=tuple(trials),
    )  # fmt: skip


def _find_control(family: str, like: Configuration) -> Configuration:
    """The control of a family that is installed here and still has the policies of ``like``, else none: a sweep of a
    preset need not have tried it."""
    try:
        control = load_family(family, check=False).space.control
    except AutotuneError:
        return Configuration({})
    if control.keys() != like.keys():
        return Configuration({})
    return Configuration(
        {name: control[name] if isinstance(like[name], int) else str(control[name]) for name in like}
    )


def _trial(key: tuple[str, ...], row: Row, configuration: Configuration, kernels: Sequence[str]) -> Trial:
    if row["state"] not in STATES:
        raise ValueError(f"state {row['state']!r} is not one of {', '.join(STATES)}")
    return Trial(
        family=key[0], workload=key[1], device=key[2], configuration=configuration,
        state=row["state"],
        reason=row.get("reason") or "",
        profiles=tuple(_profile(row, kernel) for kernel in kernels if row[f"registers_{kernel}"]),
        measurement=_measurement(row) if row["state"] == "measured" else None,
        phases_ms={p: float(row[f"{p}_ms"]) for p in PHASES if row.get(f"{p}_ms")},
        notes=tuple(filter(None, (row.get("notes") or "").split(" | "))),
        errors={name.removeprefix(ERROR): float(cell) for name, cell in _list_measured(row) if name.startswith(ERROR)},
    )  # fmt: skip


def _list_measured(row: Row) -> list[tuple[str, str]]:
    """The cells behind the state that are not blank: a policy may have the name of a figure."""
    cells = list(row.items())
    return [(name, cell) for name, cell in cells[list(row).index("state") :] if cell]


def _profile(row: Row, kernel: str) -> KernelProfile:
    counts: dict[str, Any] = {name: _count(row, f"{name}_{kernel}") for name in _COUNTS}
    occupancy = float(row.get(f"occupancy_{kernel}") or 0)
    limit = row.get(f"limited_by_{kernel}") or ""
    return KernelProfile(kernel=kernel, occupancy=occupancy, limited_by=limit, **counts)


def _measurement(row: Row) -> Measurement:
    median_ms = _number(row, "median_ms")
    if not median_ms:
        raise ValueError(f"median_ms {row['median_ms']!r} of a measured row is no time")
    return Measurement(
        median_ms=median_ms,
        minimum_ms=_number(row, "minimum_ms", median_ms),
        spread=_number(row, "spread_relative", 1.0),  # as of a single sample: nothing is known
        samples=_count(row, "samples", 1),
        kernel_ms={
            m[1]: _number(row, m[0]) for name, _ in _list_measured(row) if (m := _KERNEL_MS.fullmatch(name))
        },
        retimed_ms=_number(row, "retimed_ms"),
        figures={
            name: Figure(
                _count(row, name) if unit(name) == "bytes" else _number(row, name),
                _number(row, _SPREAD[name]) if row.get(_SPREAD.get(name, "")) else None,
            )
            for name in QUANTITIES
            if name != TIME and row.get(name)
        },
        abandoned=row.get("abandoned") == "True",
    )


def _number(row: Row, name: str, missing: float = 0.0) -> float:
    value = float(row.get(name) or missing)
    if not 0 <= value < 2**63 and not name.endswith("spread_relative"):
        raise ValueError(f"{name} {row.get(name)!r} is no time and no count")
    return value


def _count(row: Row, name: str, missing: int = 0) -> int:
    return int(_number(row, name, missing))


def _read_provenance(
    rows: Sequence[Row], trials: Sequence[Trial], policies: Iterable[str], kernels: Sequence[str]
) -> Provenance:
    first = rows[0]
    about: dict[str, Any] = {
        name: first[name] for name in ("device_name", "driver", "compiler", "date") if first.get(name)
    }
    about["policies"] = {  # in the order of the columns, which is the declared one
        name: {"values": list(dict.fromkeys(t.configuration[name] for t in trials))} for name in policies
    }
    if first.get("clock_mhz"):
        about["clock_mhz"] = int(float(first["clock_mhz"]))
    if arch := re.search(r"\bsm_\d+[a-z]?\b", first.get("compiler") or ""):
        about["arch"] = arch[0]
    amounts: dict[str, float] = {}  # what the workload declared, from the rate that was made of it
    counters: dict[str, dict[str, dict[str, float]]] = {}
    for row, trial in zip(rows, trials, strict=True):
        for name, text in _list_measured(row):
            if name.startswith(COUNTER):
                # Of kernels whose names end alike, the longer one is meant.
                kernel = max((k for k in kernels if name.endswith(f"_{k}")), key=len, default="")
                counter = name.removeprefix(COUNTER).removesuffix(f"_{kernel}")
                of = counters.setdefault(trial.configuration.id, {}).setdefault(kernel, {})
                of[counter] = float(text)
            elif name.endswith(RATE) and trial.measurement:
                amounts.setdefault(name.removesuffix(RATE), float(text) * trial.measurement.time_ms / 1000)
    about |= {name: amounts.pop(name) for name in ("operations", "bytes") if name in amounts}
    return Provenance.from_dict({**about, "needs": amounts, "counters": counters})
