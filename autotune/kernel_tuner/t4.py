"""The T4 format of the autotuning community (schema 1.0.0): a study written as its results, and read from them.

T4 has neither a family nor a device; autotune keeps those in the file's ``metadata``, which the schema leaves free.
"""

import json
import platform
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune import __version__
from autotune.files import write_text
from autotune.kernel_tuner.exchange import FAILED, PHASES, Foreign, entry, reading
from autotune.record import Provenance, State, Study, describe_study

INVALIDITY: Mapping[State, str] = {
    "measured": "correct", "excluded": "constraints", "compile_failed": "compile", "launch_failed": "runtime",
    "wrong_result": "correctness", "timed_out": "timeout", "crashed": "runtime",
}  # fmt: skip

# The other way round: of several states, the first.
_STATES: Mapping[str, State] = {name: state for state, name in reversed([*INVALIDITY.items()])}

# "miliseconds" stands so in the files of the autotuning community's benchmark hub.
_MS = {
    "s": 1e3, "seconds": 1e3, "ms": 1.0, "milliseconds": 1.0, "miliseconds": 1.0, "us": 1e-3, "µs": 1e-3,
    "microseconds": 1e-3, "ns": 1e-6, "nanoseconds": 1e-6,
}  # fmt: skip

# T4's name of a phase, and Kernel Tuner's; milliseconds. Kernel Tuner's files say compilation.
_PHASES = {
    "compilation_time": "compile_time", "compilation": "compile_time", "benchmark": "benchmark_time",
    "framework": "framework_time", "search_algorithm": "strategy_time", "validation": "verification_time",
}  # fmt: skip
_ASIDE = {*_PHASES.values(), "timestamp", "times", "__error__"}


def to_t4(study: Study) -> dict[str, Any]:
    """``study`` as a T4 results file: ``time`` in milliseconds is the objective, a median; single samples are not
    recorded, so ``runtimes`` are empty. ``correctness`` is 1 for what was compared with the reference and found right,
    else 0."""
    told = {**describe_study(study), "device_name": study.about.device_name or study.device}
    date = {"timestamp": study.about.date}
    results = [(trial.configuration, entry(trial) | date) for trial in study.trials]
    return {**_content(results, "time"), "metadata": {"timeunit": "milliseconds", "autotune": told}}


def write_t4(study: Study, path: str | Path) -> Path:
    """Write ``to_t4`` to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, json.dumps(to_t4(study), indent=1) + "\n")


def from_t4(content: Mapping[str, Any], where: str) -> Study:
    """The study in T4 results; ``where`` is named in messages.

    A time is the median of ``runtimes`` where they are there, else the first objective among the measurements, in its
    unit, else in the file's ``timeunit``. In a file that autotune wrote, names and presets are those of the record;
    elsewhere the file's name stands for family and workload. Raises StoreError.
    """
    with reading(where, "results in the T4 format"):
        metadata = content.get("metadata") or {}
        ours: Mapping[str, Any] = metadata.get("autotune", {})
        name = Path(where).name.removesuffix(".gz").removesuffix(".json")
        study = Foreign(ours, name, name, "unknown")
        factor = _factor(metadata.get("timeunit") or "milliseconds")
        for result in content["results"]:
            state = _STATES[result["invalidity"]]
            line = _line(result, factor, state == "measured")
            study.add(result["configuration"], line, state, f"T4: {result['invalidity']}")
        device = str(ours.get("device_name", ""))
        return study.study(Provenance(title=f"imported from {Path(where).name}", device_name=device))


def results_t4(
    results: Sequence[Mapping[str, Any]], parameters: Collection[str], objective: str
) -> dict[str, Any]:
    """Kernel Tuner's results (a mapping for each configuration) as T4, as Kernel Tuner writes them."""
    apart = [
        ({name: one[name] for name in parameters}, {n: v for n, v in one.items() if n not in parameters})
        for one in results
    ]
    return _content(apart, objective)


def _content(
    results: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], objective: str
) -> dict[str, Any]:
    return {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds"},
        "results": [_result(configuration, told, objective) for configuration, told in results],
    }


def _result(configuration: Mapping[str, Any], told: Mapping[str, Any], objective: str) -> dict[str, Any]:
    error = FAILED.get(told.get("__error__", ""), "measured")
    times = {name: told.get(key, 0.0) for name, key in _PHASES.items()}
    figures = {name: value for name, value in told.items() if name not in _ASIDE}
    return {
        "timestamp": str(told.get("timestamp", "")),
        "configuration": dict(configuration),
        "objectives": [objective],
        "times": {**times, "runtimes": list(told.get("times", ()))},
        "invalidity": INVALIDITY[told.get("state", error)],
        "correctness": 0 if "__error__" in told else 1,
        "measurements": [{"name": n, "value": value, "unit": _unit(n)} for n, value in figures.items()],
    }


def _unit(figure: str) -> str:
    return "ms" if figure in ("time", "minimum_ms") else "B" if figure.endswith("_bytes") else ""


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


def _line(result: Mapping[str, Any], factor: float, is_measured: bool) -> dict[str, Any]:
    """A result in Kernel Tuner's words; ``factor`` makes milliseconds of the file's times."""
    measurements = {str(m["name"]): m for m in result.get("measurements") or ()}
    times = result.get("times") or {}
    line = {name: m["value"] for name, m in measurements.items() if "value" in m and name not in _ASIDE}
    phases = {name: key for name, key in _PHASES.items() if PHASES[key] and times.get(name)}
    line |= {key: float(times[name]) * factor for name, key in phases.items()}
    line["times"] = [float(one) * factor for one in times.get("runtimes") or ()]
    if is_measured and not line["times"]:
        line["time"] = _figure(measurements[(result.get("objectives") or ["time"])[0]], factor)
    return line


def _figure(measurement: Mapping[str, Any], factor: float) -> float:
    unit = str(measurement.get("unit") or "")
    return float(measurement["value"]) * (_factor(unit) if unit else factor)


def _factor(unit: str) -> float:
    if unit not in _MS:
        raise ValueError(f"unit {unit!r} of a time is not one of {', '.join(_MS)}")
    return _MS[unit]
