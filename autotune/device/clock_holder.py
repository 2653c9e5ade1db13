"""A GPU's SM clock held at one frequency while a sweep measures, and given back when that ends, however it ends.

A process of its own holds it: it locks the clocks, says so, and gives them back when its standard input ends, which the
system closes with the sweep's process: after Ctrl-C, SIGTERM and SIGKILL too. It is in a session of its own, so that
a signal to the terminal's group does not reach it.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from autotune.device.nvml import bus_id, handle
from autotune.errors import DeviceError, UsageError

__all__ = ["checked_clocks", "locked_clocks"]

NAMED = ("base", "max")
_HELD = "held "
_END_SECONDS = 10.0


def checked_clocks(asked: str) -> str:
    """``asked`` where it is base, max, or a whole number of MHz; empty for none. Raises UsageError."""
    if asked and asked not in NAMED and not (asked.isdecimal() and int(asked) > 0):
        raise UsageError(f"cannot read --clocks {asked!r}: write base, max, or a whole number of MHz (1500)")
    return asked


@contextmanager
def locked_clocks(asked: str, ordinals: Sequence[int]) -> Iterator[str]:
    """The SM clocks of the GPUs that CUDA calls by ``ordinals`` are held at ``asked`` in the block, whose value says at
    which. Raises DeviceError where that is not allowed, or not to be had."""
    words = [sys.executable, "-m", "autotune.device.clock_holder", asked, *map(str, ordinals)]
    holder = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    assert holder.stdin and holder.stdout and holder.stderr
    try:
        said = holder.stdout.readline().strip()
        if not said.startswith(_HELD):
            raise DeviceError(said or f"the clocks were not locked: {_last(holder.stderr.read())}")
        yield said.removeprefix(_HELD)
    finally:
        holder.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            holder.wait(_END_SECONDS)
        holder.stdout.close()
        holder.stderr.close()
        if holder.returncode is None or holder.returncode < 0:
            sys.stderr.write("the clocks may still be locked: `nvidia-smi -rgc` gives them back\n")


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["its process ended without a word"])[-1]


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


def _hold(asked: str, ordinals: Sequence[int]) -> int:
    """The process's life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: list[tuple[Any, Any]] = []
    told = []
    try:
        from pycuda import driver

        driver.init()
        for ordinal in ordinals:
            nvml, gpu = handle(bus_id(ordinal))
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


if __name__ == "__main__":
    sys.exit(_hold(sys.argv[1], [int(word) for word in sys.argv[2:]]))
