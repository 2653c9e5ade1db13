"""Hardware counters by Nsight Compute, run as a program."""

import io
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.compile import toolkit_program
from autotune.errors import DeviceError
from autotune.files import write_text
from autotune.measure.profiled_process import WatchedResult, WatchedTask, run_watched
from autotune.processes import python

_SECTOR_BYTES = 32
_WARP = 32

_STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "mio_throttle", "no_instruction", "not_selected", "short_scoreboard", "tex_throttle", "wait",
)  # fmt: skip

_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


# Seen to work on an H200; the rest is asked for too, and left out where a device or a version knows it not.
METRICS = (
    "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_requests_srcunit_tex_op_read.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_tex.sum", "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__thread_inst_executed_per_inst_executed.ratio",
)  # fmt: skip

MORE_METRICS = (
    "l1tex__t_sector_hit_rate.pct", "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    *(_STALL.format(reason) for reason in _STALLS),
)  # fmt: skip


Metrics = Mapping[str, float]


def _sum(*names: str, scale: float = 1.0) -> Callable[[Metrics], float]:
    return lambda metrics: scale * sum(metrics[name] for name in names)


def _ratio(above: str, below: str) -> Callable[[Metrics], float]:
    return lambda metrics: metrics[above] / (metrics[below] or math.nan)


def _share(part: str, rest: str) -> Callable[[Metrics], float]:
    return lambda metrics: metrics[part] / ((metrics[part] + metrics[rest]) or math.nan)


