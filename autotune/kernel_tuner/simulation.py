"""Tuning without a device: times come from a cache file, and a search visits them as it would measure them."""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration
from autotune.errors import UsageError
from autotune.kernel_tuner.cache import read_cache
from autotune.kernel_tuner.exchange import PHASES
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.results import Metrics, environment, error, warn
from autotune.search import Search, Strategy, list_configurations

_MEASURED = [name for name, ours in PHASES.items() if ours]  # the phases that a configuration takes


def simulate(
    path: Path, parameters: Parameters, search: Mapping[str, Any], metrics: Metrics, goal: tuple[str, bool],
    tell: Callable[[Mapping[str, Any]], None], began: float,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:  # fmt: skip
    """The results of a ``search`` (the words of a sweep) that takes its times from the cache file ``path``; a limit in
    seconds is of the time that measuring took then. Raises StoreError, UsageError."""
    content = read_cache(path)

    def entry(configuration: Configuration) -> Any:
        return content["cache"].get(",".join(map(str, parameters.get_given(configuration).values())))

    walk = Search(
        parameters.space, list_configurations(parameters.space),
        Strategy(sampler=search["search"], trials=search.get("trials"), seed=search["seed"]),
        exclusion=lambda one: "" if isinstance(entry(one), dict) else "it is not in the cache file",
    )  # fmt: skip
    results: list[dict[str, Any]] = []
    spent_ms = thought_ms = 0.0
    while spent_ms <= 1e3 * search.get("time", math.inf):
        asked = time.perf_counter()
        chosen = walk.ask()
        thought_ms += (time.perf_counter() - asked) * 1e3
        if chosen is None:
            break
        made = _result(entry(chosen), metrics)
        walk.tell(chosen, _cost(made, *goal))
        spent_ms += sum(made.get(name) or 0.0 for name in _MEASURED)
        results.append(made)
        tell(made)
    if walk.excluded:
        warn(f"{len(walk.excluded)} configurations are not in {path}: left out")
    if not any("time" in one for one in results):
        raise UsageError(f"{path} has a time for none of the {len(results)} configurations that were visited")
    worked_ms = (time.perf_counter() - began) * 1e3 - thought_ms
    for made in results:
        made |= {"strategy_time": thought_ms / len(results), "framework_time": worked_ms / len(results)}
    return results, {
        "device_name": str(content.get("device_name", "")),
        "simulation": True,
        "simulated_time": spent_ms,
        **environment(results, goal, began, spent_ms),
    }


def _cost(found: Mapping[str, Any], objective: str, is_higher: bool) -> float | None:
    """What a search makes small."""
    figure = found.get(objective)
    if not isinstance(figure, int | float) or (is_higher and figure <= 0):
        return None
    return 1 / figure if is_higher else figure


def _result(kept: Mapping[str, Any], metrics: Metrics) -> dict[str, Any]:
    """A result from a line of the file, where the time of a failure is its name."""
    failed = kept.get("__error__") or (kept["time"] if isinstance(kept.get("time"), str) else None)
    found = dict(kept)
    if failed:
        found.pop("time", None)
        found["__error__"] = error(str(failed))
    else:
        metrics.add(found)
    return found
