"""Calls in production: which are timed, when a winner has drifted, and what a program's meter gets."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lending import Array, World, make_world, write_tuned_doubler

import autotune
from autotune.dispatch import Drift, explain_chain
from autotune.errors import UsageError
from autotune.policy import file_name


class Instrument:
    def __init__(self) -> None:
        self.noted: list[tuple[float, Mapping[str, Any]]] = []

    def add(self, amount: float, attributes: Mapping[str, Any]) -> None:
        self.noted.append((amount, attributes))

    record = add


class Meter:
    """What OpenTelemetry's Meter has of it: names, units and descriptions, by place."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[str, Instrument]] = {}

    def _create(self, name: str, unit: str = "", description: str = "") -> Instrument:
        assert description
        return self.made.setdefault(name, (unit, Instrument()))[1]

    create_counter = create_histogram = _create

    def noted(self, name: str) -> list[tuple[float, Mapping[str, Any]]]:
        return self.made[name][1].noted


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return make_world(monkeypatch, tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path, world: World) -> Path:
    return write_tuned_doubler(tmp_path, world, {200: "global"}, ms_of_element=0.01, spread=0.1)


X = np.arange(200, dtype=np.float32)


def take(times: Iterator[float], world: World, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Times for the calls that are timed; a mark for each begin and end."""
    marks: list[None] = []
    monkeypatch.setattr(world.gpu, "mark", lambda: marks.append(None))
    monkeypatch.setattr(world.gpu, "between_ms", lambda _b, _e: next(times))
    return marks


def call(kernel: autotune.TunedKernel, times: int) -> None:
    for start in range(times):
        x = np.arange(start, start + 200, dtype=np.float32)
        np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)


def test_a_drifted_winner_is_reported_once_and_stays(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(iter([2.1, 2.2] * 10 + [2.6, 2.7] * 500), world, monkeypatch)
    told: list[Drift] = []
    meter = Meter()
    monitor = autotune.Monitor(every=3, on_drift=told.append, meter=meter)
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies", monitor=monitor) as kernel:
        with warnings.catch_warnings(action="error"):
            call(kernel, 3 * 20)  # within the interval of the entry: 2 ms, 10 %
        assert "\n  drifted" not in explain_chain(*kernel.explain(kernel.bind(X)))
        with pytest.warns(UserWarning, match=r"doubler takes 2.6.* ms .*on its entry n200, 2.00 ms") as seen:
            call(kernel, 3 * 100)
        assert len(seen) == 1
        text = explain_chain(*kernel.explain(kernel.bind(X)))
        assert "\n  drifted      doubler takes 2.6" in text
        assert "block_size=64,memory=global" in text
    (drift,) = told
    assert drift.entry.name == "n200"
    assert drift.now_ms * (1 - drift.spread) > 2.2
    about = {
        "autotune.family": "doubler", "autotune.device": "Host GPU", "autotune.match": "exact",
        "autotune.configuration": "block_size=64,memory=global",
    }  # fmt: skip
    assert meter.noted("autotune.choices") == meter.noted("autotune.drifts") == [(1, about)]
    durations = meter.noted("autotune.call.duration")
    assert [seconds for seconds, _ in durations[:3]] == pytest.approx([0.0021, 0.0022, 0.0021])
    assert {name: unit for name, (unit, _) in meter.made.items()} == {
        "autotune.choices": "{choice}", "autotune.drifts": "{drift}", "autotune.call.duration": "s",
    }  # fmt: skip


def test_one_call_in_so_many_is_timed_and_the_others_go_the_short_way(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = take(iter([2.0] * 1000), world, monkeypatch)
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies", monitor=10) as kernel:
        call(kernel, 3)
        world.gpu.seen.clear()
        call(kernel, 6)
        assert "bound" not in world.gpu.seen
        assert not marks
        call(kernel, 91)
    assert 9 <= len(marks) / 2 <= 11


@pytest.mark.parametrize("entry_ms", [2.0, 0.5])
def test_on_a_cpu_times_of_less_than_a_millisecond_are_not_judged(
    entry_ms: float, folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policies" / file_name("doubler", world.gpu.device.slug)
    path.write_text(path.read_text().replace("median_ms: 2.0", f"median_ms: {entry_ms}"))
    take(iter([9.0] * 1000), world, monkeypatch)
    gpu: Any = world.gpu
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies", monitor=1) as kernel:
        object.__setattr__(gpu.device, "kind", "cpu")
        with warnings.catch_warnings(record=True, action="always") as seen:
            for _ in range(30):
                kernel(X)
    assert len([one for one in seen if "on its entry" in str(one.message)]) == (entry_ms >= 1)


def test_without_an_exact_entry_nothing_is_judged_and_nothing_is_watched_unless_asked(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = take(iter([9.0] * 1000), world, monkeypatch)
    with (
        warnings.catch_warnings(action="error"),
        autotune.load(folder, device="cuda", policies=tmp_path / "policies", monitor=1) as kernel,
    ):
        for _ in range(40):
            kernel(X[:100])
        assert marks
    marks.clear()
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies") as kernel:
        call(kernel, 5)
    assert not marks
    with pytest.raises(UsageError, match=r"Monitor\(every=0\)"):
        autotune.load(
            folder, device="cuda", policies=tmp_path / "policies", monitor=autotune.Monitor(every=0)
        )
