"""How well a family's work spreads over devices: predicted and measured, by number of devices, allocation and batch.

    python benchmarks/spread_efficiency.py FAMILY -w WORKLOAD --devices 1,2,4 --out spread.csv

``--kind cpu`` runs workers on the cpu, which disturb each other: for trying the script out, not for figures. Each
number of devices is a new set of workers; starting, a run that does not count, and calibrating come first, then
``--runs`` runs of each allocation and batch in turn. A row is one allocation and batch on some devices (the median
run), or one worker of it (worker = 0, 1, ...). ``efficiency`` is the time of the best on one device over devices times
this one's; it needs 1 among --devices. ``call_s`` is the median of the whole call as its caller sees it, until its
results are in hand: what ``elapsed_s`` is, and the report. ``predicted_s`` is the cost model's, calibrated before any
run that counts. With ``--kill N`` a last run has worker N killed when a quarter of the units is done. Results are
compared with the first.

    mpiexec -n 2 python benchmarks/spread_efficiency.py FAMILY -w WORKLOAD --devices 1,2 --mpi --out spread.csv

has a rank for each device instead of a process of one program: the first ranks take part, the others wait.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import harness
import numpy as np
from harness import check, inputs_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.declaration import Family, Inputs, load_family
from autotune.measure import spread
from autotune.spread import RankSpread, Report, Spread
from autotune.spread.plan import Chunk
from autotune.spread.team import Member

COLUMNS = (
    "family", "workload", "configuration", "devices", "device", "allocation", "batch", "worker", "units", "chunks",
    "predicted_s", "elapsed_s", "spread", "runs", "computing_s", "copying_s", "balance", "efficiency",
    "predicted_over_measured", "started_s", "calibrated_s", "redone", "note", "call_s",
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments(words)
    family = load_family(asked.family)
    inputs = inputs_of(family, asked.workload, asked.data)
    held = dict(item.split("=", 1) for item in asked.set.split(",")) if asked.set else None
    if asked.check:
        return check(family, [inputs], [asked.set or "control"], device=asked.kind)
    rows: list[dict[str, Any]] = []
    first: dict[str, NDArray[Any]] = {}
    alone = float("inf")
    for devices in (int(number) for number in asked.devices.split(",")):
        with opened(family, inputs, devices, held, asked) as several:
            if several is None:
                continue
            several.run()
            several.calibrate(share=0.5)
            found = list(measured(several, asked, first))
            if not is_told(several):
                continue
            if devices == 1:
                alone = min(median(times) for _, times, _, note in found if not note)
            for report, times, calls, note in found:
                elapsed = median(times)
                about = {
                    "family": family.name,
                    "workload": asked.workload or family.default_workload,
                    "configuration": report.configuration,
                    "devices": devices,
                    "device": several.members[0].device.name,
                    "allocation": report.allocation,
                    "batch": report.batch,
                    "started_s": f"{report.started_s:.3f}",
                    "calibrated_s": f"{report.calibrated_s:.3f}",
                    "note": note,
                    "call_s": f"{median(calls):.6f}",
                }
                rows += list(rows_of(report, about, times, alone / (devices * elapsed)))
                print(
                    f"{devices} x {about['device']}, {report.allocation}, batch {report.batch}: {elapsed:.4f} s, "
                    f"predicted {report.predicted_s:.4f} s, efficiency {alone / (devices * elapsed):.4f} {note}"
                )
                sys.stdout.flush()
                write_rows(asked.out, rows, COLUMNS)  # what was measured is there whatever happens next

    return 0


@contextmanager
def opened(
    family: Family, inputs: Inputs, devices: int, held: Mapping[str, Any] | None, asked: argparse.Namespace
) -> Iterator[Spread | None]:
    """The workers; None on a rank that has no part in it. No rank is past the block before all are."""
    if not asked.mpi:
        names = ["cpu"] * devices if asked.kind == "cpu" else [f"cuda:{n}" for n in range(devices)]
        with Spread(family, inputs, names, configuration=held, policies=asked.policies) as several:
            yield several
        return
    from mpi4py import MPI

    everyone = MPI.COMM_WORLD
    takes_part = everyone.Get_rank() < devices
    some = everyone.Split(0 if takes_part else 1, everyone.Get_rank())
    if takes_part:
        with RankSpread(
            family, inputs, asked.kind, configuration=held, policies=asked.policies, comm=some
        ) as several:
            yield several
    else:
        yield None
    everyone.Barrier()


def is_told(several: Spread) -> bool:
    """Whether this process has the results."""
    return not isinstance(several, RankSpread) or several.ranks.is_first


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = harness.arguments(__doc__, "spread.csv")
    parser.add_argument("family")
    parser.add_argument("-w", "--workload", default="")
    parser.add_argument("--devices", default="1,2,4", help="numbers of devices, in turn")
    parser.add_argument("--kind", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--allocations", default="automatic,contiguous,dynamic")
    parser.add_argument(
        "--batches", default="0", help="units a chunk at most, in turn; 0 is the configuration's"
    )
    parser.add_argument("--set", default="", help="policy=value,…; default what the dispatcher chooses")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mpi", action="store_true", help="a rank of an MPI program for each device")
    parser.add_argument("--kill", type=int, default=-1, help="a worker to kill in a last run")
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--data", type=Path)
    return parser.parse_args(words)


def measured(
    several: Spread, asked: argparse.Namespace, first: dict[str, NDArray[Any]]
) -> Iterator[tuple[Report, list[float], list[float], str]]:
    """(the median run, all times, all times of the call as its caller sees it, note) of each allocation and batch.
    Every result is compared with the first one's: equal where units write parts, and near where they add to sums."""
    pairs = [
        (allocation, int(batch))
        for allocation in asked.allocations.split(",")
        for batch in asked.batches.split(",")
    ]
    reports: dict[tuple[str, int], list[Report]] = {pair: [] for pair in pairs}
    calls: dict[tuple[str, int], list[float]] = {pair: [] for pair in pairs}
    models = list(several.models)
    for _ in range(asked.runs):
        for pair in pairs:
            several.models[:] = models  # each is predicted by the calibration, not by the runs before it
            begin = time.perf_counter()
            reports[pair].append(several.run(*pair))
            if is_told(several):
                several.outputs()
            calls[pair].append(time.perf_counter() - begin)
            if is_told(several):
                compare(several, first)
    for pair, taken in reports.items():
        ordered = sorted(taken, key=lambda report: report.elapsed_s)
        yield ordered[len(ordered) // 2], [report.elapsed_s for report in taken], calls[pair], ""
    alive = [member for member in several.members if not member.lost]
    if 0 <= asked.kill < len(alive) and len(alive) > 1:
        several.models[:] = models
        killer = Killer(alive[asked.kill], len(several.units))
        batch = max(1, len(several.units) // (8 * len(alive)))  # so that the worker has something left to do
        report = several.run(pairs[0][0], batch, watch=killer)
        compare(several, first)
        redone = sum(share.redone for share in report.shares)
        assert redone, "the worker had nothing left when it was killed"
        yield (
            report,
            [report.elapsed_s],
            [report.elapsed_s],
            f"worker {asked.kill} killed; the result is the same",
        )


class Killer:
    """Ends a worker when a quarter of the units is done."""

    def __init__(self, victim: Member, units: int) -> None:
        self.victim, self.left = victim, units // 4

    def __call__(self, member: Member, chunk: Chunk) -> None:  # noqa: ARG002
        if self.left > 0 >= self.left - chunk.count and self.victim.process.pid:
            os.kill(self.victim.process.pid, signal.SIGKILL)
        self.left -= chunk.count


def compare(several: Spread, first: dict[str, NDArray[Any]]) -> None:
    """Raise AssertionError for a result that is not the first one's."""
    for name, array in several.outputs().items():
        if name not in first:
            first[name] = array.copy()
        elif name in several.units.sums and array.dtype.kind == "f":
            np.testing.assert_allclose(
                array, first[name], rtol=1e-5, atol=1e-5 * float(np.abs(first[name]).max())
            )
        else:
            np.testing.assert_array_equal(array, first[name])


def rows_of(
    report: Report, about: Mapping[str, Any], times: list[float], efficiency: float
) -> Iterator[dict[str, Any]]:
    """One row for the run, one for each worker."""
    elapsed = median(times)
    yield {
        **about,
        "worker": "all",
        "units": sum(share.units for share in report.shares),
        "chunks": sum(share.chunks for share in report.shares),
        "predicted_s": f"{report.predicted_s:.6f}",
        "elapsed_s": f"{elapsed:.6f}",
        "spread": f"{spread(times):.4f}",
        "runs": len(times),
        "computing_s": f"{sum(share.device_s for share in report.shares):.6f}",
        "copying_s": f"{sum(share.copied_s for share in report.shares):.6f}",
        "balance": f"{report.balance:.4f}",
        "efficiency": f"{efficiency:.4f}" if np.isfinite(efficiency) else "",
        "predicted_over_measured": f"{report.predicted_s / elapsed:.4f}",
        "redone": sum(share.redone for share in report.shares),
    }
    for number, share in enumerate(report.shares):
        yield {
            **about,
            "worker": number,
            "units": share.units,
            "chunks": share.chunks,
            "predicted_s": f"{share.predicted_s:.6f}",
            "elapsed_s": f"{share.measured_s:.6f}",
            "computing_s": f"{share.device_s:.6f}",
            "copying_s": f"{share.copied_s:.6f}",
            "predicted_over_measured": f"{share.predicted_s / max(share.measured_s, 1e-12):.4f}",
            "redone": share.redone,
            "note": share.lost or about["note"],
        }


if __name__ == "__main__":
    sys.exit(main())
