"""The rules of measurement, on a clock whose times the test sets."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.sampling import (
    CUDA,
    LONG_MS,
    Protocol,
    Timing,
    floors,
    hopeless_ms,
    median,
    spread,
)


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


def sampling(clock: Any, protocol: Protocol, watch: Any = None, *, cold: bool = True) -> Timing:
    return Timing(backend=clock, protocol=protocol, cold=cold, watch=watch)


def sampled(clock: Any, protocol: Protocol, first_ms: float = 1.0, best_ms: float = math.inf) -> Any:
    return sampling(clock, protocol).measure(lambda: None, first_ms, best_ms)


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
    sampling(Clock(1.0), Protocol(rounds=4, round_samples=1)).interleave(plans, nothing, 2.0)
    assert "".join(order) == "abbaabba"


def test_slow_finalists_get_fewer_rounds() -> None:
    clock = Clock(1000.0)
    plans = {"a": lambda: None, "b": lambda: None}
    protocol = Protocol(rounds=15, round_samples=3, finalist_seconds=3.0)
    sampling(clock, protocol).interleave(plans, plans, 2000.0)
    assert clock.taken == 2 * 3


@pytest.mark.parametrize(("each_ms", "turns"), [(1000.0, 3), (3001.0, 2)])
def test_the_control_takes_part_in_few_rounds_and_in_fewer_where_it_is_slow(
    each_ms: float, turns: int
) -> None:
    protocol = Protocol(rounds=5, round_samples=1, finalist_seconds=3.0)
    plans = {"a": lambda: None, "control": lambda: None}
    found = sampling(Clock(each_ms), protocol).interleave(plans, plans, 1.0, few=frozenset({"control"}))
    assert {key: len(samples.times_ms) for key, samples in found.items()} == {"a": 5, "control": turns}


def test_a_configuration_nine_times_too_slow_needs_no_second_sample() -> None:
    clock = Clock(1000.0)
    samples = sampled(clock, Protocol(abandon=3.0), first_ms=1000.0, best_ms=100.0)
    assert samples.abandoned
    assert clock.taken == 0
    assert samples.times_ms == (1000.0,)


# -- throttled samples, warm caches, floors ------------------------------------------------------------------


class Watch:
    """Says the reasons of a list, one after each sampling, then nothing."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = list(reasons)
        self.asked = 0

    def find_throttling(self) -> str:
        self.asked += 1
        return self.reasons.pop(0) if self.reasons else ""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr("autotune.measure.sampling.time.sleep", taken.append)
    return taken


QUICK = Protocol(least=5, most=5, seconds=10, batch_ms=1000, retakes=2, pause=0.1)


def watched(clock: Any, watch: Any, protocol: Protocol = QUICK, **values: Any) -> Any:
    cold = values.pop("cold", True)
    given = {"first_ms": 1.0, "best_ms": math.inf, **values}
    return sampling(clock, protocol, watch, cold=cold).measure(lambda: None, **given)


def test_throttled_samples_are_retaken_after_a_pause_and_it_is_said(pauses):
    clock = Clock(*[9.0] * 5, *[8.0] * 5, 1.0)
    samples = watched(clock, Watch("power cap, 1200 of 1980 MHz", "brake"))
    assert samples.times_ms == (1.0,) * 5
    assert pauses == [0.1, 0.2]
    assert samples.dropped_ms == 85.0
    (note,) = samples.notes
    assert note == "samples were taken again 2 times: throttled (power cap, 1200 of 1980 MHz; brake)"


def test_what_stays_throttled_is_kept_and_said(pauses):
    watch = Watch(*["power cap"] * 50)
    samples = watched(Clock(2.0), watch)
    assert samples.times_ms == (2.0,) * 5
    assert len(pauses) == QUICK.retakes
    assert samples.notes == ("throttled while it was timed (power cap): its times may be too long",)


