"""Optuna's samplers over a space with constraints, each configuration at most once.

A sampler draws a value for each policy and knows neither. What it proposes is moved to the nearest member that was not
visited, and that is the trial's parameters, so it learns from what was really run. A parameter is the place of a value
among its policy's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.declaration import Configuration
from autotune.processes import quiet_optuna
from autotune.search.members import Members, encode


class OptunaSampler(BaseSampler):
    """Proposals of Optuna's ``name``: tpe, gp, cmaes or nsgaii. ``trials`` is how many there may be, where known."""

    def __init__(self, name: str, members: Members, seed: int, trials: int | None) -> None:
        self._members, self._rng = members, np.random.default_rng(seed)
        self._chosen: Configuration | None = None
        self._visited: dict[Configuration, optuna.Trial | None] = {}  # None: not proposed here
        self._distributions: dict[str, BaseDistribution] = {
            policy.name: IntDistribution(0, len(policy.values) - 1)
            if name == "cmaes"
            else CategoricalDistribution(range(len(policy.values)))
            for policy in members.policies
        }
        with quiet_optuna():
            # Optuna's generators start alike for small seeds: they get a large one.
            self._inner = _sampler(name, int(self._rng.integers(2**32)), trials)
            self._study = optuna.create_study(sampler=self)

    def propose(self, forced: Configuration | None) -> Configuration | None:
        """``forced``, or what Optuna's sampler proposes, moved; None when nothing is left."""
        self._chosen = forced
        with quiet_optuna():
            trial = self._study.ask(self._distributions)
        # Optuna asks no sampler where each policy has one value.
        chosen = self._chosen or self._members.draw(self._rng)
        if chosen is not None:
            self._visited[chosen] = trial
        return chosen

    def learn(self, configuration: Configuration, log_ms: float | None) -> None:
        """``log_ms`` is the logarithm of its time; None when it failed."""
        with quiet_optuna():
            if trial := self._visited.setdefault(configuration, None):
                self._study.tell(trial, log_ms, TrialState.FAIL if log_ms is None else TrialState.COMPLETE)
            elif log_ms is not None:
                places = self._places(configuration)
                self._study.add_trial(
                    create_trial(value=log_ms, params=places, distributions=self._distributions)
                )

    def infer_relative_search_space(
        self, _study: optuna.Study, _trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {name: found for name, found in self._distributions.items() if not found.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        # Asked even when its answer is not used: cmaes and nsgaii number their generations here.
        space = self._inner.infer_relative_search_space(study, trial)
        wanted = dict(self._inner.sample_relative(study, trial, space))
        for name, distribution in search_space.items():
            if name not in wanted:
                wanted[name] = self.sample_independent(study, trial, name, distribution)
        self._chosen = self._chosen or self._find_nearest(wanted)
        return self._places(self._chosen) if self._chosen else wanted

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._inner.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._inner.after_trial(study, trial, state, values)

    def _places(self, configuration: Configuration) -> dict[str, Any]:
        return {p.name: p.values.index(configuration[p.name]) for p in self._members.policies}

    def _find_nearest(self, places: dict[str, Any]) -> Configuration | None:
        """What stands at ``places`` when it may be visited, else a member close to it; None when nothing is left."""
        policies = self._members.policies
        wanted = Configuration({p.name: p.values[places.get(p.name, 0)] for p in policies})
        if wanted in self._members and wanted not in self._visited:
            return wanted
        pool = self._members.pool([wanted], self._rng)
        if not pool.configurations:
            return None
        away = ((pool.rows - encode(policies, [wanted])) ** 2).sum(axis=1)
        return pool.configurations[int(self._rng.choice(np.flatnonzero(away <= away.min() + 1e-6)))]


def _sampler(name: str, seed: int, trials: int | None) -> BaseSampler:
    if name == "tpe":
        return TPESampler(seed=seed, multivariate=True, constant_liar=True)
    if name == "gp":
        return GPSampler(seed=seed, deterministic_objective=False)
    if name == "cmaes":
        return CmaEsSampler(seed=seed, warn_independent_sampling=False)
    # Some ten generations, where the number of trials is known; Optuna's own 50 is more than many spaces allow.
    return NSGAIISampler(seed=seed, population_size=min(50, max(8, (trials or 500) // 10)))
