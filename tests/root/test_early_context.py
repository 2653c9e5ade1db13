"""autotune.hardware.EarlyContext and the start of a command, with a driver in place of NVIDIA's."""

import ctypes
import importlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune import family, hardware

main = importlib.import_module("autotune.__main__")


class Driver:
    """``fails`` names the function that does."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.held = 0
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            if name == "cuDeviceGet":
                self.asked.append(arguments[1])
            if name == self.fails:
                return 999
            if name == "cuDeviceGetName":
                arguments[0].value = b"NVIDIA H200"
            if name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {75: 9, 76: 0}[arguments[1]]
            self.held += (name == "cuDevicePrimaryCtxRetain") - (name == "cuDevicePrimaryCtxRelease")
            return 0

        return call


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: made)
    monkeypatch.setattr(hardware.EarlyContext, "current", None)
    return made


def test_the_context_is_held_until_it_is_left(driver: Driver) -> None:
    early = hardware.EarlyContext(3)
    assert hardware.EarlyContext.current is early
    early._thread.join()
    assert (driver.asked, driver.held) == ([3], 1)
    assert early.is_made()
    early.leave()
    early.finish()
    assert driver.held == 0
    assert early.is_made()


def test_the_gpu_is_known_by_name_before_it_has_a_context(driver: Driver) -> None:
    driver.fails = "cuDevicePrimaryCtxRetain"
    early = hardware.EarlyContext(2)
    device = early.device()
    assert device == hardware.Device(kind="cuda", name="NVIDIA H200", arch="sm_90", ordinal=2)
    assert device.slug == "nvidia-h200" and not early.is_made()
    early.finish()


@pytest.mark.parametrize("fails", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"])
def test_what_the_driver_refuses_is_left_to_others(driver: Driver, fails: str) -> None:
    driver.fails = fails
    early = hardware.EarlyContext(0)
    assert not early.is_made()
    early.finish()
    assert driver.held == 0


@pytest.mark.parametrize("fails", ["cuInit", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"])
def test_a_gpu_that_cannot_be_asked_is_none(driver: Driver, fails: str) -> None:
    driver.fails = fails
    early = hardware.EarlyContext(0)
    assert early.device() is None
    early.finish()


def test_without_a_driver_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr(hardware.EarlyContext, "current", None)
    hardware.EarlyContext(0).finish()


@pytest.mark.parametrize(
    ("arguments", "ordinal"),
    [
        ([], None),
        (["sweep", "mummergpu"], None),
        (["run", "mummergpu"], 0),
        (["run", "mummergpu", "--device", "auto"], 0),
        (["run", "mummergpu", "--device", "cuda"], 0),
        (["run", "mummergpu", "--device", "cuda:2", "-o", "x"], 2),
        (["run", "mummergpu", "--device=cuda:1"], 1),
        (["run", "mummergpu", "--device", "cpu"], None),
        (["run", "mummergpu", "--device", "cuda:0,1"], None),
        (["run", "mummergpu", "--device", "cuda:x"], None),
        (["run", "mummergpu", "--device", "rocm"], None),
        (["run", "mummergpu", "--device"], None),
    ],
)
def test_which_command_wants_which_gpu(
    driver: Driver, arguments: list[str], ordinal: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {})
    early = main._awaken(arguments)
    if early is not None:
        early.finish()
    assert driver.asked == ([] if ordinal is None else [ordinal])
    assert ("CUDA_DEVICE_MAX_CONNECTIONS" in os.environ) == (ordinal is not None)


def test_a_command_counts_from_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "_began", None)
    assert family.command_seconds() == 0.0
    family.command_begins()
    assert 0.01 < family.command_seconds() < 24 * 3600  # this process has imported a lot


def test_the_driver_is_left_with_its_files_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("nvidia0", "nvidiactl", "other")]
    files = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    monkeypatch.setattr(hardware, "_OF_DRIVER", str(tmp_path / "nvidia"))
    monkeypatch.setattr(hardware, "_is_left", threading.Event())
    assert not hardware.is_driver_left()
    for _ in range(2):
        family.leave_driver()
        assert [_is_open(file) for file in files] == [False, False, True]
        assert hardware.is_driver_left()
    os.close(files[2])


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True