# Counter -> how it follows from the metrics of all launches of a kernel in one call of the plan.
COUNTERS: Mapping[str, tuple[Callable[[Metrics], float], str]] = {
    "profiled_ms": (_sum("gpu__time_duration.sum", scale=1e-6), "time under the profiler, ms"),
    "launches": (_sum("launches"), "launches in one call"),
    "dram_bytes": (_sum("dram__bytes_read.sum", "dram__bytes_write.sum"), "moved to and from device memory"),
    "dram_read_bytes": (_sum("dram__bytes_read.sum"), "read from device memory"),
    "l2_read_bytes": (
        _sum("lts__t_sectors_srcunit_tex_op_read.sum", scale=_SECTOR_BYTES), "read from L2 by L1 and texture units"
    ),
    "l2_sectors_per_request": (
        _ratio("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_requests_srcunit_tex_op_read.sum"),
        "sectors of such a read, 1 to 4",
    ),
    "global_loads": (_sum("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"), "warps' loads from global memory"),
    "global_stores": (_sum("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"), "warps' stores to global memory"),
    "global_sectors_per_request": (
        _ratio("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
        "sectors of a warp's load from global memory: 4 for 32 floats in a row, 32 where each thread has its own",
    ),
    "global_store_sectors_per_request": (
        _ratio("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
        "sectors of a warp's store to global memory, as of a load",
    ),
    "bank_conflicts": (
        _sum("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"), "passes of shared memory that conflicts add"
    ),
    "instructions": (_sum("smsp__inst_executed.sum"), "instructions that warps executed"),
    "issue_busy_share": (
        _sum("smsp__issue_active.avg.pct_of_peak_sustained_active", scale=0.01), "of issue slots used, 0 to 1"
    ),
    "memory_busy_share": (
        _sum("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", scale=0.01),
        "of its peak, that of the busiest cache or memory",
    ),
    "texture_bytes": (_sum("l1tex__t_sectors_pipe_tex.sum", scale=_SECTOR_BYTES), "read through the texture units"),
    "l1_hit_share": (_sum("l1tex__t_sector_hit_rate.pct", scale=0.01), "of sectors found in L1, 0 to 1"),
    "l2_hit_share": (
        # ncu's own rate divides what it counts in two passes, and passes 1 where those differ
        _share("lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"), "of sectors found in L2, 0 to 1"
    ),
    "dram_busy_share": (_sum("dram__throughput.avg.pct_of_peak_sustained_elapsed", scale=0.01), "of its peak"),
    "l2_busy_share": (_sum("lts__throughput.avg.pct_of_peak_sustained_elapsed", scale=0.01), "of its peak"),
    "sm_busy_share": (_sum("sm__throughput.avg.pct_of_peak_sustained_elapsed", scale=0.01), "of its peak"),
    "achieved_occupancy": (_sum("sm__warps_active.avg.pct_of_peak_sustained_active", scale=0.01), "0 to 1"),
    "warp_execution_efficiency": (
        _sum("smsp__thread_inst_executed_per_inst_executed.ratio", scale=1 / _WARP),
        "threads that take part in an instruction, over 32",
    ),
    **{
        f"stall_{reason}_warps": (
            _sum(_STALL.format(reason)), f"warps that wait for {reason.replace('_', ' ')} at an issue, on average"
        )
        for reason in _STALLS
    },
}  # fmt: skip


def parse(text: str) -> pd.DataFrame:
    """What ``ncu --csv --page raw`` printed in base units: a row a launch, with ``kernel`` and ``struct`` (its only
    template argument) and a column for each known metric, in ns and bytes. Raises ValueError when it has no table."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError("there is no table in it")
    table = io.StringIO("\n".join(lines[start:]))
    frame = pd.read_csv(table, thousands=",", skiprows=[1], na_values=["n/a", "N/A"])
    called = frame["Kernel Name"].astype(str).str
    names = called.extract(r"(?P<kernel>\w+)[<(]").join(called.extract(r"<(?P<struct>\w+)>\("))
    known = [name for name in (*METRICS, *MORE_METRICS) if name in frame.columns]
    figures = frame[known].apply(pd.to_numeric, errors="coerce")
    found: pd.DataFrame = pd.concat([names, figures], axis=1)
    return found


def counters(
    frame: pd.DataFrame, runs: Sequence[Sequence[Any]], kernels: tuple[str, ...]
) -> dict[str, dict[str, dict[str, float]]]:
    """Configuration id -> kernel -> counter -> value, from ``parse``. ``runs`` are those of a ``WatchedResult``: what
    was launched for which configuration, in turn. Sums are over all launches of a kernel, rates and shares their mean
    weighted by time; what was not counted is left out. Raises ValueError when the two do not agree."""
    rows = frame[frame["kernel"].isin([_strip_namespaces(kernel) for kernel in kernels])]
    made = [(struct, _strip_namespaces(kernel)) for _, struct, launched in runs for kernel in launched]
    seen = list(rows[["struct", "kernel"]].itertuples(index=False, name=None))
    known = [
        (struct if wanted else "", kernel) for (wanted, _), (struct, kernel) in zip(made, seen, strict=False)
    ]
    if len(seen) != len(made) or known != made:
        raise ValueError(f"it has {len(rows)} launches that are not the {len(made)} that were made")
    owner = pd.Series([i for i, run in enumerate(runs) for _ in run[2]], index=rows.index, dtype=int)
    by_configuration: Counters = {}
    for i, (named, _, launched) in enumerate(runs):
        for kernel in dict.fromkeys(launched):
            metrics = _average_launches(rows[(owner == i) & (rows["kernel"] == _strip_namespaces(kernel))])
            by_configuration.setdefault(named, {})[kernel] = _values(metrics)
    return by_configuration


def _strip_namespaces(kernel: str) -> str:
    """Its name without the namespaces around it."""
    return kernel.rsplit("::", maxsplit=1)[-1]


def _values(metrics: Metrics) -> dict[str, float]:
    """Every counter whose metrics are there, and a number."""
    known = defaultdict(lambda: math.nan, metrics)
    values = {name: follows(known) for name, (follows, _) in COUNTERS.items()}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _average_launches(rows: pd.DataFrame) -> dict[str, float]:
    """The metrics of all launches: NaN where one of them was not counted."""
    times = rows["gpu__time_duration.sum"] if "gpu__time_duration.sum" in rows else pd.Series(1.0, rows.index)
    metrics = {"launches": float(len(rows))}
    for name, column in rows.drop(columns=["kernel", "struct"]).items():
        sums = column if str(name).endswith(".sum") else column * times / times.sum()
        metrics[str(name)] = float(sums.sum(skipna=False))
    return metrics


Counters = dict[str, dict[str, dict[str, float]]]
_SECONDS = 1800.0  # a kernel is run again for each group of counters, about ten times


def find_ncu() -> str:
    """The program. Raises DeviceError where it is not installed."""
    if found := toolkit_program("ncu"):
        return found
    raise DeviceError(
        "Nsight Compute (ncu) was not found: it is part of the CUDA toolkit; install it and put it on PATH"
    )


def profile(
    task: WatchedTask,
    kernels: Sequence[str],
    ncu: str,
    *,
    cold: bool,
    seconds: float = _SECONDS,
    raw: Path | None = None,
) -> tuple[Counters, WatchedResult]:
    """Run ``task`` under ``ncu``: configuration id -> kernel -> counter -> value, and what ran. ``cold`` has caches
    flushed before each run of a kernel; what ncu printed goes to the file ``raw``, too. Raises DeviceError with what to
    do when ncu or the driver refuses, StoreError when ``raw`` cannot be written."""
    metrics: tuple[str, ...] = (*METRICS, *MORE_METRICS)
    while True:
        told = partial(build_command, ncu, metrics, kernels, cold=cold)
        seen = run_watched(task, told, "the profiled run", seconds)
        if "ERR_NVGPUCTRPERM" in seen.said:
            raise DeviceError(
                "the driver keeps hardware counters for administrators (ERR_NVGPUCTRPERM): run as root, or have "
                "an administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0"
            )
        errors = "\n".join(line for line in seen.said.splitlines() if "metric" in line.lower())
        if seen.code == 0 or not errors or metrics == METRICS:
            break
        known = tuple(name for name in metrics if name in METRICS or name.partition(".")[0] not in errors)
        metrics = known if len(known) < len(metrics) else METRICS  # without those that ncu does not know here
    if raw:
        write_text(raw, seen.log)
    if seen.code != 0 or seen.result is None:
        raise DeviceError(f"the profiled run failed (exit code {seen.code}): {seen.tail}")
    result = seen.result
    try:
        found = counters(parse(seen.log), result.runs, tuple(kernels))
    except ValueError as problem:
        raise DeviceError(f"cannot read what ncu printed: {problem}: {seen.tail}") from None
    return {one: of for one, of in found.items() if one not in result.failed}, result


def build_command(
    ncu: str, metrics: Sequence[str], kernels: Sequence[str], log: Path, task: Path, *, cold: bool
) -> list[str]:
    """The command line: clocks as they are, caches as the workload has them."""
    return [
        ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--cache-control", "all" if cold else "none", "--target-processes", "application-only",
        "--kernel-name", f"regex:{'|'.join(map(_strip_namespaces, kernels))}", "--metrics", ",".join(metrics),
        "--log-file", str(log),
        *python("autotune.measure.profiled_process", str(task)),
    ]  # fmt: skip
