"""A GPU's SM clock held at one frequency while a sweep measures, and given back when that ends, however it ends.

A process of its own holds it: it locks the clocks, says so, and gives them back when its standard input ends, which the
system closes with the sweep's process: after Ctrl-C, SIGTERM and SIGKILL too. It is in a session of its own, so that
a signal to the terminal's group does not reach it.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from autotune.device.clocks import bus_id, handle
from autotune.errors import DeviceError, UsageError
from autotune.processes import beside, python

__all__ = ["checked_clocks", "locked_clocks"]

NAMED = ("base", "max")
_HELD = "held "


def checked_clocks(asked: str) -> str:
    """``asked`` where it is base, max, or a whole number of MHz; empty for none. Raises UsageError."""
    if asked and asked not in NAMED and not (asked.isdecimal() and int(asked) > 0):
        raise UsageError(f"cannot read --clocks {asked!r}: write base, max, or a whole number of MHz (1500)")
    return asked


@contextmanager
def locked_clocks(asked: str, ordinals: Sequence[int]) -> Iterator[str]:
    """The SM clocks of the GPUs that CUDA calls by ``ordinals`` are held at ``asked`` in the block, whose value says at
    which. Raises DeviceError where that is not allowed, or not to be had."""
    words = python("autotune.device.clock_holder", asked, *map(str, ordinals))
    with beside(words, "the clocks may still be locked: `nvidia-smi -rgc` gives them back") as said:
        if not said.startswith(_HELD):
            raise DeviceError(said)
        yield said.removeprefix(_HELD)


def _lock(nvml: Any, gpu: Any, asked: str) -> str:
    """Hold one GPU's clock: which one, in words."""
    most = int(nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM))
    if asked == "base":  # the clock that the power limit is made for has a number of its own
        nvml.nvmlDeviceSetGpuLockedClocks(gpu, nvml.NVML_CLOCK_LIMIT_ID_TDP, nvml.NVML_CLOCK_LIMIT_ID_TDP)
        return "base"
    wanted = most if asked == "max" else int(asked)
    if wanted > most:
        raise DeviceError(f"--clocks {wanted}: its SM clock is at most {most} MHz")
    nvml.nvmlDeviceSetGpuLockedClocks(gpu, wanted, wanted)
    return f"{wanted} MHz"


def main(asked: str, *ordinals: str) -> int:
    """The process's life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: list[tuple[Any, Any]] = []
    told = []
    try:
        from pycuda import driver

        driver.init()
        for ordinal in ordinals:
            nvml, gpu = handle(bus_id(int(ordinal)))
            told.append(_lock(nvml, gpu, asked))
            held.append((nvml, gpu))
        print(f"{_HELD}{told[0]}", flush=True)
        sys.stdin.read()
    except DeviceError as problem:
        print(problem, flush=True)
        return 1
    except Exception as problem:  # noqa: BLE001 - a missing package, library or device, or no right to lock
        print(
            f"--clocks {asked}: the clocks cannot be locked ({type(problem).__name__}: {problem}); it takes NVML (pip "
            "install nvidia-ml-py) and root, or whoever administers the GPU. Leave --clocks out, and the clocks are "
            "watched all the same",
            flush=True,
        )
        return 1
    finally:
        for nvml, gpu in held:
            with suppress(Exception):
                nvml.nvmlDeviceResetGpuLockedClocks(gpu)
    return 0
