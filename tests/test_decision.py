"""Who wins, who ties, and the configuration with the smallest worst regret."""

import math
from typing import Any

import pytest

from autotune.decision import close_to_winner, decide, minimax
from autotune.space import Configuration
from autotune.trial import KernelProfile, Measurement, Trial

CONTROL = Configuration({"a": 1, "b": "x"})


def trial(a: int, b: str, ms: float, spread: float = 0.001, **more: Any) -> Trial:
    profile = KernelProfile(kernel="k", occupancy=more.pop("occupancy", 1.0))
    measurement = Measurement(
        median_ms=ms, minimum_ms=ms, spread=spread, samples=10, retimed_ms=more.pop("retimed", 0.0),
        footprint_bytes=more.pop("footprint", 0),
    )  # fmt: skip
    return Trial(
        family="f", workload="w", device="d", configuration=Configuration({"a": a, "b": b}), state="measured",
        profiles=(profile,), measurement=measurement,
    )  # fmt: skip


def failed(a: int, b: str) -> Trial:
    return Trial(family="f", workload="w", device="d", configuration=Configuration({"a": a, "b": b}),
                 state="wrong_result", reason="no")  # fmt: skip


def test_the_fastest_wins_with_margins_over_control_and_runner_up() -> None:
    found = decide([trial(1, "x", 3.0), trial(2, "x", 1.0), trial(2, "y", 1.5), failed(1, "y")], CONTROL)
    assert found is not None
    assert found.winner.configuration.id == "a=2,b=x"
    assert found.margin_over_control == pytest.approx(3.0)
    assert found.margin_over_runner_up == pytest.approx(1.5)
    assert len(found.tie_set) == 1


def test_within_noise_is_a_tie_and_occupancy_breaks_it() -> None:
    found = decide([trial(1, "y", 1.000, occupancy=0.5), trial(2, "y", 1.005), trial(2, "x", 2.0)], CONTROL)
    assert found is not None
    assert [t.configuration.id for t in found.tie_set] == ["a=2,b=y", "a=1,b=y"]
    assert found.winner.configuration.id == "a=2,b=y"
    assert found.margin_over_runner_up == pytest.approx(2.0 / 1.005)


def test_then_footprint_then_closeness_to_control() -> None:
    heavy, light = trial(1, "x", 1.0, footprint=200), trial(2, "y", 1.0, footprint=100)
    first = decide([heavy, light], CONTROL)
    assert first is not None and first.winner is light
    near, far = trial(1, "y", 1.0), trial(2, "y", 0.999)
    second = decide([near, far], CONTROL)
    assert second is not None and second.winner is near


def test_finalists_are_ranked_by_their_interleaved_times() -> None:
    found = decide(
        [trial(1, "y", 1.00, retimed=1.30), trial(2, "y", 1.05, retimed=1.10), trial(2, "x", 1.2)], CONTROL
    )
    assert found is not None
    assert found.winner.configuration.id == "a=2,b=y"


def test_the_runner_up_is_slower_than_the_tie_set_or_in_it() -> None:
    winner, tied = trial(1, "x", 0.9, retimed=1.005), trial(1, "y", 0.9, retimed=1.0, occupancy=0.5)
    once = trial(2, "x", 1.002, occupancy=0.5)  # not timed again: faster than the winner, and no finalist
    found = decide([winner, tied, once], CONTROL)
    assert found is not None
    assert found.tie_set == (winner, tied)
    assert found.runner_up is tied
    slow = trial(2, "y", 1.5)
    found = decide([winner, tied, once, slow], CONTROL)
    assert found is not None
    assert found.runner_up is slow


def test_nothing_measured_is_no_decision_and_no_control_no_margin() -> None:
    assert decide([failed(1, "x")], CONTROL) is None
    found = decide([trial(2, "y", 1.0)], CONTROL)
    assert found is not None
    assert math.isnan(found.margin_over_control)
    assert found.runner_up is None


@pytest.mark.parametrize(
    ("spread", "others", "close"),
    [
        (0.15, (1.10, 1.14, 2.0), 2),  # most of the others are within it
        (0.15, (1.10, 1.20, 2.0), 0),
        (0.09, (1.01, 1.02, 1.03), 0),  # not wide
        (0.15, (), 0),
    ],
)
def test_a_winner_that_noise_may_have_chosen(spread: float, others: tuple[float, ...], close: int) -> None:
    # The best one spills nothing and fills the device: it wins all ties.
    best = trial(1, "x", 1.0, spread)
    trials = [best, *(trial(2 + i, "x", ms, occupancy=0.5) for i, ms in enumerate(others)), failed(9, "y")]
    found = decide(trials, CONTROL)
    assert found is not None
    assert found.winner is best
    assert close_to_winner(trials, found) == close


def test_minimax_takes_the_smallest_worst_regret() -> None:
    a, b, c = (Configuration({"p": v}) for v in "abc")
    found = minimax({"w1": {a: 1.0, b: 1.2, c: 3.0}, "w2": {a: 2.0, b: 1.1, c: 1.0}})
    assert found is not None
    assert found.configuration == b
    assert found.regret == pytest.approx(0.2)
    assert minimax({"w1": {a: 1.0}, "w2": {b: 1.0}}) is None
    assert minimax({}) is None
