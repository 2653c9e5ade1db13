"""Counters of energy: of a cpu's packages, of a GPU's board, and power from one that moves in steps."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import DeviceError
from autotune.hardware import Device
from autotune.measure import energy
from autotune.measure.energy import Reading, energy_counter, watts

CPU = Device(kind="cpu", name="Some cpu", arch="x86_64")
GPU = Device(kind="cuda", name="Some GPU", arch="sm_90")


@settings(max_examples=30)
@given(
    power=st.floats(1, 1000), step_s=st.floats(0.0001, 0.03), every_s=st.floats(0.0001, 0.03),
    begin=st.floats(0, 1), offset=st.floats(0, 1e6),
)  # fmt: skip
def test_power_is_told_from_a_counter_that_moves_in_steps(
    power: float, step_s: float, every_s: float, begin: float, offset: float
) -> None:
    """Exact but for when a move is seen: one reading later at most, at either end."""
    times = [begin + i * every_s for i in range(round(1 / every_s))]
    readings = [Reading(t, offset + power * math.floor(t / step_s) * step_s) for t in times]
    assert watts(readings) == pytest.approx(power, rel=2 * (step_s + every_s) / 0.9, abs=1e-4)


def test_a_counter_that_stands_still_has_no_power() -> None:
    assert watts([Reading(0.0, 5.0), Reading(1.0, 5.0)]) == 0
    assert watts([Reading(0.0, 5.0), Reading(1.0, 5.0), Reading(2.0, 7.0)]) == 0  # since when is not known
    assert watts([Reading(0.0, 5.0), Reading(2.0, 9.0)]) == 2


def test_a_move_that_was_seen_late_is_left_out() -> None:
    """300 W, read every 4 ms, with a move every 100 ms; one answer takes 80 ms."""
    times = [t / 1000 for t in range(0, 120, 4)] + [t / 1000 for t in range(196, 620, 4)]
    readings = [Reading(t, 300 * (t // 0.1) * 0.1) for t in times]
    assert watts(readings, since=0.11) == pytest.approx(300, rel=0.03)
    late = next(i for i, t in enumerate(times) if t > 0.19)
    stalled = [
        *readings[:late],
        Reading(0.28, readings[late].joules + 30),
        *(r for r in readings if r.seconds > 0.28),
    ]
    assert watts(stalled, since=0.12) == pytest.approx(300, rel=0.03)


def test_what_came_before_is_left_out() -> None:
    cold = [Reading(t / 10, 10.0 * t) for t in range(5)]  # 100 W
    busy = [Reading(0.5 + t / 10, 50 + 30.0 * t) for t in range(5)]  # 300 W
    assert watts([*cold, *busy], since=0.5) == pytest.approx(300)


def test_a_cpu_has_no_counter() -> None:
    with pytest.raises(
        DeviceError, match=r"Some cpu cannot be read: only a GPU's can; omit --objective energy"
    ):
        energy_counter(CPU)


def with_nvml(monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], int]) -> None:
    nvml = SimpleNamespace(nvmlDeviceGetTotalEnergyConsumption=read)
    monkeypatch.setattr(energy, "nvml_handle", lambda ordinal: (nvml, f"handle {ordinal}"))


def test_a_gpu_is_read_in_millijoules_by_its_ordinal(monkeypatch: pytest.MonkeyPatch) -> None:
    with_nvml(monkeypatch, lambda handle: {"handle 3": 1500}[handle])
    assert energy_counter(replace(GPU, ordinal=3))().joules == 1.5


def test_a_gpu_that_does_not_tell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_handle: Any) -> int:
        raise RuntimeError("Not Supported")

    with_nvml(monkeypatch, refuses)
    with pytest.raises(
        DeviceError, match=r"Some GPU cannot be read \(RuntimeError: Not Supported\): it takes NVML"
    ):
        energy_counter(GPU)
