"""The T4 format of the autotuning community (schema 1.0.0): a study written as its results, and read from them.

T4 has neither a family nor a device; autotune keeps those in the file's ``metadata``, which the schema leaves free.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from autotune.declaration import Configuration, PolicyValue
from autotune.errors import StoreError
from autotune.files import write_text
from autotune.measure import median, spread
from autotune.record.decision import time_ms
from autotune.record.kernel_tuner import imported, value_of
from autotune.record.study import Study
from autotune.record.trial import STATES, Measurement, State, Trial

__all__ = ["from_t4", "to_t4", "write_t4"]


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


def to_t4(study: Study) -> dict[str, Any]:
    """``study`` as a T4 results file: ``time`` in milliseconds is the objective, a median; single samples are not
    recorded, so ``runtimes`` are empty. ``correctness`` is 1 for what was compared with the reference and found right,
    else 0."""
    return {
        "schema_version": "1.0.0",
        "metadata": {
            "timeunit": "milliseconds",
            "autotune": {
                "family": study.family, "workload": study.workload, "device": study.device,
                "device_name": study.about.get("device_name", study.device), "identity": study.identity,
                "control": dict(study.control),
                "presets": {name: dict(one) for name, one in study.presets.items()},
            },
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
        name = Path(where).stem
        identity = (
            str(ours.get("family", name)),
            str(ours.get("workload", name)),
            str(ours.get("device", "unknown")),
        )
        factor = _factor(metadata.get("timeunit") or "milliseconds")
        trials = [_trial(result, identity, factor) for result in content["results"]]
        values: dict[str, list[PolicyValue]] = {}
        for trial in trials:
            for policy, value in trial.configuration.items():
                found = values.setdefault(policy, [])
                found += [] if value in found else [value]
        about: dict[str, Any] = {"title": f"imported from {Path(where).name}"}
        if "device_name" in ours:
            about["device_name"] = ours["device_name"]
        return imported(identity, trials, ours, about, values)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise StoreError(
            f"cannot read {where} as results in the T4 format: {type(problem).__name__}: {problem}"
        ) from None


def _result(study: Study, trial: Trial) -> dict[str, Any]:
    phases, measured = trial.phases_ms, trial.measurement
    figures: list[tuple[str, float | str, str]] = []
    if measured:
        figures += [
            ("time", time_ms(trial), "ms"), ("minimum", measured.minimum_ms, "ms"),
            ("spread_relative", measured.spread, ""), ("samples", measured.samples, ""),
            ("footprint", measured.footprint_bytes, "B"), ("transferred", measured.transfer_bytes, "B"),
        ]  # fmt: skip
        figures += [(f"registers_{p.kernel}", p.registers, "") for p in trial.profiles if p.registers]
        figures += [(f"occupancy_{p.kernel}", p.occupancy, "") for p in trial.profiles if p.registers]
    else:
        figures += [("state", trial.state, ""), ("reason", trial.reason, "")]
    return {
        "timestamp": str(study.about.get("date", "")),
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
        "measurements": [{"name": name, "value": value, "unit": unit} for name, value, unit in figures],
    }


def _trial(result: Mapping[str, Any], identity: tuple[str, str, str], factor: float) -> Trial:
    configuration = Configuration({str(k): value_of(v) for k, v in result["configuration"].items()})
    found = {str(m["name"]): m for m in result.get("measurements") or ()}
    times = result.get("times") or {}
    phases = {
        phase: float(times[name]) * factor
        for phase, name in (
            ("compile", "compilation_time"), ("compile", "compilation"), ("verify", "validation"),
            ("measure", "benchmark"),
        )
        if times.get(name)
    }  # fmt: skip
    state: State = _STATES[result["invalidity"]]
    if state != "measured":
        told = found.get("state", {}).get("value")
        state = told if told in STATES and told != "measured" else state
        reason = str(found.get("reason", {}).get("value") or f"T4: {result['invalidity']}")
        return Trial(
            family=identity[0], workload=identity[1], device=identity[2], configuration=configuration, state=state,
            reason=reason, phases_ms=phases,
        )  # fmt: skip
    runtimes = [float(one) * factor for one in times.get("runtimes") or ()]
    objective = (result.get("objectives") or ["time"])[0]
    ms = median(runtimes) if runtimes else _figure(found[objective], factor)
    if not (math.isfinite(ms) and ms > 0):
        raise ValueError(f"the time {ms} of {configuration.id} is none")
    told_spread = found.get("spread_relative", {}).get("value", spread(runtimes) if runtimes else 1.0)
    measurement = Measurement(
        median_ms=ms,
        minimum_ms=min(runtimes, default=_figure(found["minimum"], factor) if "minimum" in found else ms),
        spread=float(told_spread),
        samples=int(found.get("samples", {}).get("value", len(runtimes) or 1)),
        transfer_bytes=int(found.get("transferred", {}).get("value", 0)),
        footprint_bytes=int(found.get("footprint", {}).get("value", 0)),
    )  # fmt: skip
    return Trial(
        family=identity[0], workload=identity[1], device=identity[2], configuration=configuration, state=state,
        measurement=measurement, phases_ms=phases,
    )  # fmt: skip


def _figure(measurement: Mapping[str, Any], factor: float) -> float:
    unit = str(measurement.get("unit") or "")
    return float(measurement["value"]) * (_factor(unit) if unit else factor)


def _factor(unit: str) -> float:
    if unit not in _MS:
        raise ValueError(f"unit {unit!r} of a time is not one of {', '.join(_MS)}")
    return _MS[unit]
