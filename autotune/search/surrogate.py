"""The search behind ``auto``: a Gaussian process over policies, and the configuration it expects most of.

Every candidate is scored, in place of drawing a value for each policy, so that constraints and repeats never cost a
proposal. Presets, winners from elsewhere and a few members far from each other come first; then the candidate with the
largest expected improvement. A proposal without a result yet counts as measured with the expected time.

Times are compared as logarithms, and what failed or is slower than the median counts as the median: how slow the
hopeless are says nothing about the best. Two numbers are compared by the steps between them and by whether they are the
same, each with a relevance of its own: with steps alone a block of 96 that is good by itself would be smoothed away.
What relevances are expected to be shrinks with their number: else no two configurations of many policies would be alike
before much is known (Hvarfner, Hellsten and Nardi, Vanilla Bayesian optimization performs great in high dimensions,
ICML 2024).

With times from elsewhere (``prior``) the model is of what they do not explain: their average is its mean, and how much
each record counts is learnt as the slope of a line. It begins with the winners there.
"""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Policy
from autotune.search.gaussian_process import Array, GaussianProcess, Rows, compute_expected_improvement
from autotune.search.members import Members, columns, encode
from autotune.search.prior import Prior

STARTS = 4  # visited before the model has a say, presets among them
APART_STARTS = 2  # of them far from each other at least
_TRIED_STARTS = 64  # members at random, of which a start is the one farthest from what was visited
_LEARNT = 400  # what the model learns from at most; the work grows with its cube
_GROWTH = 1.2  # of the number of results, until the model is fitted again
_MANY = 5  # values of a number, from which on it is also compared as a word
_NOISE = 1e-2  # variance of a time, relative to that of all times, that configurations do not explain
_TOTAL, _MOST = 2.0, 0.5  # relevances: what all of them together are expected to be, and one at most,
_WIDTH = 1.5  # and how loosely, of the logarithm
_STEPS = (1 / 3, 3.0)
_LEAST, _LARGEST = 0.003, 10.0  # relevance
_FITTED = 250  # observations that relevances are fitted to; the work grows with their cube
_ROOM = 128  # observations that may be added between two fits
_CAUTION = 3.0  # what is said to be left to gain, over what the model says, as logarithms (regret-factor.csv)
_SLOPE = 0.5  # how far a record's weight may be from the average's, relative to what no record explains


