"""Hardware counters by Nsight Compute, run as a program.

``ncu`` watches a process of its own (``profiled``) that runs each configuration once. It is told to
leave the clocks alone, so that nothing of the machine's settings changes.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from autotune.counters import METRICS, MORE_METRICS, counters, parsed
from autotune.errors import DeviceError
from autotune.profiled import Result, Task, watched

__all__ = ["Counters", "command", "find_ncu", "profile"]

Counters = dict[str, dict[str, dict[str, float]]]
_SECONDS = 1800.0  # a kernel is run again for each group of counters, about ten times


def find_ncu() -> str:
    """The program. Raises DeviceError where it is not installed."""
    places = (shutil.which("ncu"), "/usr/local/cuda/bin/ncu")
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    raise DeviceError(
        "Nsight Compute (ncu) is not here: it comes with the CUDA toolkit; install it and put it on PATH"
    )


def profile(
    task: Task, kernels: Sequence[str], ncu: str, *, cold: bool, seconds: float = _SECONDS
) -> tuple[Counters, Result]:
    """Run ``task`` under ``ncu``: configuration id -> kernel -> counter -> value, and what ran. ``cold`` has caches
    flushed before each run of a kernel. Raises DeviceError with what to do when ncu or the driver refuses."""
    with tempfile.TemporaryDirectory(prefix="autotune-profile-") as folder:
        task = replace(task, result=str(Path(folder) / "result.json"))
        given = Path(folder) / "task.json"
        given.write_text(json.dumps(asdict(task)), encoding="utf-8")
        log = Path(folder) / "ncu.csv"
        for metrics in ((*METRICS, *MORE_METRICS), METRICS):
            done = watched(command(ncu, metrics, kernels, log, given, cold=cold), "the profiled run", seconds)
            printed = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            said = f"{printed}\n{done.stdout}\n{done.stderr}"
            if "ERR_NVGPUCTRPERM" in said:
                raise DeviceError(
                    "the driver keeps hardware counters for administrators (ERR_NVGPUCTRPERM): run as root, or have "
                    "an administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0"
                )
            if done.returncode == 0 or "metric" not in said.lower():
                break  # else a metric that this device or version does not know: the sure ones alone
        if done.returncode != 0 or not Path(task.result).is_file():
            raise DeviceError(f"the profiled run failed (exit code {done.returncode}): {_tail(said)}")
        result = Result(**json.loads(Path(task.result).read_text(encoding="utf-8")))
    try:
        found = counters(parsed(printed), result.runs, tuple(kernels))
    except ValueError as problem:
        raise DeviceError(f"cannot read what ncu printed: {problem}: {_tail(said)}") from None
    return {one: of for one, of in found.items() if one not in result.failed}, result


def command(
    ncu: str, metrics: Sequence[str], kernels: Sequence[str], log: Path, task: Path, *, cold: bool
) -> list[str]:
    """The command line: clocks as they are, caches as the workload has them."""
    return [
        ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--cache-control", "all" if cold else "none", "--target-processes", "application-only",
        "--kernel-name", f"regex:{'|'.join(kernels)}", "--metrics", ",".join(metrics), "--log-file", str(log),
        sys.executable, "-m", "autotune.profiled", str(task),
    ]  # fmt: skip


def _tail(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith('"')]
    return " | ".join(lines[-4:]) or "it said nothing"
