"""The rules of measurement, on a clock that tells what it is told."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure import Protocol, interleave, measure, median, spread


class Clock:
    """A backend whose samples are taken from a list, the last one repeated."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.taken = 0

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        found = []
        for _ in range(count):
            plan()
            found.append(self.times[min(self.taken, len(self.times) - 1)])
            self.taken += 1
        return found


def sampled(clock: Any, protocol: Protocol, first_ms: float = 1.0, best_ms: float = math.inf) -> Any:
    return measure(clock, lambda: None, protocol, cold=True, first_ms=first_ms, best_ms=best_ms)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60))
def test_the_median_splits_the_samples(values: list[float]) -> None:
    middle = median(values)
    assert sum(v < middle for v in values) <= len(values) / 2
    assert sum(v > middle for v in values) <= len(values) / 2


def test_the_spread_is_the_half_width_of_the_medians_interval() -> None:
    # n = 100: ranks 40 and 61 (1-based) bound the median, so values 40 and 61 do here.
    values = [float(i) for i in range(1, 101)]
    assert spread(values) == pytest.approx((61 - 40) / 2 / 50.5)
    assert spread([5.0] * 20) == 0.0
    assert spread([1.0]) == 1.0


def test_sampling_stops_when_the_interval_is_narrow() -> None:
    clock = Clock(1.0)
    samples = sampled(clock, Protocol(least=10, most=200))
    assert len(samples.times_ms) == 10
    assert not samples.abandoned


def test_noise_buys_more_samples_up_to_the_limit() -> None:
    clock = Clock(*[1.0 + 0.5 * ((i * 7) % 10) / 10 for i in range(400)])
    samples = sampled(clock, Protocol(least=10, most=50, seconds=10))
    assert len(samples.times_ms) == 50


def test_a_slow_configuration_is_bounded_by_seconds() -> None:
    samples = sampled(Clock(900.0), Protocol(least=10, seconds=0.5), first_ms=900.0)
    assert 3 <= len(samples.times_ms) <= 4


def test_a_hopeless_configuration_is_abandoned_after_two_samples() -> None:
    clock = Clock(400.0)
    samples = sampled(clock, Protocol(abandon=3.0), first_ms=500.0, best_ms=100.0)
    assert samples.abandoned
    assert clock.taken == 1
    assert samples.median_ms == 450.0


def test_one_slow_first_sample_does_not_condemn() -> None:
    samples = sampled(Clock(101.0), Protocol(abandon=3.0, seconds=2.0), first_ms=500.0, best_ms=100.0)
    assert not samples.abandoned
    assert samples.median_ms == 101.0


def test_finalists_are_timed_in_turns_forwards_and_backwards() -> None:
    order: list[str] = []
    plans = {name: (lambda name=name: order.append(name)) for name in "ab"}
    nothing = dict.fromkeys(plans, lambda: None)
    interleave(
        Clock(1.0), plans, Protocol(rounds=4, round_samples=1), cold=True, before=nothing, estimate_ms=2.0
    )  # type: ignore[arg-type]
    assert "".join(order) == "abbaabba"


def test_slow_finalists_get_fewer_rounds() -> None:
    clock = Clock(1000.0)
    plans = {"a": lambda: None, "b": lambda: None}
    protocol = Protocol(rounds=15, round_samples=3, finalist_seconds=3.0)
    interleave(clock, plans, protocol, cold=True, before=plans, estimate_ms=2000.0)  # type: ignore[arg-type]
    assert clock.taken == 2 * 3


def test_a_configuration_nine_times_too_slow_needs_no_second_sample() -> None:
    clock = Clock(1000.0)
    samples = sampled(clock, Protocol(abandon=3.0), first_ms=1000.0, best_ms=100.0)
    assert samples.abandoned
    assert clock.taken == 0
    assert samples.times_ms == (1000.0,)
