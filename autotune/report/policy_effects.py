"""What each policy value changes by itself: pairs of configurations that differ in one policy and nothing else.

The measure of the MUMmerGPU 2.0 paper's policy analysis (section 4): turn one policy on, hold all others, and look
at the percent by which the time changes; over the whole plan and for each kernel.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from autotune.declaration import Configuration, PolicyValue
from autotune.record import Study, Trial

MOST_VALUES = 12  # of a policy whose values are all compared with each other: 66 rows

COLUMNS = (
    "policy", "base", "value", "pairs", "mean_percent", "median_percent", "minimum_percent",
    "maximum_percent", "faster_share",
)  # fmt: skip

Rows = NDArray[np.intp]
Figures = NDArray[np.float64]


def policy_values(study: Study) -> dict[str, tuple[PolicyValue, ...]]:
    """The values of each policy that the trials took, the control's first, then as declared, then as met."""
    declared = study.about.policies
    met: dict[str, dict[PolicyValue, None]] = {name: {study.control[name]: None} for name in study.control}
    for name, values in met.items():
        seen = dict.fromkeys(trial.configuration[name] for trial in study.trials)
        order = declared.get(name, {}).get("values", ())
        values.update(dict.fromkeys(value for value in order if value in seen))
        values.update(seen)
    names = [name for name in declared if name in met]
    return {name: tuple(met[name]) for name in dict.fromkeys((*names, *met))}


def settings(policies: pd.DataFrame, policy: Any) -> Rows:
    """``policies`` has a row a configuration and a column a policy -> for each row the number of its setting of all
    policies but ``policy``: the same number, the same setting."""
    others = [other for other in policies if other != policy]
    numbers = policies.groupby(others).ngroup() if others else np.zeros(len(policies))
    return np.asarray(numbers, dtype=np.intp)


def pairs(setting: Rows, column: pd.Series, base: PolicyValue, value: PolicyValue) -> tuple[Rows, Rows]:
    """The rows that have ``base`` in ``column`` and the rows, each in its place, that differ from them only in having
    ``value`` there. ``setting`` is what ``settings`` gave; no configuration may occur twice."""
    first, second = (np.flatnonzero((column == one).to_numpy()) for one in (base, value))
    _, left, right = np.intersect1d(setting[first], setting[second], assume_unique=True, return_indices=True)
    return first[left], second[right]


@dataclass(frozen=True)
class Pairing:
    """All pairs of ``base`` and ``value`` of one policy: positions in a Timed's configurations, pair by pair."""

    policy: str
    base: PolicyValue
    value: PolicyValue
    base_rows: Rows
    value_rows: Rows

    def percent(self, times: Figures) -> Figures:
        """The change of each pair, ``100 * (time with value / time with base - 1)``: negative is faster; NaN where a
        time is missing or zero."""
        changed: Figures = 100 * (times[self.value_rows] / times[self.base_rows] - 1)
        return changed


