"""Optuna's samplers over a space with constraints, each configuration at most once.

A sampler draws values policy by policy and knows neither. ``_Moved`` stands between it and the study: what it
proposes is moved to the nearest member that was not visited, and that is the trial's parameters, so it learns
from what was really run.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from autotune.declaration import Configuration, Members
from autotune.processes import quiet_optuna


class OptunaSampler:
    """Proposals of the sampler ``method``: tpe, gp, cmaes or nsgaii."""

    def __init__(self, method: str, members: Members, seed: int, trials: int | None) -> None:
        self._steps = method == "cmaes"
        self._members, self._policies = members, members.policies
        self._distributions: dict[str, BaseDistribution] = {
            p.name: IntDistribution(0, len(p.values) - 1)
            if self._steps
            else CategoricalDistribution(p.values)
            for p in self._policies
        }
        with quiet_optuna():
            # Optuna's generators start alike for small seeds; mixed first, they do not.
            mixed = int(np.random.SeedSequence(seed).generate_state(1)[0])
            inner = _sampler(method, mixed, trials)
            self._moved = _Moved(inner, self, members, seed)
            self._study = optuna.create_study(sampler=self._moved, direction="minimize")
        self._open: dict[Configuration, optuna.Trial] = {}

    def propose(self, forced: Configuration | None) -> Configuration | None:
        if not self.distributions:  # one value each: Optuna would not ask its sampler
            return forced or self._members.random(np.random.default_rng(0))
        self._moved.forced = forced
        with quiet_optuna():
            trial = self._study.ask(self._distributions)
            chosen = self._moved.chosen
            if chosen is None:
                self._study.tell(trial, state=TrialState.FAIL)
            else:
                self._open[chosen] = trial
        return chosen

    def learn(self, configuration: Configuration, log_ms: float | None) -> None:
        with quiet_optuna():
            if trial := self._open.pop(configuration, None):
                state = TrialState.FAIL if log_ms is None else TrialState.COMPLETE
                self._study.tell(trial, log_ms, state)
            elif log_ms is not None:
                found = optuna.trial.create_trial(
                    value=log_ms,
                    params=self.parameters(configuration),
                    distributions=self._distributions,
                )
                self._study.add_trial(found)

    def parameters(self, configuration: Configuration) -> dict[str, Any]:
        """A configuration as Optuna's parameters."""
        if not self._steps:
            return dict(configuration)
        return {p.name: p.values.index(configuration[p.name]) for p in self._policies}

    def configuration(self, parameters: dict[str, Any]) -> Configuration:
        """And back; a policy with one value need not be named."""
        values = {}
        for policy in self._policies:
            given = parameters.get(policy.name, 0 if self._steps else policy.values[0])
            values[policy.name] = policy.values[given] if self._steps else given
        return Configuration(values)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {name: d for name, d in self._distributions.items() if not d.single()}


class _Moved(optuna.samplers.BaseSampler):
    """``inner``'s proposals, moved. ``forced`` is what to give instead, ``chosen`` what was given."""

    def __init__(
        self, inner: optuna.samplers.BaseSampler, outer: OptunaSampler, members: Members, seed: int
    ) -> None:
        self.forced: Configuration | None = None
        self.chosen: Configuration | None = None
        self._inner, self._outer, self._members = inner, outer, members
        self._rng = np.random.default_rng(seed)

    def infer_relative_search_space(
        self, _study: optuna.Study, _trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._outer.distributions

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        # Asked even when its answer is not used: cmaes and nsgaii number their generations here.
        wanted = dict(
            self._inner.sample_relative(study, trial, self._inner.infer_relative_search_space(study, trial))
        )
        for name, distribution in search_space.items():
            if name not in wanted:
                wanted[name] = self._inner.sample_independent(study, trial, name, distribution)
        self.chosen = self.forced or self._members.nearest(self._outer.configuration(wanted), self._rng)
        return self._outer.parameters(self.chosen) if self.chosen else wanted

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


def _sampler(method: str, seed: int, trials: int | None) -> optuna.samplers.BaseSampler:
    samplers = optuna.samplers
    if method == "tpe":
        return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
    if method == "gp":
        return samplers.GPSampler(seed=seed, deterministic_objective=False)
    if method == "cmaes":
        return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    # Some ten generations, where the number of trials is known; Optuna's own 50 is more than many spaces allow.
    return samplers.NSGAIISampler(seed=seed, population_size=min(50, max(8, (trials or 500) // 10)))
