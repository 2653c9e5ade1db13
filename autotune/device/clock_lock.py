"""A GPU's SM clock locked while a sweep measures, and given back however that ends.

A process of its own locks it and waits for the end of its standard input, which the system closes with the sweep's
process: after Ctrl-C, SIGTERM and SIGKILL too.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from autotune.device.clocks import nvml_handle
from autotune.errors import DeviceError, UsageError
from autotune.hardware import Device
from autotune.processes import python, run_beside

_LOCKED = "locked"


@contextmanager
def lock_clocks(asked: str, devices: Sequence[Device]) -> Iterator[None]:
    """The SM clocks of ``devices`` are locked in the block at ``asked``: base, max or MHz; empty leaves them alone.
    Raises UsageError for a cpu, and DeviceError where they cannot be locked."""
    if not asked:
        yield
        return
    if devices[0].kind == "cpu":
        raise UsageError(
            f"--clocks {asked} locks a GPU's clocks, and this is the cpu: omit it, or name a GPU with --device"
        )
    command = python("autotune.device.clock_lock", asked, *(str(device.ordinal) for device in devices))
    with run_beside(command, "the clocks may still be locked: `nvidia-smi -rgc` resets them") as said:
        if said != _LOCKED:
            raise DeviceError(f"--clocks {asked}: {said or 'the process that locks the clocks has failed'}")
        yield


def main(asked: str, *ordinals: str) -> int:
    """The process that locks the clocks until its input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    said = _LOCKED
    with ExitStack() as locked:
        try:
            from pycuda import driver

            driver.init()
            for ordinal in ordinals:
                locked.enter_context(_lock(asked, *nvml_handle(int(ordinal))))
        except DeviceError as problem:
            said = str(problem)
        except Exception as problem:  # noqa: BLE001 - a missing package, library or device, or no right to lock
            said = (
                f"the clocks cannot be locked ({type(problem).__name__}: {problem}); it takes NVML (pip install "
                "nvidia-ml-py) and root's rights. Without --clocks the clocks are only monitored"
            )
        print(said, flush=True)
        sys.stdin.read()
    return 0


@contextmanager
def _lock(asked: str, nvml: Any, gpu: Any) -> Iterator[None]:
    """One GPU's."""
    most = int(nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM))
    if asked.isdecimal() and int(asked) > most:
        raise DeviceError(f"its SM clock is at most {most} MHz")
    # the clock that the power limit is made for has a number of its own
    clock = {"base": nvml.NVML_CLOCK_LIMIT_ID_TDP, "max": most}.get(asked) or int(asked)
    nvml.nvmlDeviceSetGpuLockedClocks(gpu, clock, clock)
    try:
        yield
    finally:
        nvml.nvmlDeviceResetGpuLockedClocks(gpu)
