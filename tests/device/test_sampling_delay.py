"""How long samples wait on a GPU behind a delay, by a driver that only counts time."""

from types import SimpleNamespace

import pytest

from autotune.device.cuda import timing


class Clock:
    now_ns = 0

    def perf_counter_ns(self) -> int:
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


class Event:
    """Nothing on the device takes time."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def time_since(self, _other: "Event") -> float:
        return 0.0


def delays(clock: Clock, monkeypatch: pytest.MonkeyPatch, queue_ns: list[int]) -> list[int]:
    """Of a sample after another, of a plan that takes the host so long at each run."""
    asked: list[int] = []
    monkeypatch.setattr(timing.Probe, "delay", lambda _self, nanoseconds: asked.append(nanoseconds))
    probe = timing.Probe(SimpleNamespace(Event=Event), None, 0)  # type: ignore[arg-type]

    def plan() -> None:
        clock.now_ns += queue_ns.pop(0)

    while queue_ns:
        probe.sample(plan, 1, cold=False)
    return asked


def test_what_is_loaded_at_the_first_run_lengthens_no_delay(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, launching = 10_000_000, 8_000
    assert delays(clock, monkeypatch, [loading, launching, launching]) == [20_000, 20_000, 16_000]


def test_a_plan_that_takes_the_host_long_each_time_waits_longer(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delays(clock, monkeypatch, [50_000] * 4) == [20_000, 20_000, 100_000, 100_000]