def test_retakes_are_counted_by_configuration_and_not_by_batch(pauses):
    protocol = Protocol(least=2, most=8, seconds=10, batch_ms=0.1, target_spread=0.0, retakes=2)
    clock = Clock(*[1.0 + 0.1 * (i % 3) for i in range(100)])
    samples = watched(clock, Watch(*["hot"] * 50), protocol)
    assert len(samples.times_ms) == 8
    assert len(pauses) == 2


def test_a_device_that_is_not_throttled_is_asked_and_nothing_is_said(pauses):
    watch = Watch()
    samples = watched(Clock(1.0), watch)
    assert watch.asked == 1
    assert samples.notes == ()
    assert samples.dropped_ms == 0.0
    assert not pauses


def test_a_throttled_second_sample_condemns_nobody(pauses):
    clock = Clock(900.0, 100.0)
    samples = watched(clock, Watch("hot"), first_ms=500.0, best_ms=100.0)
    assert not samples.abandoned
    assert samples.median_ms == 100.0


def test_warm_samples_begin_with_a_run_that_does_not_count():
    clock = Clock(7.0, 1.0)
    samples = watched(clock, None, cold=False)
    assert samples.times_ms == (1.0,) * 5
    assert samples.dropped_ms == 7.0
    assert watched(Clock(7.0, 1.0), None, cold=True).times_ms == (7.0, 1.0, 1.0, 1.0, 1.0)


def test_warm_finalists_are_warmed_at_every_turn():
    order: list[str] = []
    plans = {name: (lambda name=name: order.append(name)) for name in "ab"}
    nothing = dict.fromkeys(plans, lambda: None)
    protocol = Protocol(rounds=3, round_samples=2)
    timed = sampling(Clock(1.0), protocol, cold=False).interleave(plans, nothing, 2.0)
    assert "".join(order) == "aaabbb" + "bbbaaa" + "aaabbb"
    assert [len(samples.times_ms) for samples in timed.values()] == [6, 6]


def test_throttled_finalists_are_retaken(pauses):
    plans = {"a": lambda: None, "b": lambda: None}
    protocol = Protocol(rounds=3, round_samples=1)
    watch = Watch("", "hot")
    timed = sampling(Clock(1.0, 5.0, 1.0), protocol, watch).interleave(plans, plans, 2.0)
    assert timed["b"].times_ms == (1.0, 1.0, 1.0)
    assert timed["b"].dropped_ms == 5.0
    assert timed["b"].notes == ("samples were taken again once: throttled (hot)",)
    assert timed["a"].notes == ()


def test_the_floors_are_measured_as_samples_are():
    clock = Clock(0.5, 0.25)
    assert floors(clock) == {"timer_floor_ms": 0.25}  # type: ignore[arg-type]
    assert clock.taken == 50
    clock.floor_ms = lambda: 0.75  # type: ignore[attr-defined]
    assert floors(clock) == {"timer_floor_ms": 0.25, "floor_ms": 0.75}  # type: ignore[arg-type]


def test_a_fixed_number_of_samples_is_taken_whatever_they_say():
    protocol = Protocol(abandon=3.0).fix_samples(7)
    assert len(sampled(Clock(1.0), protocol).times_ms) == 7
    hopeless = sampled(Clock(900.0), protocol, first_ms=900.0, best_ms=1.0)
    assert len(hopeless.times_ms) == 7
    assert not hopeless.abandoned
    assert len(sampled(Clock(1.0, 5.0), Protocol().fix_samples(1)).times_ms) == 1
    assert protocol.finalists == 0


def test_in_a_race_a_long_kernel_that_is_slower_has_one_run() -> None:
    race = replace(CUDA.fix_samples(7), race=1.02)
    assert hopeless_ms(race, 50.0) == pytest.approx(51.0)
    assert hopeless_ms(race, 1.0) == LONG_MS
    assert hopeless_ms(CUDA, 50.0) == 9 * 50.0
    assert (CUDA.to_dict()["race"], race.to_dict()["race"]) == (0.0, 1.02)
