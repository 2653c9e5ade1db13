"""Who wins, who ties, and the configuration with the smallest worst regret."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import with_figures

from autotune.compile.profile import KernelProfile
from autotune.declaration.space import Configuration
from autotune.measure import Figure
from autotune.record.decision import (
    MOST,
    Margin,
    close_to_winner,
    decide,
    decide_classes,
    margin,
    minimax,
    noise,
    rank_trials,
    retime_ratio,
    set_aside,
)
from autotune.record.trial import Measurement, Trial

CONTROL = Configuration({"a": 1, "b": "x"})


def trial(a: int, b: str, ms: float, spread: float = 0.001, **more: Any) -> Trial:
    profile = KernelProfile(kernel="k", occupancy=more.pop("occupancy", 1.0))
    measurement = Measurement(
        median_ms=ms, minimum_ms=ms, spread=spread, samples=10, retimed_ms=more.pop("retimed", 0.0),
        figures={"footprint_bytes": Figure(more.pop("footprint", 0))},
    )  # fmt: skip
    return Trial(
        family="f", workload="w", device="d", configuration=Configuration({"a": a, "b": b}), state="measured",
        profiles=(profile,), measurement=measurement,
    )  # fmt: skip


def abandoned(trial: Trial) -> Trial:
    """After its first run."""
    assert trial.measurement is not None
    return replace(trial, measurement=replace(trial.measurement, samples=1, abandoned=True))


def failed(a: int, b: str) -> Trial:
    return Trial(family="f", workload="w", device="d", configuration=Configuration({"a": a, "b": b}),
                 state="wrong_result", reason="no")  # fmt: skip


def test_the_fastest_wins_with_margins_over_control_and_runner_up() -> None:
    found = decide([trial(1, "x", 3.0), trial(2, "x", 1.0), trial(2, "y", 1.5), failed(1, "y")], CONTROL)
    assert found is not None
    assert found.winner.configuration.id == "a=2,b=x"
    assert found.over_control.ratio == pytest.approx(3.0)
    assert found.over_runner_up.ratio == pytest.approx(1.5)
    assert len(found.tie_set) == 1


def test_within_noise_is_a_tie_and_occupancy_breaks_it() -> None:
    found = decide([trial(1, "y", 1.000, occupancy=0.5), trial(2, "y", 1.005), trial(2, "x", 2.0)], CONTROL)
    assert found is not None
    assert [t.configuration.id for t in found.tie_set] == ["a=2,b=y", "a=1,b=y"]
    assert found.winner.configuration.id == "a=2,b=y"
    assert found.over_runner_up.ratio == pytest.approx(2.0 / 1.005)


def test_what_was_abandoned_is_never_chosen_however_near_it_is() -> None:
    """A race ends for who is 1 % behind, and a single run has no interval that says so."""
    left = abandoned(trial(1, "y", 1.004, spread=1.0, occupancy=1.0))
    best = trial(2, "y", 1.0, occupancy=0.5)
    found = decide([left, best, trial(2, "x", 2.0)], CONTROL)
    assert found is not None
    assert found.tie_set == (best,)
    assert decide([left], CONTROL) is None
    assert list(decide_classes([left, trial(2, "x", 1.0)], CONTROL, ["b"])) == ["b=x"]


def test_of_a_class_in_which_none_may_win_the_fastest_is_set_aside() -> None:
    far, best = abandoned(trial(1, "y", 3.0)), abandoned(trial(4, "y", 2.0))
    assert set_aside([far, best], []) == [best]
    assert set_aside([far, best, trial(2, "x", 1.0)], []) == []
    assert set_aside([far, best, trial(2, "x", 1.0)], ["b"]) == [best]
    assert set_aside([failed(1, "y")], []) == []


def test_the_tie_set_is_as_wide_as_the_intervals_and_near_the_best_alone_win() -> None:
    best, near = trial(2, "x", 1.0, 0.162, occupancy=0.5), trial(2, "y", 1.04, 0.05)
    control, far = trial(1, "x", 1.0627, 0.05), trial(1, "y", 2.0, 0.05)
    found = decide([far, control, near, best], CONTROL)
    assert found is not None
    # The control stays behind what is near the best, though it is the simplest.
    assert found.tie_set == (near, best, control)
    assert not found.is_reliable
    surely = decide([far, trial(1, "x", 3.0), near, best], CONTROL)
    assert surely is not None and surely.is_reliable
    alone = decide([control], CONTROL)
    assert alone is not None and not alone.is_reliable
    without = decide([best], CONTROL)
    assert without is not None and without.is_reliable  # there is nothing to be faster than


def test_a_margin_has_the_interval_of_its_two_medians() -> None:
    over = margin(trial(1, "x", 661.0, 0.03), trial(2, "x", 622.0, 0.162))
    assert over.ratio == pytest.approx(661 / 622)
    # by hand: log 1.0627 -+ sqrt(log(0.97)^2 + log(1.162)^2), sqrt(log(1.03)^2 + log(0.838)^2)
    assert (over.low, over.high) == (pytest.approx(0.9118, abs=1e-4), pytest.approx(1.2713, abs=1e-4))
    exact = margin(trial(1, "x", 3.0, 0.0), trial(2, "x", 2.0, 0.0))
    assert (exact.low, exact.ratio, exact.high) == (1.5, 1.5, 1.5)
    once = margin(trial(1, "x", 3.0, 1.0), trial(2, "x", 2.0, 0.01))
    assert once.ratio == 1.5 and math.isnan(once.low) and math.isnan(once.high)
    assert math.isnan(margin(None, trial(1, "x", 3.0)).ratio)


@given(st.floats(0, 0.9), st.floats(0, 0.9), st.floats(1.02, 50.0))
def test_a_tie_is_where_the_interval_of_the_ratio_reaches_one(a: float, b: float, ratio: float) -> None:
    faster, slower = trial(1, "x", 1.0, a), trial(2, "x", ratio, b)
    beyond = ratio > 1 + noise(faster, slower)
    assert beyond == (margin(slower, faster).low > 1) or margin(slower, faster).low == pytest.approx(1)


def test_where_no_interval_is_known_a_small_difference_is_noise() -> None:
    single, other = trial(1, "x", 1.0, 1.0), trial(2, "x", 1.04, 1.0)
    assert MOST <= noise(single, other) < 2 * MOST
    assert noise(single, trial(2, "x", 1.0, 0.001)) == pytest.approx(MOST, abs=0.001)


def test_an_interval_wider_than_its_time_is_no_narrow_one() -> None:
    wide, control = trial(2, "x", 1.0, 4.17), trial(1, "x", 3.0, 0.01)
    found = decide([wide, control], CONTROL)
    assert found is not None and not found.is_reliable and found.tie_set == (wide, control)
    assert margin(wide, control).low == pytest.approx(0, abs=1e-6)
    busy = decide([trial(2, "x", 1.0, 0.01), trial(1, "x", 80.0, 7.07)], CONTROL)
    assert busy is not None and not busy.is_reliable


def test_a_policy_file_claims_what_noise_cannot_have_made() -> None:
    assert Margin(1.6, 0.78, 2.82).claim == 1.0
    assert Margin(1.6, 1.2, 2.1).claim == 1.6
    assert Margin(0.8, 0.7, 0.9).claim == 0.8  # of an accuracy class that costs time
    assert (Margin(1.03).claim, Margin(1.2).claim, Margin(math.nan).claim) == (1.0, 1.2, 0.0)
    control = trial(1, "x", 3.0, 1.0)
    assert margin(control, control) == Margin(1.0, 1.0, 1.0)


def test_the_order_is_that_of_the_times_shown_below_the_winner() -> None:
    winner, other = trial(2, "x", 1.00, retimed=1.60), trial(2, "y", 1.05, retimed=1.70)
    control = trial(1, "x", 3.0, retimed=4.8)
    faster, slower = trial(3, "x", 1.1), trial(4, "x", 3.5)
    trials = [slower, control, faster, failed(5, "x"), other, winner]
    found = decide(trials, CONTROL)
    assert rank_trials(trials, found) == [winner, faster, other, slower, control]
    assert retime_ratio(trials) == pytest.approx(1.6)
    assert math.isnan(retime_ratio([faster, slower]))
    assert rank_trials(trials, None) == [faster, winner, other, slower, control]


def test_the_control_pays_for_nothing_and_noise_has_no_break_even() -> None:
    def once(one: Trial, ms: float) -> Trial:
        assert one.measurement is not None
        return replace(one, measurement=with_figures(one.measurement, transform_ms=ms))

    lasting, single = once(trial(2, "x", 1.0), 9.0), once(trial(2, "y", 2.0), 1.0)
    found = decide([lasting, single], CONTROL)
    assert found is not None and found.break_even is not None
    for made in (
        [once(trial(1, "x", 1.0), 9.0), single],  # control lasts
        [once(trial(2, "x", 1.0, 0.5), 9.0), once(trial(2, "y", 1.5, 0.5), 1.0)],  # its lead is noise
        [once(trial(2, "x", 1.0), 1.04), once(trial(2, "y", 1.03), 1.0)],  # so is what it costs
    ):
        found = decide(made, CONTROL)
        assert found is not None and found.break_even is None


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
    assert math.isnan(found.over_control.ratio)
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
