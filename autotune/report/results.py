"""The record as one table: a row per trial, failures too, units in the column names.

``results.csv`` is this table as text: it reads into pandas with ``pandas.read_csv(path)`` and no options, and back
into studies with ``recorded``.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from autotune.decision import ranked
from autotune.errors import StoreError
from autotune.record import Study
from autotune.trial import KernelProfile, Trial

__all__ = [
    "COLUMNS", "COUNTER", "PHASES", "PROFILE", "RATE", "cell", "clean", "csv_text", "policy_columns", "results_frame",
    "text_of", "write_results", "write_text",
]  # fmt: skip

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "family": "kernel family",
        "workload": "workload",
        "device": "device, as in the names of policy files",
        "configuration": "id of the configuration: policy=value pairs, sorted, joined by commas",
        "preset": "the presets that are this configuration, joined by spaces; blank when none is",
        "<policy>": "value of that policy, a column each (policy_<policy> where the plain name is taken)",
        "state": "measured, excluded, compile_failed, launch_failed, wrong_result, timed_out or crashed",
        "reason": "why it was not measured; blank when it was",
        "rank": "place among those measured, 1 the winner: tie set, other finalists, then what was timed once",
        "time_ms": "retimed_ms where there is one, else median_ms; sort by rank, as the two do not compare",
        "median_ms": "median time of one call of the whole plan",
        "minimum_ms": "shortest time of one call",
        "spread_relative": "half-width of the median's 95 % interval over the median",
        "samples": "timings taken",
        "retimed_ms": "median when re-timed in turn with the other finalists; blank when it was not one",
        "abandoned": "True when the first samples were so slow that sampling stopped",
        "operations_per_s": "the workload's declared operations over time_ms",
        "bytes_per_s": "the workload's declared bytes over time_ms",
        "<unit>_per_s": "the least that a call needs of that unit, as the family declares, over time_ms",
        "kernel_<kernel>_ms": "median time of that kernel within the plan",
        "counter_<counter>_<kernel>": "a hardware counter of that kernel, where it was profiled",
        "transform_ms": "host time to bring the inputs into this layout, once",
        "transfer_ms": "time to copy them to the device, once",
        "transfer_bytes": "bytes copied to the device for one call: its inputs in this layout, and what its plan sends",
        "footprint_bytes": "device memory that the data takes in this layout",
        "registers_<kernel>": "registers of a thread",
        "local_bytes_<kernel>": "stack frame of a thread",
        "spill_store_bytes_<kernel>": "registers spilled to memory, of a thread",
        "spill_load_bytes_<kernel>": "spilled registers read back, of a thread",
        "static_shared_bytes_<kernel>": "shared memory of a block, known when compiled",
        "dynamic_shared_bytes_<kernel>": "shared memory of a block, asked for at launch",
        "constant_bytes_<kernel>": "constant memory",
        "block_size_<kernel>": "threads of a block",
        "blocks_per_sm_<kernel>": "blocks that fit a multiprocessor at once",
        "occupancy_<kernel>": "theoretical occupancy, 0 to 1: active warps over the most that fit",
        "limited_by_<kernel>": "what limits the occupancy: registers, shared, warps, blocks or launch",
        "compile_ms": "wall time spent compiling",
        "place_ms": "wall time spent placing data on the device",
        "verify_ms": "wall time spent comparing the result with the reference",
        "measure_ms": "wall time spent measuring",
        "notes": "remarks on the measurement, joined by ' | '",
        "identity": "hash over sources, space, workload, compiler and device; rows that share it compare",
        "device_name": "the device's own name",
        "driver": "its driver's version",
        "clock_mhz": "clock of its multiprocessors at the end of the sweep; blank where nothing tells it",
        "compiler": "compiler, version, target and fixed options",
        "date": "when the sweep began, UTC",
    }
)  # fmt: skip

PROFILE = (
    "registers", "local_bytes", "spill_store_bytes", "spill_load_bytes", "static_shared_bytes",
    "dynamic_shared_bytes", "constant_bytes", "block_size", "blocks_per_sm", "occupancy", "limited_by",
)  # fmt: skip
COUNTER = "counter_"
RATE = "_per_s"
PHASES = ("compile", "place", "verify", "measure")
_STUDY = ("device_name", "driver", "clock_mhz", "compiler", "date")
_NOT_COUNTS = ("occupancy", "limited_by")

# A line feed survives CSV inside quotes. Other control characters do not (a lone carriage return ends a row
# for pandas, a NUL ends the field), so they are written as escapes.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), 127) if code not in (9, 10)}


def clean(text: str) -> str:
    """``text`` with line ends as line feeds, and as escapes what cannot be written: other control characters,
    and lone surrogates (from undecodable compiler output)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_ESCAPES)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def policy_columns(studies: Iterable[Study]) -> dict[str, str]:
    """Policy name -> its column, in declared order where ``about["policies"]`` tells it."""
    studies = tuple(studies)
    taken = {*_head(), *_middle(), *_per_kernel(_kernels(studies)), *_tail()}
    names = dict.fromkeys(
        name
        for study in studies
        for name in (*(n for n in study.about.get("policies", ()) if n in study.control), *study.control)
    )
    return {name: f"policy_{name}" if name in taken else clean(name) for name in names}


