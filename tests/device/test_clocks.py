"""The watch over a GPU's clocks, with an NVML whose answers the test sets."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from autotune.device.clocks import ClockWatch, reasons
from autotune.device.cuda import driver as cuda_query
from autotune.hardware import Device

GPU = Device(kind="cuda", name="GPU", arch="sm_90", ordinal=3)
IDLE, USER_CLOCKS, POWER, HOT, BRAKE = 0x1, 0x2, 0x4, 0x40, 0x80


class Nvml(ModuleType):
    """``pynvml`` for one GPU whose mask and clock are set from outside."""

    NVML_CLOCK_SM = 1

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.mask, self.clock, self.asked = 0, 1980, ""
        self.broken: Exception | None = None

    def nvmlInit(self) -> None:  # noqa: N802
        self._maybe()

    def nvmlDeviceGetHandleByPciBusId(self, bus: str) -> str:  # noqa: N802
        self.asked = bus
        return f"handle {bus}"

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.159"

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        self._maybe()
        assert handle == f"handle {self.asked}"
        return self.mask

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return self.clock

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980

    def _maybe(self) -> None:
        if self.broken:
            raise self.broken


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    fake = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with_pycuda(monkeypatch, lambda n: SimpleNamespace(pci_bus_id=lambda: f"0000:0{n}:00.0"))
    return fake


@pytest.mark.parametrize("mask", [0, IDLE, USER_CLOCKS, IDLE | USER_CLOCKS, 0x100])
def test_an_idle_gpu_and_clocks_somebody_set_are_no_throttling(nvml, mask):
    nvml.mask = mask
    assert ClockWatch(GPU).find_throttling() == ""


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (POWER, "power cap"),
        (HOT, "hardware thermal slowdown"),
        (POWER | BRAKE | IDLE, "power cap and power brake"),
    ],
)
def test_what_slows_is_named_with_the_clock(nvml, mask, words):
    nvml.mask, nvml.clock = mask, 1410
    assert ClockWatch(GPU).find_throttling() == f"{words}, 1410 of 1980 MHz"
    assert reasons(mask) == words


def test_it_is_asked_anew_each_time(nvml):
    guard = ClockWatch(GPU)
    assert guard.find_throttling() == ""
    nvml.mask = POWER
    assert guard.find_throttling()
    nvml.mask = 0
    assert guard.find_throttling() == ""


def test_a_description_has_clock_driver_and_mask(nvml):
    nvml.mask, nvml.clock = POWER, 1755
    said = {"driver": "580.159", "clock_mhz": 1755, "clock_max_mhz": 1980, "throttle_reasons": POWER}
    assert ClockWatch(GPU).describe() == said
    assert nvml.asked == "0000:03:00.0"


def test_a_driver_has_its_own_version_and_never_that_of_cuda(tmp_path):
    """Here, and in the policy files that ship."""
    module = tmp_path / "version"
    assert cuda_query.driver_version(13000, module) == "for CUDA 13.0"
    said = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12.2.0\n"
    module.write_text(said)
    assert cuda_query.driver_version(13000, module) == "580.159.04"
    for path in (Path(__file__).parents[2] / "policies").glob("*/*.yaml"):
        found = re.findall(r"^ *driver: *(.*)$", path.read_text(), re.MULTILINE)
        assert all(re.fullmatch(r"'?(\d{3,}\.\d+(\.\d+)?)?'?", version) for version in found), path


def test_without_nvml_nothing_is_held_down(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    guard = ClockWatch(GPU)
    assert guard.find_throttling() == ""
    assert "not available: ModuleNotFoundError" in guard.describe()["nvml"]


def test_an_nvml_that_stops_answering_costs_no_measurement(nvml):
    guard = ClockWatch(GPU)
    nvml.mask, nvml.broken = POWER, RuntimeError("GPU is lost")
    assert guard.find_throttling() == ""
    nvml.broken = None
    assert guard.find_throttling() == ""
    assert guard.describe() == {"nvml": "stopped answering: RuntimeError: GPU is lost"}


def test_a_cpu_has_nothing_to_watch(nvml):
    guard = ClockWatch(Device(kind="cpu", name="cpu", arch="x86_64"))
    assert guard.find_throttling() == ""
    assert guard.describe() == {"nvml": "no GPU to watch"}
    assert nvml.asked == ""


def with_pycuda(monkeypatch: pytest.MonkeyPatch, device: Callable[[int], Any]) -> None:
    driver = ModuleType("pycuda.driver")
    driver.Device = device  # type: ignore[attr-defined]
    package = ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)


def test_a_gpu_whose_bus_id_is_unknown_is_not_watched(nvml, monkeypatch):
    def missing(ordinal: int) -> Any:
        raise RuntimeError("no such device")

    with_pycuda(monkeypatch, missing)
    guard = ClockWatch(GPU)
    assert guard.find_throttling() == ""
    assert "no such device" in guard.problem
