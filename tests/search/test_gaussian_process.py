"""The Gaussian process: what grows row by row is what a direct solution says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.search.gaussian_process import GaussianProcess
from autotune.search.surrogate import Relevances

GROUPS = np.array([0, 0, 1, 2])
NOISE = 0.01


def rows(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 2, (count, 4)).astype(np.float32)


def fitted(known: np.ndarray, times: np.ndarray, asked: np.ndarray) -> tuple[GaussianProcess, np.ndarray]:
    """With room for five more, and the relevance of each column."""
    relevances = Relevances(GROUPS)
    relevances.fit(known, times)
    process = GaussianProcess(relevances, NOISE)
    process.fit(relevances.scale(known), relevances.scale(asked), room=5)
    return process, relevances.each[GROUPS]


def direct(
    relevance: np.ndarray, known: np.ndarray, times: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Mean, and the share of the variance that is left, by the textbook's formulas."""

    def alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        alike: np.ndarray = np.exp(-(relevance * (a[:, None] - b[None]) ** 2).sum(axis=2))
        return alike

    inverse = np.linalg.inv(alike(known, known) + NOISE * np.eye(len(known)))
    across = alike(asked, known)
    scale = times @ inverse @ times / len(times)
    return across @ inverse @ times, np.sqrt(scale * (1 - np.einsum("ij,jk,ik->i", across, inverse, across)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), first=st.integers(1, 6), more=st.integers(0, 5))
def test_rows_that_are_added_are_those_of_a_direct_solution(seed: int, first: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    known, candidates = rows(rng, first), rows(rng, 12)
    times = rng.normal(size=first + more)
    process, relevance = fitted(known, times[:first], candidates)
    for candidate in range(more):
        process.add(candidate)
    mean, deviation = process.expect(times)
    wanted, spread = direct(relevance, np.vstack([known, candidates[:more]]), times, candidates)
    assert mean == pytest.approx(wanted, abs=2e-3)
    assert deviation == pytest.approx(spread, abs=2e-2)


def test_what_waits_changes_no_expectation_and_makes_it_surer() -> None:
    rng = np.random.default_rng(1)
    known, candidates, times = rows(rng, 5), np.eye(4, dtype=np.float32), rng.normal(size=5)
    process, _ = fitted(known, times, candidates)
    before, unsure = process.expect(times)
    process.add(0)
    after, surer = process.expect(np.append(times, np.nan))
    assert after == pytest.approx(before, abs=1e-3)
    assert surer[0] < 0.5 * unsure[0]
    assert all(surer <= unsure + 1e-6)


def test_a_group_that_explains_nothing_is_ignored() -> None:
    rng = np.random.default_rng(2)
    known = rows(rng, 60)
    relevances = Relevances(GROUPS)
    relevances.fit(known, known[:, 2].astype(np.float64) - 0.5)
    assert relevances.each[1] > 3 * relevances.each[2]
    assert relevances.each[1] > 3 * relevances.each[0]