class Surrogate:
    """Proposals by expected improvement; all randomness comes from ``seed``."""

    def __init__(self, members: Members, seed: int, prior: Prior | None = None) -> None:
        self._members = members
        self._prior = prior or Prior()
        self._winners = deque(self._prior.winners)
        self._rng = np.random.default_rng(seed)
        self._told: dict[Configuration, float | None] = {}
        self._open: dict[Configuration, None] = {}
        self._starts = 0
        self._features = _Features(members.policies)
        self._relevances = Relevances(self._features.groups, len(self._prior))
        self._process = GaussianProcess(self._relevances, _NOISE)
        self._pool: _Pool | None = None
        self._fit: _Fit | None = None

    def propose(self, forced: Configuration | None) -> Configuration | None:
        """``forced``, or the best candidate; None when nothing is left."""
        chosen = forced or (self._start() if self._is_starting() else self._find_best())
        if chosen is not None:
            self._open[chosen] = None
            self._observe(chosen)
        return chosen

    def learn(self, configuration: Configuration, log_ms: float | None) -> None:
        """``log_ms`` is the logarithm of its time; None when it failed."""
        self._open.pop(configuration, None)
        self._told[configuration] = log_ms
        self._observe(configuration)

    def _is_starting(self) -> bool:
        measured = sum(log_ms is not None for log_ms in self._told.values())
        if self._prior:
            return bool(self._winners) or measured < 2
        is_known = measured > 0 and self._starts >= APART_STARTS
        return not (is_known and len(self._told) + len(self._open) >= STARTS)

    def _start(self) -> Configuration | None:
        """What won elsewhere, or is expected to be fastest; without a prior, of some at random the one farthest from
        all that was visited."""
        self._starts += 1
        while self._winners:
            winner = self._winners.popleft()
            if winner in self._members and winner not in self._told and winner not in self._open:
                return winner
        if self._prior:
            found = self._members.pool(self._prior.winners, self._rng)
            return next(iter(self._prior.rank(found.configurations)), None)
        candidates = self._members.draw_some(_TRIED_STARTS, self._rng)
        visited = [*self._told, *self._open]
        if not candidates.configurations or not visited:
            return self._members.draw(self._rng)
        tried, seen = candidates.rows, encode(self._members.policies, visited)
        apart = (tried**2).sum(axis=1)[:, None] + (seen**2).sum(axis=1) - 2 * tried @ seen.T
        return candidates.configurations[int(apart.min(axis=1).argmax())]

    def _find_best(self) -> Configuration | None:
        if self._fit is None or self._fit.is_old(len(self._told), self._least()):
            self._fit = self._fit_model()
        pool = self._pool
        assert pool is not None, "a fit is of a pool"
        if not pool.left.any():
            self._pool = self._fit = None
            return self._members.draw(self._rng)
        free, best, mean, deviation, _ = self._forecast(self._fit, pool)
        gain = compute_expected_improvement(best, mean, deviation)
        return pool.configurations[int(free[self._rng.choice(np.flatnonzero(gain >= gain.max() - 1e-12))])]

    def _forecast(self, fit: "_Fit", pool: "_Pool") -> tuple[NDArray[np.intp], float, Array, Array, float]:
        """The candidates that are left, the best time so far, and of each candidate what to expect with the deviation;
        in units of the last figure, a spread of logarithms."""
        times = self._times(fit.observed)
        middle, spread, beyond = _standardise(times - self._expect(fit.observed))
        mean, deviation = self._process.expect(beyond)
        mean += pool.expected / spread
        free = np.flatnonzero(pool.left)
        return free, float(np.nanmin(times) - middle) / spread, mean[free], deviation[free], spread

    def estimate_gain_left(self, sure: float) -> float:
        """How much less time than the best so far, as a share of it, the best of all that is left takes at most, with
        the probability ``sure``: as if candidates knew nothing of one another, times what that is too small by on
        recorded spaces. 1 before there is a model."""
        if self._is_starting() or len(self._told) < STARTS:
            return 1.0
        fit = self._fit = self._fit_model()
        pool = self._pool
        assert pool is not None, "a fit is of a pool"
        _, best, mean, deviation, spread = self._forecast(fit, pool)
        least, most = 0.0, 5.0 / spread
        while most - least > 1e-3 / spread:
            gain = (least + most) / 2
            slower = [0.5 * math.erfc(z) for z in ((best - gain - mean) / deviation / math.sqrt(2)).tolist()]
            is_sure = sum(math.log(max(one, 1e-300)) for one in slower) >= math.log(sure)
            least, most = (least, gain) if is_sure else (gain, most)
        return 1 - math.exp(-_CAUTION * most * spread)

    def _fit_model(self) -> "_Fit":
        """Fit the model to the results, over all that is left or, if that is too much, a pool drawn again."""
        told = list(self._told)
        times = self._times(told)
        order = np.argsort(times, kind="stable")
        best = [told[i] for i in order[:5]]
        if len(told) > _LEARNT:  # the best half, and of the rest an even part
            rest = order[_LEARNT // 2 :]
            kept = [*rest[:: -(-len(rest) // (_LEARNT // 2))], *order[: _LEARNT // 2]]
            told, times = [told[i] for i in kept], times[kept]
        if self._pool is None or not self._pool.are_all:
            self._pool = self._draw_pool(best)
        known = self._rows(encode(self._members.policies, told), told)
        self._relevances.fit(known, _standardise(times - self._expect(told))[2])
        self._process.fit(self._relevances.scale(known), self._relevances.scale(self._pool.rows), _ROOM)
        until_ms = -math.inf if self._pool.are_all else self._least()
        fit = _Fit(told, _GROWTH * len(self._told), until_ms)
        for configuration in self._open:
            fit.observe(configuration, self._pool, self._process)
        return fit

    def _draw_pool(self, best: Sequence[Configuration]) -> "_Pool":
        found, waiting = self._members.pool(best, self._rng), list(self._open)
        candidates = [*found.configurations, *waiting]
        rows = self._rows(np.vstack([found.rows, encode(self._members.policies, waiting)]), candidates)
        pool = _Pool(candidates, rows, self._expect(candidates), found.are_all)
        for configuration in waiting:
            pool.take(configuration)
        return pool

    def _observe(self, configuration: Configuration) -> None:
        if self._pool and self._fit and self._pool.take(configuration):
            self._fit.observe(configuration, self._pool, self._process)

    def _least(self) -> float:
        return min(log_ms for log_ms in self._told.values() if log_ms is not None)

    def _rows(self, encoded: Array, configurations: Sequence[Configuration]) -> Rows:
        """The columns of ``_Features``, and one for each record of the prior."""
        lines = self._prior.rows(configurations).astype(np.float32)
        return np.hstack([self._features.rows(encoded), lines])

    def _expect(self, configurations: Sequence[Configuration]) -> Array:
        return self._prior.expect(self._prior.rows(configurations))

    def _times(self, configurations: Sequence[Configuration]) -> Array:
        """The logarithms of their times: the slowest of all where one failed, NaN where it is not known yet. None is
        above the median, or with a prior farther above the best than anything there."""
        failed = max(log_ms for log_ms in self._told.values() if log_ms is not None) + 1e-9
        told = (self._told.get(configuration, math.nan) for configuration in configurations)
        times = np.array([failed if log_ms is None else log_ms for log_ms in told])
        most = self._least() + self._prior.most if self._prior else np.nanmedian(times)
        capped: Array = np.minimum(times, most)
        return capped


class _Pool:
    """Candidates with their rows, and what the prior expects of each; ``left`` says which were not visited, ``are_all``
    whether there are no others."""

    def __init__(
        self, configurations: list[Configuration], rows: Rows, expected: Array, are_all: bool
    ) -> None:
        self.configurations, self.rows, self.expected, self.are_all = configurations, rows, expected, are_all
        self.left = np.ones(len(configurations), bool)
        self.index = {configuration: i for i, configuration in enumerate(configurations)}

    def take(self, configuration: Configuration) -> bool:
        """It is visited; False where it was already, or is no candidate."""
        i = self.index.get(configuration)
        if i is None or not self.left[i]:
            return False
        self.left[i] = False
        return True


class _Fit:
    """What the model counts as ``observed``, in its order. It is valid until there are ``until_told`` results, or one
    of them is less than ``until_ms`` (a logarithm): near a new best other configurations become candidates."""

    def __init__(self, observed: list[Configuration], until_told: float, until_ms: float) -> None:
        self.observed = observed
        self._until_told, self._until_ms, self._room = until_told, until_ms, _ROOM

    def is_old(self, told: int, least: float) -> bool:
        return told >= self._until_told or least < self._until_ms or not self._room

    def observe(self, configuration: Configuration, pool: _Pool, process: GaussianProcess) -> None:
        """What finds no room, or is no candidate, is learnt from at the next fit."""
        if self._room and (i := pool.index.get(configuration)) is not None:
            self._room -= 1
            self.observed.append(configuration)
            process.add(i)


class _Features:
    """The columns of ``encode``, and for numbers with many values one more for each value; see the module."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        of = columns(policies)
        self._many = [
            (np.flatnonzero(of == i), len(policy.values))
            for i, policy in enumerate(policies)
            if len(policy.values) >= _MANY and all(isinstance(value, int) for value in policy.values)
        ]
        more = [np.full(count, len(policies) + i) for i, (_, count) in enumerate(self._many)]
        self.groups: NDArray[np.intp] = np.unique(np.concatenate([of, *more]), return_inverse=True)[1]

    def rows(self, encoded: Array) -> Rows:
        """``encoded`` are rows of ``encode``."""
        blocks = [encoded]
        for places, count in self._many:
            value = np.count_nonzero(encoded[:, places], axis=1)  # a step for each value below it
            blocks.append(np.sqrt(0.5) * (value[:, None] == np.arange(count)))
        return np.hstack(blocks).astype(np.float32)


class Relevances:
    """By the number of the group behind each column. Rows that are ``scaled`` by them are alike by exp(-square of their
    distance), plus the product of their ``lines`` last columns."""

    def __init__(self, groups: NDArray[np.intp], lines: int = 0) -> None:
        count = int(groups.max(initial=-1)) + 1
        self._groups, self.lines = groups, lines
        self.each = np.full(count, min(_MOST, _TOTAL / max(1, count)))
        self._middle = math.log(self.each[0]) if count else 0.0
        self._others: Rows | None = None

    def scale(self, rows: Rows) -> Rows:
        factors = np.append(np.sqrt(self.each)[self._groups], np.full(self.lines, _SLOPE))
        scaled: Rows = rows * factors.astype(np.float32)
        return scaled

    def compute_covariance(self, rows: Rows, others: Rows) -> Rows:
        if others is not self._others:  # an observation is added to the same candidates many times
            self._others, self._squares = others, (self._split(others)[0] ** 2).sum(axis=1)
        (rows, line), (others, lines) = self._split(rows), self._split(others)
        apart = rows @ others.T
        apart *= -2
        apart += self._squares
        apart += (rows**2).sum(axis=1)[:, None]
        np.maximum(apart, 0, out=apart)
        np.negative(apart, out=apart)
        np.exp(apart, out=apart)
        if self.lines:
            apart += line @ lines.T
        return apart

    def compute_variance(self, rows: Rows) -> Rows:
        alike: Rows = 1 + (self._split(rows)[1] ** 2).sum(axis=1)
        return alike

    def _split(self, rows: Rows) -> tuple[Rows, Rows]:
        return rows[:, : len(self._groups)], rows[:, len(self._groups) :]

    def fit(self, known: Rows, times: Array) -> None:
        """Two rounds of three times more or less relevance, group by group, keeping what explains more of the ``times``
        (mean 0) of the rows ``known``."""
        known, times = known[-_FITTED:], times[-_FITTED:]
        lines = self._split(known)[1].astype(np.float64) * _SLOPE
        self._lines = lines @ lines.T
        apart = []
        for group in range(len(self.each)):
            columns = known[:, np.flatnonzero(self._groups == group)].astype(np.float64)
            squares = (columns**2).sum(axis=1)
            apart.append(np.maximum(squares[:, None] + squares - 2 * columns @ columns.T, 0))
        total = sum(r * a for r, a in zip(self.each, apart, strict=True))
        best = self._compute_likelihood(np.asarray(total), times, self.each)
        for group in [*range(len(self.each))] * 2:
            for step in _STEPS:
                tried = self.each.copy()
                tried[group] = np.clip(tried[group] * step, _LEAST, _LARGEST)
                distance = total + (tried[group] - self.each[group]) * apart[group]
                if (likelihood := self._compute_likelihood(distance, times, tried)) > best:
                    best, self.each, total = likelihood, tried, distance

    def _compute_likelihood(self, distance: Array, times: Array, each: Array) -> float:
        """The logarithm of it, but for a constant; with that of what is expected of relevances."""
        covariance = np.exp(-np.maximum(distance, 0)) + self._lines
        covariance[np.diag_indices_from(covariance)] += _NOISE
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, times)
        fit = -0.5 * len(times) * math.log(max(float(white @ white) / len(times), 1e-12))
        prior = -0.5 * float(((np.log(each) - self._middle) ** 2).sum()) / _WIDTH**2
        return fit - float(np.log(np.diag(factor)).sum()) + prior


def _standardise(figures: Array) -> tuple[float, float, Array]:
    """Return their mean and standard deviation, and the standardised figures."""
    middle, spread = float(np.nanmean(figures)), max(float(np.nanstd(figures)), 1e-9)
    return middle, spread, (figures - middle) / spread
