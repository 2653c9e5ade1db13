"""The search behind ``auto``: a Gaussian process over policies, and the configuration it expects most of.

Optuna's samplers draw a value for each policy and then have to be moved to a member of the space that was
not visited. Here every candidate is scored instead, so constraints and repeats never cost a proposal:

1. Presets, winners from elsewhere, and a few members at random come first.
2. Times are compared as logarithms, and what is slower than the median counts as the median: how slow the
   hopeless are says nothing about the best. What failed counts as that slow, too.
3. A Gaussian process says for each candidate what to expect and how surely. Two configurations are alike by
   exp(-sum of relevance x difference over policies); the relevances are those that explain the times so far best
   (marginal likelihood), so a policy that changes nothing is soon ignored.
4. The candidate with the largest expected improvement is next. What was asked and not told yet counts as
   measured with the expected time, so that a batch does not crowd into one place.
"""

import math

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Members, columns, encode

Array = NDArray[np.float64]
STARTS = 8  # visited before the model has a say, presets among them
RANDOM_STARTS = 4  # of them at random at least
_LEARNT = 400  # what the model learns from at most; the work grows with its cube
_NOISE = 1e-3  # variance of a time, beside the spread of all times, that configurations do not explain
_MIDDLE, _WIDTH = math.log(0.5), 1.5  # relevances: where their logarithms are expected, and how loosely
_STEPS = (1 / 3, 3.0)


class Surrogate:
    """Proposals by expected improvement; all randomness comes from ``seed``."""

    def __init__(self, members: Members, seed: int) -> None:
        self._members = members
        self._rng = np.random.default_rng(seed)
        self._columns = columns(members.policies)
        self._relevance = np.full(len(members.policies), math.exp(_MIDDLE))
        self._fitted = 0
        self._told: dict[Configuration, float | None] = {}
        self._open: dict[Configuration, None] = {}
        self._random = 0

    def propose(self, forced: Configuration | None) -> Configuration | None:
        chosen = forced or (self._members.random(self._rng) if self._starts() else self._best())
        if chosen is not None:
            self._open[chosen] = None
        return chosen

    def learn(self, configuration: Configuration, log_ms: float | None) -> None:
        self._open.pop(configuration, None)
        self._told[configuration] = log_ms

    def _starts(self) -> bool:
        """Whether the next is still one at random."""
        measured = any(log_ms is not None for log_ms in self._told.values())
        if measured and self._random >= RANDOM_STARTS and len(self._told) + len(self._open) >= STARTS:
            return False
        self._random += 1
        return True

    def _best(self) -> Configuration | None:
        seen, times = self._observed()
        order = np.argsort(times, kind="stable")
        pool, candidates = self._members.pool([seen[i] for i in order[:5]], self._rng)
        if not pool:
            return None
        if len(seen) > _LEARNT:  # the best half, and of the rest an even part
            rest = order[_LEARNT // 2 :]
            kept = [*order[: _LEARNT // 2], *rest[:: -(-len(rest) // (_LEARNT // 2))]]
            seen, times = [seen[i] for i in kept], times[kept]
        times = _standard(np.minimum(times, np.median(times)))
        known = encode(self._members.policies, seen)
        if len(seen) >= 1.15 * self._fitted:
            self._fit(known, times)
        if self._open:  # one after another counts as measured with what is expected of it
            waiting = encode(self._members.policies, list(self._open))
            expected, _ = self._expect(known, times, waiting)
            known, times = np.vstack([known, waiting]), np.concatenate([times, expected])
        mean, deviation = self._expect(known, times, candidates)
        gain = _expected_improvement(times.min(), mean, deviation)
        return pool[int(self._rng.choice(np.flatnonzero(gain >= gain.max() - 1e-12)))]

    def _observed(self) -> tuple[list[Configuration], Array]:
        """What was told, and the logarithm of its time; that of the slowest of all where it failed."""
        slowest = max(log_ms for log_ms in self._told.values() if log_ms is not None)
        times = [slowest + 1e-9 if log_ms is None else log_ms for log_ms in self._told.values()]
        return list(self._told), np.array(times)

    # -- the Gaussian process ------------------------------------------------------------------------------

    def _alike(self, a: Array, b: Array, relevance: Array) -> Array:
        scale = np.sqrt(relevance)[self._columns]
        a, b = a * scale, b * scale
        apart: Array = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
        alike: Array = np.exp(-np.maximum(apart, 0.0))
        return alike

    def _factor(self, known: Array, relevance: Array) -> Array:
        covariance = self._alike(known, known, relevance)
        covariance[np.diag_indices_from(covariance)] += _NOISE
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def _likelihood(self, known: Array, times: Array, relevance: Array) -> float:
        factor = self._factor(known, relevance)
        white = np.linalg.solve(factor, times)
        fit = -0.5 * len(times) * math.log(max(float(white @ white) / len(times), 1e-12))
        prior = -0.5 * float(((np.log(relevance) - _MIDDLE) ** 2).sum()) / _WIDTH**2
        return fit - float(np.log(np.diag(factor)).sum()) + prior

    def _fit(self, known: Array, times: Array) -> None:
        """Two rounds of three times more or less relevance, policy by policy, keeping what explains more."""
        self._fitted = len(times)
        best = self._likelihood(known, times, self._relevance)
        for policy in [*range(len(self._relevance))] * 2:
            for step in _STEPS:
                tried = self._relevance.copy()
                tried[policy] = np.clip(tried[policy] * step, 0.003, 10.0)
                if (likelihood := self._likelihood(known, times, tried)) > best:
                    best, self._relevance = likelihood, tried

    def _expect(self, known: Array, times: Array, asked: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at ``asked``, given ``times`` (mean 0) at ``known``."""
        factor = self._factor(known, self._relevance)
        alike = self._alike(known, asked, self._relevance)
        solved = np.linalg.solve(factor, np.column_stack([times, alike]))
        white, cross = solved[:, 0], solved[:, 1:]
        variance = float(white @ white) / len(times) * np.maximum(1.0 - (cross**2).sum(axis=0), 1e-9)
        return cross.T @ white, np.sqrt(variance)


def _standard(figures: Array) -> Array:
    spread: Array = (figures - figures.mean()) / max(float(figures.std()), 1e-9)
    return spread


def _expected_improvement(best: float, mean: Array, deviation: Array) -> Array:
    deviation = np.maximum(deviation, 1e-12)
    ahead = (best - mean) / deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    below = 0.5 * np.array([math.erfc(z) for z in (-ahead / math.sqrt(2)).tolist()])
    gain: Array = deviation * (ahead * below + density)
    return gain