def results_frame(studies: Iterable[Study]) -> pd.DataFrame:
    """One row per trial of ``studies``, in their order, with the columns that ``COLUMNS`` documents.

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
    rates = dict.fromkeys(f"{unit}{RATE}" for study in studies for unit in study.about.get("needs", {}))
    head = [*_head(), *policies.values(), *_middle()]
    order = list(dict.fromkeys([*head, *rates, *_per_kernel(kernels), *counters, *_tail()]))
    frame = pd.DataFrame(rows, columns=order)
    counts = ["rank", "samples", "transfer_bytes", "footprint_bytes"]
    counts += [f"{name}_{kernel}" for name in PROFILE if name not in _NOT_COUNTS for kernel in kernels]
    for column in counts:
        frame[column] = frame[column].astype("Int64")  # a blank must not turn 32 into 32.0
    return frame


def write_results(studies: Iterable[Study], path: str | Path) -> Path:
    """Write ``results_frame`` as CSV to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, csv_text(results_frame(studies)))


def csv_text(frame: pd.DataFrame) -> str:
    """``frame`` as CSV whose texts no spreadsheet takes for formulas (see ``cell``); numbers stay as they are."""
    kept = {
        column: [cell(value) if isinstance(value, str) else value for value in frame[column]]
        for column in frame.columns
        if frame[column].dtype == object or pd.api.types.is_string_dtype(frame[column].dtype)
    }
    safe = frame.assign(**kept) if kept else frame
    return safe.rename(columns=cell).to_csv(index=False, lineterminator="\n")


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell(text: str) -> str:
    """``text`` as a cell: an apostrophe before what a spreadsheet would run, which makes it a text there. ``text_of``
    takes it away again."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def text_of(cell: str) -> str:
    """The text that ``cell`` was made from."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


def write_text(path: str | Path, text: str) -> Path:
    """Write ``text`` so that ``path`` never holds half of it. Raises StoreError."""
    path = Path(path)
    # A name that nobody can foresee, and made anew: a link that somebody planted is not followed.
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}; name a folder you may write to"
        ) from error
    return path


def _head() -> list[str]:
    return ["family", "workload", "device", "configuration", "preset"]


def _middle() -> list[str]:
    names = list(COLUMNS)
    return names[names.index("state") : names.index("<unit>_per_s")]


def _per_kernel(kernels: Iterable[str]) -> list[str]:
    kernels = tuple(kernels)
    times = [f"kernel_{kernel}_ms" for kernel in kernels]
    return times + [f"{name}_{kernel}" for kernel in kernels for name in PROFILE]


def _tail() -> list[str]:
    costs = ["transform_ms", "transfer_ms", "transfer_bytes", "footprint_bytes"]
    return [*costs, *(f"{phase}_ms" for phase in PHASES), "notes", "identity", *_STUDY]


def _kernels(studies: Iterable[Study]) -> list[str]:
    names: dict[str, None] = {}
    for study in studies:
        for trial in study.trials:
            names.update(dict.fromkeys(profile.kernel for profile in trial.profiles))
            if trial.measurement:
                names.update(dict.fromkeys(trial.measurement.kernel_ms))
    return list(names)


def _said(study: Study, name: str) -> Any:
    value = study.about.get(name)
    return clean(value) if isinstance(value, str) else value


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
        "notes": clean(" | ".join(trial.notes)) or None,
        "identity": study.identity,
        **{name: _said(study, name) for name in _STUDY},
    }
    for name, value in trial.configuration.items():
        row[policies[name]] = clean(value) if isinstance(value, str) else value
    if trial.measurement:
        row |= _times(study, trial)
    for profile in trial.profiles:
        row |= _profile(profile)
    for kernel, counters in study.about.get("counters", {}).get(trial.configuration.id, {}).items():
        row |= {f"{COUNTER}{counter}_{kernel}": value for counter, value in counters.items()}
    for phase in PHASES:
        row[f"{phase}_ms"] = trial.phases_ms.get(phase)
    return row


def _times(study: Study, trial: Trial) -> dict[str, Any]:
    measured = trial.measurement
    assert measured is not None
    row: dict[str, Any] = {f"kernel_{name}_ms": ms for name, ms in measured.kernel_ms.items()}
    row |= {
        "time_ms": measured.time_ms,
        "median_ms": measured.median_ms,
        "minimum_ms": measured.minimum_ms,
        "spread_relative": measured.spread,
        "samples": measured.samples,
        "retimed_ms": measured.retimed_ms or None,
        "transform_ms": measured.transform_ms,
        "transfer_ms": measured.transfer_ms,
        "transfer_bytes": measured.transfer_bytes or None,
        "footprint_bytes": measured.footprint_bytes,
    }
    for name in ("operations", "bytes"):
        if (amount := study.about.get(name)) and measured.time_ms > 0:
            row[f"{name}_per_s"] = amount / (measured.time_ms / 1000)
    for unit, amount in study.about.get("needs", {}).items():
        if measured.time_ms > 0:
            row[f"{unit}{RATE}"] = amount / (measured.time_ms / 1000)
    return row


def _profile(profile: KernelProfile) -> dict[str, Any]:
    if not profile.registers:  # a cpu: the compiler says nothing of a thread
        return {}
    return {f"{name}_{profile.kernel}": getattr(profile, name) for name in PROFILE}
