"""The Gaussian process: what grows row by row is what a direct solution says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.search import gaussian_process
from autotune.search.gaussian_process import GaussianProcess

GROUPS = np.array([0, 0, 1, 2])


def rows(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 2, (count, 4)).astype(np.float32)


def direct(
    process: GaussianProcess, known: np.ndarray, times: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Mean, and the share of the variance that is left, by the textbook's formulas."""
    relevance = process._relevance[GROUPS]

    def alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        alike: np.ndarray = np.exp(-(relevance * (a[:, None] - b[None]) ** 2).sum(axis=2))
        return alike

    inverse = np.linalg.inv(alike(known, known) + gaussian_process._NOISE * np.eye(len(known)))
    across = alike(asked, known)
    scale = times @ inverse @ times / len(times)
    return across @ inverse @ times, np.sqrt(scale * (1 - np.einsum("ij,jk,ik->i", across, inverse, across)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), first=st.integers(1, 6), more=st.integers(0, 5))
def test_rows_that_are_added_are_those_of_a_direct_solution(seed: int, first: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    known, candidates = rows(rng, first), rows(rng, 12)
    times = rng.normal(size=first + more)
    process = GaussianProcess(GROUPS)
    process.fit(known, times[:first], candidates)
    for candidate in range(more):
        process.add(candidate)
    mean, deviation = process.expect(times)
    wanted, spread = direct(process, np.vstack([known, candidates[:more]]), times, candidates)
    assert mean == pytest.approx(wanted, abs=2e-3)
    assert deviation == pytest.approx(spread, abs=2e-2)


def test_what_waits_changes_no_expectation_and_makes_it_surer() -> None:
    rng = np.random.default_rng(1)
    known, candidates, times = rows(rng, 5), np.eye(4, dtype=np.float32), rng.normal(size=5)
    process = GaussianProcess(GROUPS)
    process.fit(known, times, candidates)
    before, unsure = process.expect(times)
    process.add(0)
    after, surer = process.expect(np.append(times, np.nan))
    assert after == pytest.approx(before, abs=1e-3)
    assert surer[0] < 0.5 * unsure[0]
    assert all(surer <= unsure + 1e-6)


def test_a_group_that_explains_nothing_is_ignored() -> None:
    rng = np.random.default_rng(2)
    known = rows(rng, 60)
    process = GaussianProcess(GROUPS)
    process.fit(known, known[:, 2].astype(np.float64) - 0.5, known)
    assert process._relevance[1] > 3 * process._relevance[2]
    assert process._relevance[1] > 3 * process._relevance[0]
