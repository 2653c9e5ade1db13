"""A Gaussian process over encoded configurations that says at once what to expect of every candidate.

Two configurations are alike by exp(-sum of relevance x difference over groups of columns). The relevances are those
that explain the times best (marginal likelihood), and what they are expected to be shrinks with their number: else no
two configurations of many policies would be alike before much is known (Hvarfner, Hellsten and Nardi, Vanilla Bayesian
optimization performs great in high dimensions, ICML 2024). An observation that is added costs one pass over the
candidates, because the factor of the covariance and its product with the candidates' covariances are kept and grow by
a row (Cholesky's, one row at a time); only ``fit`` works them out anew.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.float32]
_NOISE = 1e-2  # variance of a time, beside the spread of all times, that configurations do not explain
_TOTAL, _MOST = 2.0, 0.5  # relevances: what all of them together are expected to be, and one at most,
_WIDTH = 1.5  # and how loosely, of the logarithm
_STEPS = (1 / 3, 3.0)
_LEAST, _LARGEST = 0.003, 10.0  # relevance
_FITTED = 250  # observations that relevances are fitted to; the work grows with their cube
ROOM = 128  # observations that may be added between two fits


class GaussianProcess:
    """``groups`` has the number of the group behind each column of the rows."""

    def __init__(self, groups: NDArray[np.intp]) -> None:
        count = int(groups.max(initial=-1)) + 1
        self._groups = groups
        self._relevance = np.full(count, min(_MOST, _TOTAL / max(1, count)))
        self._middle = math.log(self._relevance[0]) if count else 0.0

    def fit(self, known: Rows, times: Array, candidates: Rows) -> None:
        """Relevances by the ``times`` (mean 0) of the rows ``known``; then all that ``expect`` needs of the
        ``candidates``."""
        known_last, times_last = known[-_FITTED:], times[-_FITTED:]
        self._relevance = _relevances(known_last, times_last, self._groups, self._relevance, self._middle)
        count, room = len(known), len(known) + ROOM
        self._scaled = self._scale(candidates)
        self._scaled_squares = (self._scaled**2).sum(axis=1)
        observed = self._scale(known)
        covariance = _alike(observed, observed, (observed**2).sum(axis=1)).astype(np.float64)
        covariance[np.diag_indices(count)] += _NOISE
        self._inverse = np.zeros((room, room))  # of the factor
        self._inverse[:count, :count] = np.linalg.inv(np.linalg.cholesky(covariance))
        self._white = np.zeros((room, len(candidates)), np.float32)  # the factor's inverse x covariances
        across = _alike(observed, self._scaled, self._scaled_squares)
        np.matmul(self._inverse[:count, :count].astype(np.float32), across, out=self._white[:count])
        self._unexplained = 1 - (self._white[:count] ** 2).sum(axis=0)
        self._count = count

    def add(self, candidate: int) -> None:
        """One of the candidates counts as observed from now on."""
        n, row = self._count, self._scaled[candidate]
        alike = _alike(row[None], self._scaled, self._scaled_squares)[0]
        before = self._white[:n, candidate].copy()
        here = math.sqrt(max(1 + _NOISE - float(before.astype(np.float64) @ before), _NOISE))
        self._inverse[n, :n] = -(before.astype(np.float64) @ self._inverse[:n, :n]) / here
        self._inverse[n, n] = 1 / here
        self._white[n] = (alike - before @ self._white[:n]) / np.float32(here)
        self._unexplained -= self._white[n] ** 2
        self._count += 1

    def expect(self, times: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at every candidate, given the ``times`` (mean 0) of what was observed, in that
        order; NaN where there is none yet, which counts as what is expected there."""
        inverse = self._inverse[: self._count, : self._count]
        waiting = np.isnan(times)
        white = inverse[:, ~waiting] @ times[~waiting]
        if waiting.any():  # the times of those that wait are the likeliest
            likeliest = np.linalg.lstsq(inverse[:, waiting], -white, rcond=None)[0]
            white += inverse[:, waiting] @ likeliest
        mean = white.astype(np.float32) @ self._white[: self._count]
        scale = float(white @ white) / max(1, int((~waiting).sum()))
        deviation = np.sqrt(scale * np.maximum(self._unexplained.astype(np.float64), 1e-9))
        return mean.astype(np.float64), deviation

    def _scale(self, rows: Rows) -> Rows:
        scaled: Rows = rows * np.sqrt(self._relevance).astype(np.float32)[self._groups]
        return scaled


def _alike(rows: Rows, others: Rows, squares: Rows) -> Rows:
    apart = rows @ others.T
    apart *= -2
    apart += squares
    apart += (rows**2).sum(axis=1)[:, None]
    np.maximum(apart, 0, out=apart)
    np.negative(apart, out=apart)
    return np.asarray(np.exp(apart, out=apart), dtype=np.float32)


def _relevances(
    known: Rows, times: Array, groups: NDArray[np.intp], first: Array, middle: float
) -> Array:  # fmt: skip
    """Two rounds of three times more or less relevance, group by group, keeping what explains more."""
    apart = []
    for group in range(len(first)):
        columns = known[:, groups == group].astype(np.float64)
        squares = (columns**2).sum(axis=1)
        apart.append(np.maximum(squares[:, None] + squares - 2 * columns @ columns.T, 0))
    found, total = first, sum(r * a for r, a in zip(first, apart, strict=True))
    best = _likelihood(np.asarray(total), times, found, middle)
    for group in [*range(len(first))] * 2:
        for step in _STEPS:
            tried = found.copy()
            tried[group] = np.clip(tried[group] * step, _LEAST, _LARGEST)
            distance = total + (tried[group] - found[group]) * apart[group]
            if (likelihood := _likelihood(distance, times, tried, middle)) > best:
                best, found, total = likelihood, tried, distance
    return found


def _likelihood(distance: Array, times: Array, relevance: Array, middle: float) -> float:
    """The logarithm of it, but for a constant; with that of what is expected of relevances."""
    covariance = np.exp(-np.maximum(distance, 0))
    covariance[np.diag_indices_from(covariance)] += _NOISE
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, times)
    fit = -0.5 * len(times) * math.log(max(float(white @ white) / len(times), 1e-12))
    prior = -0.5 * float(((np.log(relevance) - middle) ** 2).sum()) / _WIDTH**2
    return fit - float(np.log(np.diag(factor)).sum()) + prior
