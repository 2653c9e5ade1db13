"""A Gaussian process: what to expect at each of many points, and how surely, from what was measured at others.

See Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 2.2. An observation that is added
costs one pass over the points asked about, because the factor of the covariance and its product with their covariances
are kept and grow by a row (Cholesky's, one row at a time); only ``fit`` computes them from the start.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.floating[Any]]


class Covariance(Protocol):
    """How alike points are, before anything is measured."""

    def compute_covariance(self, rows: Rows, others: Rows) -> Rows:
        """A row for each of ``rows``, a column for each of ``others``."""

    def compute_variance(self, rows: Rows) -> Rows:
        """The variance at each of ``rows``."""


class GaussianProcess:
    """``noise`` is the variance that points do not explain, as a share of the scale, which is found from what was
    measured and is at least ``least`` (a variance). Computes in the type of the rows."""

    def __init__(self, covariance: Covariance, noise: float, least: float = 0.0) -> None:
        self._covariance, self._noise, self._least = covariance, noise, least

    def fit(self, known: Rows, asked: Rows, room: int = 0) -> None:
        """All that ``expect`` needs for the points ``asked``, with those ``known`` observed and ``room`` for more."""
        count, most = len(known), len(known) + room
        self._asked, self._count = asked, count
        inner = self._covariance.compute_covariance(known, known).astype(np.float64)
        inner[np.diag_indices(count)] += self._noise
        self._inverse = np.zeros((most, most))  # of the factor
        self._inverse[:count, :count] = np.linalg.inv(np.linalg.cholesky(inner))
        self._white = np.zeros((most, len(asked)), asked.dtype)  # the factor's inverse x covariances
        across = self._covariance.compute_covariance(known, asked)
        np.matmul(self._inverse[:count, :count].astype(asked.dtype), across, out=self._white[:count])
        self._unexplained = self._covariance.compute_variance(asked) - (self._white[:count] ** 2).sum(axis=0)

    def add(self, index: int) -> None:
        """One of the points asked about counts as observed from now on."""
        n, row = self._count, self._asked[index : index + 1]
        alike = self._covariance.compute_covariance(row, self._asked)[0]
        before = self._white[:n, index].copy()
        own = float(self._covariance.compute_variance(row)[0]) + self._noise
        here = math.sqrt(max(own - float(before.astype(np.float64) @ before), self._noise))
        self._inverse[n, :n] = -(before.astype(np.float64) @ self._inverse[:n, :n]) / here
        self._inverse[n, n] = 1 / here
        self._white[n] = (alike - before @ self._white[:n]) / self._white.dtype.type(here)
        self._unexplained -= self._white[n] ** 2
        self._count += 1

    def expect(self, values: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at every point asked about, given the ``values`` of what was observed, in that
        order; NaN where there is none yet, which counts as what is expected there."""
        inverse = self._inverse[: self._count, : self._count]
        waiting = np.isnan(values)
        white = inverse[:, ~waiting] @ values[~waiting]
        if waiting.any():  # the values of those that wait are the likeliest
            likeliest = np.linalg.lstsq(inverse[:, waiting], -white, rcond=None)[0]
            white += inverse[:, waiting] @ likeliest
        mean = white.astype(self._white.dtype) @ self._white[: self._count]
        scale = max(float(white @ white) / max(1, int((~waiting).sum())), self._least)
        deviation = np.sqrt(scale * np.maximum(self._unexplained.astype(np.float64), 1e-9))
        return mean.astype(np.float64), deviation


def compute_expected_improvement(best: float, mean: Array, deviation: Array) -> Array:
    """How much below ``best`` each of several figures is expected to lie, 0 where it is above (Mockus, On Bayesian
    methods for seeking the extremum, 1974)."""
    deviation = np.maximum(deviation, 1e-12)
    ahead = (best - mean) / deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    below = 0.5 * np.array([math.erfc(z) for z in (-ahead / math.sqrt(2)).tolist()])
    gain: Array = deviation * (ahead * below + density)
    return gain
