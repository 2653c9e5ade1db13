"""The T4 format of the autotuning community (schema 1.0.0): a study written as its results, and read from them.

T4 has neither a family nor a device; autotune keeps those in the file's ``metadata``, which the schema leaves free.
"""

import json
import platform
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np

from autotune import __version__
from autotune.declaration import Configuration
from autotune.errors import StoreError
from autotune.files import write_text
from autotune.kernel_tuner.cache import ERRORS
from autotune.kernel_tuner.exchange import Foreign, figures, policy_value
from autotune.record import Provenance, State, Study, Trial, added

INVALIDITY: Mapping[State, str] = MappingProxyType(
    {
        "measured": "correct", "excluded": "constraints", "compile_failed": "compile", "launch_failed": "runtime",
        "wrong_result": "correctness", "timed_out": "timeout", "crashed": "runtime",
    }
)  # fmt: skip

_STATES: Mapping[str, State] = {
    "correct": "measured", "constraints": "excluded", "compile": "compile_failed", "runtime": "launch_failed",
    "correctness": "wrong_result", "timeout": "timed_out",
}  # fmt: skip

# "miliseconds" stands so in the files of the autotuning community's benchmark hub.
_MS = {
    "s": 1e3, "seconds": 1e3, "ms": 1.0, "milliseconds": 1.0, "miliseconds": 1.0, "us": 1e-3, "µs": 1e-3,
    "microseconds": 1e-3, "ns": 1e-6, "nanoseconds": 1e-6,
}  # fmt: skip


_PHASES = {
    "compilation_time": "compile", "compilation": "compile", "validation": "verify", "benchmark": "measure",
}  # fmt: skip

# By T4's name, what Kernel Tuner's results call it; milliseconds.
_KERNEL_TUNER = {
    "compilation": "compile_time", "benchmark": "benchmark_time", "framework": "framework_time",
    "search_algorithm": "strategy_time", "validation": "verification_time",
}  # fmt: skip

_FIGURES = {"footprint": "footprint_bytes", "transferred": "transfer_bytes"}


def to_t4(study: Study) -> dict[str, Any]:
    """``study`` as a T4 results file: ``time`` in milliseconds is the objective, a median; single samples are not
    recorded, so ``runtimes`` are empty. ``correctness`` is 1 for what was compared with the reference and found right,
    else 0."""
    return {
        "schema_version": "1.0.0",
        "metadata": {
            "timeunit": "milliseconds",
            "autotune": {**added(study), "device_name": study.about.device_name or study.device},
        },
        "results": [_result(study, trial) for trial in study.trials],
    }  # fmt: skip


def write_t4(study: Study, path: str | Path) -> Path:
    """Write ``to_t4`` to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, json.dumps(to_t4(study), indent=1) + "\n")


def from_t4(content: Mapping[str, Any], where: str) -> Study:
    """The study in T4 results; ``where`` is named in messages.

    A time is the median of ``runtimes`` where they are there, else the first objective among the measurements, in its
    unit, else in the file's ``timeunit``. In a file that autotune wrote, names and presets are those of the record;
    elsewhere the file's name stands for family and workload. Raises StoreError.
    """
    try:
        metadata = content.get("metadata") or {}
        ours: Mapping[str, Any] = metadata.get("autotune", {})
        name = Path(where).name.removesuffix(".gz").removesuffix(".json")
        study = Foreign(ours, name, name, "unknown")
        factor = _factor(metadata.get("timeunit") or "milliseconds")
        for result in content["results"]:
            _add(study, result, factor)
        device = str(ours.get("device_name", ""))
        return study.study(Provenance(title=f"imported from {Path(where).name}", device_name=device))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise StoreError(
            f"cannot read {where} as results in the T4 format: {type(problem).__name__}: {problem}"
        ) from None


def results_t4(
    results: Sequence[Mapping[str, Any]], parameters: Collection[str], objective: str
) -> dict[str, Any]:
    """Kernel Tuner's results (a mapping for each configuration) as T4, as Kernel Tuner writes them."""
    return {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds"},
        "results": [_told(one, parameters, objective) for one in results],
    }


