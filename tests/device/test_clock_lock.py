"""--clocks: locked while a sweep measures, given back however it ends, of an NVML that writes down what it is asked."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from import_path import import_path
from waiting import wait_for

from autotune.cli.commands import main
from autotune.declaration import load_family
from autotune.device import lock_clocks
from autotune.engine.request import SweepRequest
from autotune.engine.session import Session
from autotune.errors import DeviceError, UsageError
from autotune.hardware import Device
from autotune.measure import CUDA

NVML = """
import os
NVML_CLOCK_SM, NVML_CLOCK_LIMIT_ID_TDP = 1, 0xFFFFFF01
def _log(text):
    with open(os.environ["FAKE_NVML_LOG"], "a") as file:
        file.write(text + "\\n")
def nvmlInit(): pass
def nvmlDeviceGetHandleByPciBusId(bus): return bus
def nvmlDeviceGetMaxClockInfo(gpu, kind): return 1980
def nvmlDeviceSetGpuLockedClocks(gpu, low, high):
    if os.environ.get("FAKE_NVML") == gpu:
        raise RuntimeError("Insufficient Permissions")
    _log(f"lock {gpu} {low} {high}")
def nvmlDeviceResetGpuLockedClocks(gpu):
    if os.environ.get("FAKE_NVML_LOST") == gpu:
        raise RuntimeError("GPU is lost")
    _log(f"reset {gpu}")
"""
PYCUDA = """
def init(): pass
class Device:
    def __init__(self, ordinal): self.ordinal = ordinal
    def pci_bus_id(self): return f"gpu{self.ordinal}"
"""


def gpus(*ordinals: int) -> list[Device]:
    return [Device(kind="cuda", name="GPU", arch="sm_90", ordinal=n) for n in ordinals]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the processes that lock clocks ask of NVML."""
    (tmp_path / "site" / "pycuda").mkdir(parents=True)
    (tmp_path / "site" / "pynvml.py").write_text(NVML)
    (tmp_path / "site" / "pycuda" / "__init__.py").write_text("")
    (tmp_path / "site" / "pycuda" / "driver.py").write_text(PYCUDA)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", import_path())
    monkeypatch.setenv("FAKE_NVML_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def test_clocks_are_locked_in_the_block_and_given_back(log: Path) -> None:
    with lock_clocks("1500", gpus(0, 1)):
        assert log.read_text().split("\n")[:2] == ["lock gpu0 1500 1500", "lock gpu1 1500 1500"]
    assert log.read_text().splitlines()[2:] == ["reset gpu1", "reset gpu0"]


def test_what_is_not_given_back_is_said_and_the_others_are(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML_LOST", "gpu1")
    with (
        pytest.warns(UserWarning, match="may still be locked: `nvidia-smi -rgc`"),
        lock_clocks("max", gpus(0, 1)),
    ):
        pass
    assert log.read_text().splitlines()[2:] == ["reset gpu0"]


def test_what_may_not_be_locked_is_said_and_what_was_is_given_back(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML", "gpu1")
    with (
        pytest.raises(DeviceError, match=r"--clocks base: .* Insufficient Permissions.*root"),
        lock_clocks("base", gpus(0, 1)),
    ):
        pass
    assert log.read_text().splitlines() == [f"lock gpu0 {0xFFFFFF01} {0xFFFFFF01}", "reset gpu0"]


LOCKS = """
import sys, time
from autotune.device import lock_clocks
from autotune.hardware import Device
with lock_clocks("max", [Device(kind="cuda", name="GPU", arch="sm_90", ordinal=int(sys.argv[1]))]):
    print("locked", flush=True)
    time.sleep(3600)
"""


def test_they_are_given_back_whatever_ends_the_sweep(log: Path) -> None:
    ends = (signal.SIGKILL, signal.SIGTERM)
    sweeps = [
        subprocess.Popen([sys.executable, "-c", LOCKS, str(n)], stdout=subprocess.PIPE, text=True)
        for n, _ in enumerate(ends)
    ]
    for sweep, number in zip(sweeps, ends, strict=True):
        with sweep:
            assert sweep.stdout and sweep.stdout.readline() == "locked\n"
            sweep.send_signal(number)
    wait_for(lambda: log.read_text().count("reset") >= len(ends))
    for n, _ in enumerate(ends):
        told = [line for line in log.read_text().splitlines() if f"gpu{n}" in line]
        assert told == [f"lock gpu{n} 1980 1980", f"reset gpu{n}"]


def test_more_than_the_gpu_can_is_refused(log: Path) -> None:
    with (
        pytest.raises(DeviceError, match="--clocks 2000: its SM clock is at most 1980 MHz"),
        lock_clocks("2000", gpus(0)),
    ):
        pass
    assert not log.exists()


@pytest.mark.parametrize("asked", ["fast", "-1", "1.5", "0", "1500 MHz"])
def test_other_words_are_refused(asked: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write base, max, or a whole number of MHz"):
        SweepRequest(family=load_family(folder), clocks=asked, out=tmp_path).check()


def test_a_sweep_locks_those_of_its_devices_and_is_a_study_of_its_own(
    log: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = SweepRequest(family=load_family(folder), clocks="1500")
    workers: list[Any] = [SimpleNamespace(device=gpu, dismiss=lambda: None) for gpu in gpus(2, 0)]
    monkeypatch.setattr("autotune.engine.session.open_devices", lambda *_: None)
    monkeypatch.setattr(Session, "sweep", lambda *_, **_named: SimpleNamespace(is_over=True))
    case: Any = SimpleNamespace(workload=None, inputs=True, reference=None)
    session: Any = Session(request, (case,), workers, None, None, "", None, print)  # type: ignore[arg-type]
    for _ in session.sweeps():
        assert log.read_text().splitlines() == ["lock gpu2 1500 1500", "lock gpu0 1500 1500"]
    for _ in replace(session, request=replace(request, clocks="")).sweeps():
        assert len(log.read_text().splitlines()) == 4  # given back, and none locked
    assert request.protocol("cuda").to_dict() == {**CUDA.to_dict(), "clocks": "1500"}


def test_a_cpu_has_no_clocks_to_lock(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", str(folder), "--device", "cpu", "--clocks", "base", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--policies", str(tmp_path / "policies")]) == 2
    assert "--clocks base locks a GPU's clocks, and this is the cpu" in capsys.readouterr().err