@dataclass(frozen=True)
class Timed:
    """What was measured of one study. ``values`` are ``policy_values``."""

    values: Mapping[str, tuple[PolicyValue, ...]]
    trials: tuple[Trial, ...]

    @classmethod
    def make(cls, study: Study) -> "Timed":
        last = {t.configuration: t for t in study.trials if t.measurement}
        return cls(policy_values(study), tuple(last.values()))

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        return tuple(trial.configuration for trial in self.trials)

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The kernels with known times, if the plan has more than one."""
        names = dict.fromkeys(name for trial in self.trials for name in trial.kernel_ms)
        return tuple(names) if len(names) > 1 else ()

    @cached_property
    def policies(self) -> pd.DataFrame:
        """A row a configuration; values by their place in ``values``. Columns are numbers, as a policy may be called
        anything."""
        columns = {
            number: [values.index(one[name]) for one in self.configurations]
            for number, (name, values) in enumerate(self.values.items())
        }
        return pd.DataFrame(columns, dtype=np.intp)

    def times(self, kernel: str | None = None) -> Figures:
        """Milliseconds of the whole plan, or of ``kernel``, by configuration; NaN where there is none, or zero: that
        has no ratio."""
        times = np.array([t.kernel_ms.get(kernel, 0.0) if kernel else t.time_ms for t in self.trials], float)
        return np.where(times > 0, times, np.nan)

    @cached_property
    def pairings(self) -> tuple[Pairing, ...]:
        """Every two values of a policy, the earlier as base; of a policy with more than ``MOST_VALUES``, each against
        the first only. Those without a single pair are left out."""
        pairings = []
        for number, (name, values) in enumerate(self.values.items()):
            setting, column = settings(self.policies, number), self.policies[number]
            places = range(len(values))
            few = len(values) <= MOST_VALUES
            for base, value in combinations(places, 2) if few else ((0, place) for place in places[1:]):
                first, second = pairs(setting, column, base, value)
                if len(first):
                    pairings.append(Pairing(name, values[base], values[value], first, second))
        return tuple(pairings)

    def list_conditions(self, pairing: Pairing) -> Iterable[tuple[str, PolicyValue, NDArray[np.bool_]]]:
        """For each value of each other policy: which of the pairs have it."""
        for number, (name, values) in enumerate(self.values.items()):
            if name != pairing.policy and len(values) > 1:
                places = self.policies[number].to_numpy()[pairing.base_rows]
                yield from ((name, value, places == place) for place, value in enumerate(values))


def summarise(percent: Figures) -> tuple[float | int, ...]:
    """Pairs, mean, median, least, most, and the share of pairs that got faster; empty when there is no pair."""
    percent = percent[np.isfinite(percent)]
    if not len(percent):
        return ()
    told = (percent.mean(), np.median(percent), percent.min(), percent.max(), (percent < 0).mean())
    return (len(percent), *map(float, told))


def effects_frame(study: Study | Timed, kernel: str | None = None) -> pd.DataFrame:
    """A row for every two values of a policy that were measured with all other policies equal; of a policy
    with more than ``MOST_VALUES`` values, for each against the control's only.

    Columns: ``policy``, ``base`` (the control's value, or the one declared earlier), ``value``, ``pairs`` (how many),
    ``mean_percent``, ``median_percent``, ``minimum_percent``, ``maximum_percent`` over the pairs (see ``Pairing``),
    and ``faster_share`` (0..1, pairs in which ``value`` is faster). With ``kernel``, the times are that kernel's, else
    the whole plan's.
    """
    timed = Timed.make(study) if isinstance(study, Study) else study
    times = timed.times(kernel)
    rows = [(p.policy, p.base, p.value, *summarise(p.percent(times))) for p in timed.pairings]
    return pd.DataFrame([row for row in rows if len(row) > 3], columns=list(COLUMNS))


def every_effect(timed: Timed) -> Iterable[tuple[str, str, PolicyValue | None, tuple[Any, ...]]]:
    """(kernel, given policy, given value, a row as in ``effects_frame``) for the whole plan (kernel "") and each
    kernel; over all pairs (given "" and None), and over those pairs alone in which another policy has that value."""
    for kernel in ("", *timed.kernels):
        times = timed.times(kernel or None)
        for pairing in timed.pairings:
            percent = pairing.percent(times)
            head = (pairing.policy, pairing.base, pairing.value)
            if whole := summarise(percent):
                yield kernel, "", None, (*head, *whole)
            for name, value, has in timed.list_conditions(pairing):
                if some := summarise(percent[has]):
                    yield kernel, name, value, (*head, *some)


def contributions(timed: Timed, winner: Trial, control: Configuration) -> dict[str, float]:
    """How many times as long it takes without each policy in which ``winner`` differs from ``control``, the largest
    first: that policy back at its default, all others as the winner has them; where that was not measured, by the
    median over all pairs. By first times, as most were timed but once; where neither is known, it is left out."""
    first = {t.configuration: t.measurement.median_ms for t in timed.trials if t.measurement}
    own, factors = first.get(winner.configuration, 0.0), {}
    for name, value in winner.configuration.items():
        if value == control[name]:
            continue
        without = first.get(Configuration({**winner.configuration, name: control[name]}))
        if without and own:
            factors[name] = without / own
            continue
        pairing = next(
            (p for p in timed.pairings if (p.policy, p.base, p.value) == (name, control[name], value)), None
        )
        told = summarise(pairing.percent(timed.times())) if pairing else ()
        if told and told[2] > -100:
            factors[name] = 100 / (100 + told[2])
    return dict(sorted(factors.items(), key=lambda one: (-one[1], one[0])))


@dataclass(frozen=True)
class Importance:
    """Shares (0..1) of the variance of log time. ``additive``: what a sum of a term for each policy's value explains.
    ``alone``: how much of that is lost without a policy. ``together``: what two explain beyond that sum. Where every
    combination was measured, ``alone`` adds up to ``additive``, and with ``together`` and so on to 1."""

    additive: float
    alone: Mapping[str, float]
    together: Mapping[tuple[str, str], float]

    def partners(self, policy: str) -> list[str]:
        """The other policies, the one that interacts most with ``policy`` first."""
        found = {(set(two) - {policy}).pop(): share for two, share in self.together.items() if policy in two}
        return sorted(found, key=lambda name: -found[name])


def importance(timed: Timed, kernel: str | None = None) -> Importance:
    """Functional ANOVA (Hutter, Hoos, Leyton-Brown, ICML 2014) of what was measured, by least squares, so that
    combinations that are missing are not laid to a policy: the terms of single policies are fitted together, and a
    pair's are the means of what they leave over."""
    log = np.log(timed.times(kernel))
    kept = np.isfinite(log)
    log = log[kept] - (log[kept].mean() if kept.any() else 0.0)
    codes = {
        name: pd.factorize(timed.policies[number][kept])[0]
        for number, (name, values) in enumerate(timed.values.items())
        if len(values) > 1
    }
    total = float(log @ log)
    if total <= 0:
        return Importance(0.0, dict.fromkeys(codes, 0.0), {})
    left = _compute_residual(log, list(codes.values()))
    rest = float(left @ left)
    alone = {}
    for name in codes:
        without = _compute_residual(log, [code for other, code in codes.items() if other != name])
        alone[name] = max(0.0, float(without @ without) - rest) / total
    together = {}
    for a, b in combinations(codes, 2):
        cell = codes[a] * (int(codes[b].max()) + 1) + codes[b]
        count = np.maximum(np.bincount(cell), 1)
        together[a, b] = float((np.bincount(cell, left) ** 2 / count).sum()) / total
    return Importance(1 - rest / total, alone, together)


def _compute_residual(log: Figures, codes: Sequence[Rows]) -> Figures:
    """What a sum of a term for each value of each policy leaves over, by the normal equations: small, as there are few
    values, and singular, as every row has one value of each policy."""
    terms = np.hstack([np.ones((len(log), 1)), *(np.eye(int(code.max()) + 1)[code] for code in codes)])
    left: Figures = log - terms @ np.linalg.lstsq(terms.T @ terms, terms.T @ log, rcond=1e-10)[0]
    return left
