"""What came of tuning, as Kernel Tuner has it: a dict for each configuration, an environment, files."""

import inspect
import json
import os
import re
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune import __version__
from autotune.errors import StoreError, UsageError
from autotune.files import write_text
from autotune.kernel_tuner.exchange import PHASES, entry
from autotune.kernel_tuner.formula import expression
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.t4 import metadata_t4, results_t4
from autotune.record import Provenance, Trial

NOTHING = "power, clocks and registers are not observed (hardware counters: autotune profile)"


def warn(what: str) -> None:
    """A warning, at the line that called autotune."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("autotune."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(what, stacklevel=depth + 1)


class InvalidConfig(str):
    """In ``__error__``: it cannot run here."""


class CompilationFailedConfig(str):
    """In ``__error__``."""


class RuntimeFailedConfig(str):
    """In ``__error__``: it did not run to its end, or gave a wrong result."""


_ERRORS = {kind.__name__: kind for kind in (InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}


def error(name: str) -> str:
    """What stands in ``__error__``: a text, of a class of that name."""
    return _ERRORS.get(name, RuntimeFailedConfig)(name)


class _Observer:
    def __init__(self, *_given: Any, **_named: Any) -> None:
        warn(f"{type(self).__name__} has no counterpart in autotune: {NOTHING}")


def observer(name: str) -> type:
    """What stands for Kernel Tuner's observer of that name, to be called and inherited from: nothing is observed."""
    return type(name, (_Observer,), {})


class Metrics:
    """What a caller computes from each result. One that has no value (it reads what is not observed) is left out, with
    one warning. Raises UsageError for what is no metric."""

    def __init__(self, metrics: Mapping[str, Any]) -> None:
        for name, metric in metrics.items():
            if not isinstance(metric, str) and not callable(metric):
                raise UsageError(f"metric {name!r} is neither a text nor a function")
        self._metrics = dict(metrics)
        self._told: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def add(self, result: dict[str, Any]) -> None:
        for name, metric in self._metrics.items():
            try:
                if callable(metric):
                    result[name] = metric(result)
                else:
                    values = dict.fromkeys(result, ())
                    result[name] = expression(metric, values, f"metric {name}").evaluate(result)
            except Exception as problem:  # noqa: BLE001 - of a caller's function
                if name not in self._told:
                    self._told.add(name)
                    why = f"{type(problem).__name__}: {problem}"
                    warn(f"metric {name!r} has no value, and is left out: {why}")


def result(
    parameters: Parameters, trial: Trial, metrics: Metrics, refused: Collection[str]
) -> dict[str, Any]:
    """One configuration as Kernel Tuner has it; milliseconds."""
    given, told, measured = parameters.get_given(trial.configuration), entry(trial), trial.measurement
    if measured and trial.configuration.id in refused:
        phases = {name: told[name] for name in PHASES}
        told = {"__error__": "RuntimeFailedConfig", "reason": "rejected by verify", **phases}
    merged = {**given, **told, **given}
    if "__error__" in told:
        merged["__error__"] = error(told["__error__"])
    elif measured:
        merged["times"] = list(measured.times_ms) or [measured.median_ms]
        metrics.add(merged)
    return merged | {"timestamp": time.strftime("%Y-%m-%d %H:%M:%S%z")}


def line(found: Mapping[str, Any], names: Iterable[str], verbose: bool) -> str:
    """One configuration in words."""
    told = get_config_string(found, [*names, "time"], {"time": "ms"})
    if "__error__" not in found:
        return told
    return f"{told}, {found['__error__']}{': ' + str(found.get('reason', '')) if verbose else ''}"


def environment(
    results: Sequence[Mapping[str, Any]], goal: tuple[str, bool], began: float, simulated_ms: float = 0.0
) -> dict[str, Any]:
    """The totals of the phases, and the best configuration by ``goal``, a figure and whether more is better; where none
    has that figure, by time."""
    objective, is_higher = goal
    if objective != "time" and not any(objective in one for one in results):
        warn(f"no configuration has a {objective}: best_config is the fastest")
        objective, is_higher = "time", False
    totals = {f"total_{name}": sum(one.get(name, 0.0) for one in results) for name in PHASES}
    return {
        "autotune_version": __version__,
        "best_config": dict(get_best_config(results, objective, is_higher)),
        **totals,
        "overhead_time": (time.perf_counter() - began) * 1e3 + simulated_ms - sum(totals.values()),
    }


