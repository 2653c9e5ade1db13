"""Tuning without a device: times come from a cache file, and a search visits them as it would measure them."""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autotune.declaration import Configuration, can_be_listed, listed
from autotune.errors import StoreError, UsageError
from autotune.kernel_tuner.cache import parsed
from autotune.kernel_tuner.parameters import Parameters
from autotune.kernel_tuner.results import TIMES, Metrics, environment, error, warn
from autotune.search import Search, Strategy

Results = tuple[list[dict[str, Any]], dict[str, Any]]


def read_cache(path: Path) -> dict[str, Any]:
    """The cache file ``path``, of Kernel Tuner or of autotune. Raises StoreError."""
    try:
        content = parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as problem:
        raise StoreError(f"cannot read {path}: {problem}") from None
    wanted = {"kernel_name": str, "problem_size": object, "tune_params": dict, "cache": dict}
    if not isinstance(content, dict) or any(
        not isinstance(content.get(key), of) for key, of in wanted.items()
    ):
        raise StoreError(f"{path} is no cache file of Kernel Tuner: it needs {', '.join(wanted)}")
    return content


def simulated(
    path: Path, parameters: Parameters, search: Mapping[str, Any], metrics: Metrics, goal: tuple[str, bool],
    tell: Callable[[Mapping[str, Any]], None], began: float,
) -> Results:  # fmt: skip
    """The results of a ``search`` (the words of a sweep) that takes its times from the cache file ``path``; a limit in
    seconds is of the time that measuring took then. Raises StoreError, UsageError."""
    content = read_cache(path)
    entries: Mapping[str, Any] = content["cache"]
    members = tuple(listed(parameters.space) or ()) if can_be_listed(parameters.space) else None
    limit_ms = 1e3 * search.get("time", math.inf)

    def entry(configuration: Configuration) -> Any:
        return entries.get(",".join(map(str, parameters.given(configuration).values())))

    walk = Search(
        parameters.space, members,
        Strategy(sampler=search["search"], trials=search.get("trials"), seed=search["seed"]),
        exclusion=lambda one: "" if isinstance(entry(one), dict) else "it is not in the cache file",
    )  # fmt: skip
    results: list[dict[str, Any]] = []
    spent_ms, thought_ms = 0.0, 0.0
    while spent_ms <= limit_ms:
        asked = time.perf_counter()
        chosen = walk.ask()
        thought_ms += (time.perf_counter() - asked) * 1e3
        if chosen is None:
            break
        found = _entry(entry(chosen), metrics)
        walk.tell(chosen, _cost(found, *goal))
        spent_ms += sum(found.get(name, 0.0) for name in TIMES)
        results.append(found)
        tell(found)
    if walk.excluded:
        warn(f"{len(walk.excluded)} configurations are not in {path}: left out")
    if not any("time" in one for one in results):
        raise UsageError(f"{path} has a time for none of the {len(results)} configurations that were visited")
    worked_ms = (time.perf_counter() - began) * 1e3 - thought_ms
    for found in results:
        found |= {"strategy_time": thought_ms / len(results), "framework_time": worked_ms / len(results)}
    about = {
        "device_name": str(content.get("device_name", "")),
        "simulation": True,
        "simulated_time": spent_ms,
    }
    return results, {**about, **environment(results, goal, began, spent_ms)}


def _cost(found: Mapping[str, Any], objective: str, is_higher: bool) -> float | None:
    """What a search makes small."""
    figure = found.get(objective)
    if not isinstance(figure, int | float) or (is_higher and figure <= 0):
        return None
    return 1 / figure if is_higher else figure


def _entry(kept: Mapping[str, Any], metrics: Metrics) -> dict[str, Any]:
    """A result from a line of the file, where the time of a failure is its name."""
    found = dict(kept)
    if isinstance(found.get("time"), str) or "__error__" in found:
        name = str(found.get("__error__") or found.get("time"))
        return {**{key: value for key, value in found.items() if key != "time"}, "__error__": error(name)}
    metrics.add(found)
    return found
