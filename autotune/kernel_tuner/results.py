"""What came of tuning, as Kernel Tuner has it: a dict for each configuration, an environment, files."""

import inspect
import json
import os
import re
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from autotune import __version__
from autotune.errors import StoreError, UsageError
from autotune.files import write_text
from autotune.kernel_tuner.cache import ERRORS
from autotune.kernel_tuner.formula import evaluated
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.t4 import metadata_t4, results_t4
from autotune.record import Provenance, Trial, time_ms

TIMES = {"compile_time": "compile", "verification_time": "verify", "benchmark_time": "measure"}


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


_ERRORS: Mapping[str, type[str]] = MappingProxyType(
    {kind.__name__: kind for kind in (InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}
)


def error(name: str) -> str:
    """What stands in ``__error__``: a text, of a class of that name."""
    return _ERRORS.get(name, RuntimeFailedConfig)(name)


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
                result[name] = metric(result) if callable(metric) else _metric(name, metric, result)
            except Exception as problem:  # noqa: BLE001 - of a caller's function
                if name not in self._told:
                    self._told.add(name)
                    why = f"{type(problem).__name__}: {problem}"
                    warn(f"metric {name!r} has no value, and is left out: {why}")


def result(parameters: Parameters, trial: Trial, metrics: Metrics, wrong: Collection[str]) -> dict[str, Any]:
    """One configuration as Kernel Tuner has it; milliseconds."""
    found = parameters.given(trial.configuration)
    measured = trial.measurement
    if measured and trial.configuration.id not in wrong:
        found["time"] = time_ms(trial)
        found["times"] = list(measured.times_ms) or [measured.median_ms]
        metrics.add(found)
    else:
        found["__error__"] = error("RuntimeFailedConfig" if measured else ERRORS[trial.state])
        found["reason"] = "refused by verify" if measured else trial.reason
    found |= {name: trial.phases_ms.get(phase, 0.0) for name, phase in TIMES.items()}
    return found | {
        "strategy_time": 0.0,
        "framework_time": 0.0,
        "timestamp": time.strftime("%Y-%m-%d %H:%M:%S%z"),
    }


def line(found: Mapping[str, Any], names: Iterable[str], verbose: bool) -> str:
    """One configuration in words."""
    told = get_config_string(found, [*names, "time"], {"time": "ms"})
    if "__error__" not in found:
        return told
    return f"{told}, {found['__error__']}{': ' + str(found.get('reason', '')) if verbose else ''}"


def _metric(name: str, text: str, result: Mapping[str, Any]) -> Any:
    """A metric that is a text over parameters, figures and the metrics before it."""
    words = {f"known_{number}": value for number, value in enumerate(result.values())}
    names = dict(zip(result, words, strict=True))
    written = "".join(names.get(part, part) for part in re.split(r"([A-Za-z_]\w*)", text))
    return evaluated(written, words, where=f"metric {name}")


def environment(
    results: Sequence[Mapping[str, Any]], goal: tuple[str, bool], began: float, simulated_ms: float = 0.0
) -> dict[str, Any]:
    """The totals of the phases, and the best configuration by ``goal``, a figure and whether more is better; where none
    has that figure, by time."""
    objective, is_higher = goal
    if objective != "time" and not any(objective in one for one in results):
        warn(f"no configuration has a {objective}: best_config is the fastest")
        objective, is_higher = "time", False
    totals = {
        f"total_{name}": sum(one.get(name, 0.0) for one in results)
        for name in (*TIMES, "strategy_time", "framework_time")
    }
    elapsed_ms = (time.perf_counter() - began) * 1e3 + simulated_ms
    return {
        "autotune_version": __version__,
        "best_config": dict(get_best_config(results, objective, is_higher)),
        **totals,
        "overhead_time": elapsed_ms - sum(totals.values()),
    }


def device_environment(about: Provenance) -> dict[str, Any]:
    """What is known of the device."""
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
    output_filename: str | os.PathLike[str],
    results: Sequence[Mapping[str, Any]],
    tune_params: Mapping[str, Any],
    objective: str = "time",
) -> None:
    """Write results as a T4 file. Raises StoreError."""
    content = results_t4(results, tune_params, objective)
    write_text(json_path(output_filename), json.dumps(content, default=_plain) + "\n")


def json_path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    return Path(text if text.endswith(".json") else f"{text}.json")


def store_results(
    results_filename: str | os.PathLike[str],
    kernel_name: str,
    kernel_string: Any,
    tune_params: Mapping[str, Any],
    problem_size: Any,
    results: Sequence[Mapping[str, Any]],
    env: Mapping[str, Any],
    top: float = 3,
    objective: str | None = None,
    objective_higher_is_better: bool | None = None,
) -> None:
    """Write the configurations within ``top`` percent of the best one to a file, in place of what it has for the same
    device and problem size. Raises UsageError, StoreError."""
    wanted, is_higher = goal(objective, objective_higher_is_better)
    best = float(get_best_config(results, wanted, is_higher)[wanted])
    known = [one for one in results if isinstance(one.get(wanted), int | float)]
    share = abs(best) * top / 100
    near = [one for one in known if abs(float(one[wanted]) - best) <= share]
    path = Path(results_filename)
    told: dict[str, Any] = {
        "version_number": "1.0", "kernel_name": kernel_name, "objective": wanted,
        "objective_higher_is_better": is_higher, "tunable_parameters": list(tune_params), "data": [],
    }  # fmt: skip
    if isinstance(kernel_string, str):
        told["kernel_string"] = kernel_string
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["data"] if path.is_file() else []
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise StoreError(f"{path} is no file of store_results: {problem}") from None
    size = "x".join(map(str, problem_size if isinstance(problem_size, list | tuple) else [problem_size]))
    place = {
        "device_name": re.sub("[^0-9a-zA-Z]+", "_", str(env["device_name"]).strip()),
        "problem_size": size,
    }
    told["data"] = [one for one in before if any(one.get(key) != value for key, value in place.items())] + [
        {**place, "tunable_parameters": {name: one[name] for name in tune_params}, wanted: one[wanted]}
        for one in near
    ]
    write_text(path, json.dumps(told, indent="", default=_plain))


def goal(objective: Any, higher: bool | None) -> tuple[str, bool]:
    """The figure by which results are ranked, and whether more of it is better: of a rate it is."""
    name = objective or "time"
    if higher is None:
        higher = name == "fitness" or str(name).endswith(("/s", "/W", "/J"))
    return name, bool(higher)


def store_metadata_file(metadata_filename: str | os.PathLike[str]) -> None:
    """Write what is known of this machine as T4 metadata. Raises StoreError."""
    write_text(json_path(metadata_filename), json.dumps(metadata_t4(), indent=2) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not written as JSON")
