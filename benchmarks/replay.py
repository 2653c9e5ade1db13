"""A search against a recorded study, with no device: what it would have visited, and when it was good.

Times are looked up instead of measured, so any search can be compared with any other on the same figures, in
seconds and with any number of seeds.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from autotune.declaration import Configuration, Policy, Space
from autotune.declaration.space import Preset
from autotune.errors import StoreError
from autotune.record import Study, Trial
from autotune.search import Prior, Search, Strategy

__all__ = ["Replay", "replay", "space"]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """``sampler`` from ``seed``: ``visited`` in the order in which the search got their times. ``optimum_ms`` is the
    best time of the study and ``members`` how many configurations it has that could be visited; ``seconds`` is the
    processor time of the search itself."""

    sampler: str
    seed: int
    visited: tuple[Trial, ...]
    optimum_ms: float
    members: int
    seconds: float = field(default=0.0, compare=False)

    @cached_property
    def best_ms(self) -> tuple[float, ...]:
        """The best time after each visit, in milliseconds; infinite until something was measured."""
        return tuple(accumulate((trial.time_ms for trial in self.visited), min))

    def visits_until(self, within: float) -> int | None:
        """How many visits until the best time was at most ``1 + within`` times the optimum; None: never."""
        bound = self.optimum_ms * (1 + within)
        return next((i for i, best in enumerate(self.best_ms, 1) if best <= bound), None)


def replay(
    study: Study,
    sampler: str,
    seed: int = 0,
    *,
    trials: int | None = None,
    within: float | None = None,
    ahead: int = 1,
    seeds: Sequence[Configuration] = (),
    prior: Prior | None = None,
) -> Replay:
    """Run ``sampler`` over what ``study`` visited; excluded configurations are not part of it.

    ``trials`` None goes on until nothing is left, ``within`` ends it that near to the optimum (0.02: 2 %). ``ahead``
    is how many are asked for before the first has a time, as a sweep does whose compilers work ahead. Raises
    StoreError when nothing was measured, and what ``Strategy`` raises.
    """
    recorded = {t.configuration: t for t in study.trials if t.state != "excluded"}
    optimum = min((t.time_ms for t in recorded.values()), default=math.inf)
    if math.isinf(optimum):
        raise StoreError(
            f"{study.family} on {study.workload}: nothing was measured, so there is nothing to find"
        )
    strategy = Strategy(sampler=sampler, trials=trials or len(recorded), seed=seed)
    over = space(study)
    began = time.process_time()
    search = Search(over, tuple(recorded), strategy, seeds=seeds, prior=prior)
    bound = -math.inf if within is None else optimum * (1 + within)
    visited: list[Trial] = []
    waiting: deque[Configuration] = deque()
    while True:
        while len(waiting) < ahead and (asked := search.ask()) is not None:
            waiting.append(asked)
        if not waiting:
            break
        trial = recorded[waiting.popleft()]
        visited.append(trial)
        if trial.time_ms <= bound:
            break
        search.tell(trial.configuration, trial.time_ms if trial.measurement else None)
    return Replay(
        sampler=sampler, seed=seed, visited=tuple(visited), optimum_ms=optimum, members=len(recorded),
        seconds=time.process_time() - began,
    )  # fmt: skip


def space(study: Study) -> Space:
    """The policies of a recorded study with every value that occurs in it; no constraints, as its configurations
    are listed."""
    declared = study.about.policies
    policies = []
    for name, default in study.control.items():
        found = dict.fromkeys([default, *(t.configuration[name] for t in study.trials)])
        order = [v for v in declared.get(name, {}).get("values", ()) if v in found]
        numbers = all(isinstance(v, int) for v in found)
        values = order if set(order) == set(found) else sorted(found, key=int) if numbers else list(found)
        policies.append(Policy(name, tuple(values), default))
    presets = {
        name: Preset(name, {policy: (value,) for policy, value in configuration.items()})
        for name, configuration in study.presets.items()
    }
    return Space(tuple(policies), (), presets)