def _told(one: Mapping[str, Any], parameters: Collection[str], objective: str) -> dict[str, Any]:
    error = next((state for state, name in ERRORS.items() if name == one.get("__error__")), None)
    aside = {*parameters, *_KERNEL_TUNER.values(), "timestamp", "times", "__error__"}
    return {
        "timestamp": str(one.get("timestamp", "")),
        "configuration": {name: one[name] for name in parameters},
        "objectives": [objective],
        "times": {
            **{name: one.get(key, 0.0) for name, key in _KERNEL_TUNER.items()},
            "runtimes": list(one.get("times", ())),
        },
        "invalidity": INVALIDITY[error or "measured"],
        "correctness": 0 if error else 1,
        "measurements": [
            {"name": name, "value": value, "unit": "ms" if name.startswith("time") else ""}
            for name, value in one.items()
            if name not in aside
        ],
    }


def metadata_t4() -> dict[str, Any]:
    """What is known of this machine, as T4 metadata."""
    return {
        "schema_version": "1.0.0",
        "metadata": {
            "hardware": {
                "hardware_description": [{"machine": platform.machine(), "processor": platform.processor()}],
                "operating_system": platform.system(),
            },
            "environment": {
                "device_query": {},
                "requirements": [f"autotune=={__version__}", f"numpy=={np.__version__}"],
            },
        },
    }  # fmt: skip


def _result(study: Study, trial: Trial) -> dict[str, Any]:
    phases, measured = trial.phases_ms, trial.measurement
    told: list[tuple[str, float | str, str]]
    if measured:
        told = [
            ("time", trial.time_ms, "ms"), ("minimum", measured.minimum_ms, "ms"),
            ("spread_relative", measured.spread, ""), ("samples", measured.samples, ""),
            *((name, int(measured.value(figure)), "B") for name, figure in _FIGURES.items()),
        ]  # fmt: skip
        told += [(name, value, "") for name, value in figures(trial).items()]
    else:
        told = [("state", trial.state, ""), ("reason", trial.reason, "")]
    return {
        "timestamp": study.about.date,
        "configuration": dict(trial.configuration),
        "objectives": ["time"],
        "times": {
            "compilation_time": phases.get("compile", 0.0),
            # Kernel Tuner's files call it so, and have the device's time beside it.
            "compilation": phases.get("compile", 0.0),
            "benchmark": phases.get("place", 0.0) + phases.get("measure", 0.0),
            "validation": phases.get("verify", 0.0),
            "framework": 0.0,
            "search_algorithm": 0.0,
            "runtimes": [],
        },
        "invalidity": INVALIDITY[trial.state],
        "correctness": 1 if measured else 0,
        "measurements": [{"name": name, "value": value, "unit": unit} for name, value, unit in told],
    }


def _add(study: Foreign, result: Mapping[str, Any], factor: float) -> None:
    found = {str(m["name"]): m for m in result.get("measurements") or ()}
    told = {_FIGURES.get(name, name): m["value"] for name, m in found.items() if "value" in m}
    told["configuration"] = Configuration(
        {str(k): policy_value(v) for k, v in result["configuration"].items()}
    )
    times = result.get("times") or {}
    phases = {phase: float(times[name]) * factor for name, phase in _PHASES.items() if times.get(name)}
    state: State = _STATES[result["invalidity"]]
    if state != "measured":
        study.failed(told, phases, state, f"T4: {result['invalidity']}")
        return
    runtimes = [float(one) * factor for one in times.get("runtimes") or ()]
    objective = (result.get("objectives") or ["time"])[0]
    ms = median(runtimes) if runtimes else _figure(found[objective], factor)
    minimum = _figure(found["minimum"], factor) if "minimum" in found else ms
    study.measured(told, phases, runtimes, ms, minimum)


def _figure(measurement: Mapping[str, Any], factor: float) -> float:
    unit = str(measurement.get("unit") or "")
    return float(measurement["value"]) * (_factor(unit) if unit else factor)


def _factor(unit: str) -> float:
    if unit not in _MS:
        raise ValueError(f"unit {unit!r} of a time is not one of {', '.join(_MS)}")
    return _MS[unit]