def device_environment(about: Provenance) -> dict[str, Any]:
    return {
        "device_name": about.device_name,
        "compute_capability": about.compute_capability.replace(".", ""),
        "cuda_version": about.driver,
        "device_properties": {
            "kind": about.device_kind, "arch": about.arch, "driver": about.driver, "compiler": about.compiler,
        },
    }  # fmt: skip


def get_best_config(
    results: Sequence[Mapping[str, Any]], objective: str, objective_higher_is_better: bool = False
) -> Mapping[str, Any]:
    """The result with the best figure. Raises UsageError where none has it."""
    known = [one for one in results if isinstance(one.get(objective), int | float)]
    if not known:
        raise UsageError(f"no configuration has a {objective}")
    return (max if objective_higher_is_better else min)(known, key=lambda one: float(one[objective]))


def get_config_string(
    params: Mapping[str, Any], keys: Sequence[str] | None = None, units: Mapping[str, str] | None = None
) -> str:
    """``name=value`` of each of ``keys``, floats to three places."""
    shown = {name: value for name, value in params.items() if not keys or name in keys}
    texts = {n: f"{v:.3f}" if isinstance(v, float) else str(v) for n, v in shown.items()}
    return ", ".join(f"{name}={text}{(units or {}).get(name, '')}" for name, text in texts.items())


def store_output_file(
    output_filename: str | os.PathLike[str], results: Sequence[Mapping[str, Any]],
    tune_params: Mapping[str, Any], objective: str = "time",
) -> None:  # fmt: skip
    """Write results as a T4 file. Raises StoreError."""
    content = results_t4(results, tune_params, objective)
    write_text(json_path(output_filename), json.dumps(content, default=_to_plain) + "\n")


def json_path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    return Path(text if text.endswith(".json") else f"{text}.json")


def store_results(
    results_filename: str | os.PathLike[str], kernel_name: str, kernel_string: Any,
    tune_params: Mapping[str, Any], problem_size: Any, results: Sequence[Mapping[str, Any]],
    env: Mapping[str, Any], top: float = 3, objective: str | None = None,
    objective_higher_is_better: bool | None = None,
) -> None:  # fmt: skip
    """Write the configurations within ``top`` percent of the best one to a file, in place of what it has for the same
    device and problem size. Raises UsageError, StoreError."""
    wanted, is_higher = choose_goal(objective, objective_higher_is_better)
    best = float(get_best_config(results, wanted, is_higher)[wanted])
    path = Path(results_filename)
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["data"] if path.is_file() else []
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise StoreError(f"{path} is no file of store_results: {problem}") from None
    place = {
        "device_name": re.sub("[^0-9a-zA-Z]+", "_", str(env["device_name"]).strip()),
        "problem_size": "x".join(map(str, np.atleast_1d(problem_size))),
    }
    told = {
        "version_number": "1.0", "kernel_name": kernel_name, "objective": wanted,
        "objective_higher_is_better": is_higher, "tunable_parameters": list(tune_params),
        **({"kernel_string": kernel_string} if isinstance(kernel_string, str) else {}),
        "data": [one for one in before if any(one.get(key) != value for key, value in place.items())] + [
            {**place, "tunable_parameters": {name: one[name] for name in tune_params}, wanted: one[wanted]}
            for one in results
            if isinstance(one.get(wanted), int | float) and abs(one[wanted] - best) <= abs(best) * top / 100
        ],
    }  # fmt: skip
    write_text(path, json.dumps(told, indent="", default=_to_plain))


def choose_goal(objective: str | None, is_higher: bool | None) -> tuple[str, bool]:
    """The figure by which results are ranked, and whether more of it is better: of a rate it is."""
    name = objective or "time"
    return name, name.endswith(("/s", "/W", "/J")) if is_higher is None else bool(is_higher)


def store_metadata_file(metadata_filename: str | os.PathLike[str]) -> None:
    """Write what is known of this machine as T4 metadata. Raises StoreError."""
    write_text(json_path(metadata_filename), json.dumps(metadata_t4(), indent=2) + "\n")


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not written as JSON")
