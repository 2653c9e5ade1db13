"""Whole programs tuned on this device: a turn of the loop under all AoS, all SoA, each kernel's own best with
conversions, the field's own layout, the greedy choice and the chosen one; predicted beside measured.

    python benchmarks/programs.py --workload large --seconds 360 --out benchmarks/results/programs-h200.csv
    python benchmarks/programs.py md pic --workload small --device cpu --out programs-cpu.csv

The programs are folders below examples/programs, by default all of them. One that would begin after --seconds is left
out, and said so. A record is kept below --record: a second run goes on from it, and measures what is missing.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from result_files import write_rows

from autotune.errors import AutotuneError
from autotune.files import data_root
from autotune.program import Program, ProgramBudget, Tuned, load_given, save, tune, workloads, write_report

PROGRAMS = Path(__file__).resolve().parents[1] / "examples" / "programs"


@dataclass(frozen=True)
class Line:
    """One assignment of one program. ``ms`` is of a turn; ``beside`` is that over the chosen one's; ``error`` is the
    prediction over the measurement, minus 1; ``share`` the runs that were measured over those of all assignments."""

    program: str
    workload: str
    device: str
    assignment: str
    ms: float
    predicted_ms: float
    error: float
    beside: float
    conversions: int
    wrong: str
    share: float
    regret: float
    turns: int
    periods: str
    seconds: float


def lines(tuned: Tuned, seconds: float) -> list[Line]:
    """The table of one program."""
    best = tuned.chosen.measured_ms
    periods = "; ".join(
        f"{step} {period or 'never'}" for step, period in tuned.chosen.assignment.periods.items()
    )
    return [
        Line(
            program=tuned.bound.program.name, workload=tuned.workload, device=tuned.device.name, assignment=row.name,
            ms=_short(row.measured_ms), predicted_ms=_short(row.predicted_ms), error=_short(row.error),
            beside=_short(row.measured_ms / best), conversions=sum(one.count for one in row.cost.conversions),
            wrong=row.refusal, share=_short(tuned.counts.share), regret=_short(tuned.regret), turns=tuned.turns,
            periods=periods, seconds=round(seconds, 1),
        )
        for row in tuned.rows
    ]  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.4g}") if math.isfinite(value) else value


def summary(made: list[Line]) -> str:
    """The table as text, and what it says of all programs together."""
    said = [
        f"{'program':10} {'assignment':14} {'ms a turn':>10} {'predicted':>10} {'off':>8} {'x chosen':>9}"
    ]
    for line in made:
        told = line.wrong[:60] if line.wrong else (
            f"{line.ms:10.4g} {line.predicted_ms:10.4g} {100 * line.error:+7.1f}% {line.beside:9.3f}"
        )  # fmt: skip
        said.append(f"{line.program:10} {line.assignment:14} {told}")
    errors = [abs(line.error) for line in made if not line.wrong]
    if errors:
        said.append(f"median error of the prediction: {100 * median(errors):.1f} %")
    for program in dict.fromkeys(line.program for line in made):
        mine = [line for line in made if line.program == program and not line.wrong]
        uniform = min((line.beside for line in mine if line.assignment in ("aos", "soa")), default=math.nan)
        least = min(line.beside for line in mine)
        said.append(
            f"{program}: best uniform layout {uniform:.3f} x the chosen one; fastest of all {least:.3f} x"
        )
    return "\n".join(said)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", help="default: all below examples/programs")
    parser.add_argument(
        "--workload", default="", help="of those that have one of that name; default: the program's own"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=int, default=48, help="configurations of each step")
    parser.add_argument(
        "--forms", type=int, default=10, help="layouts of each step that are timed in the loop"
    )
    parser.add_argument("--seconds", type=float, default=360.0, help="no program is begun after so many")
    parser.add_argument("--processes", type=int, default=0, help="compiler processes; 0 is one a core")
    parser.add_argument("--record", type=Path, default=Path("autotune-results/programs"))
    parser.add_argument("--policies", type=Path, help="write policy files there")
    parser.add_argument("--out", type=Path, default=Path("programs.csv"))
    parser.add_argument("--check", action="store_true", help="all that needs no GPU, then stop")
    asked = parser.parse_args(words)
    began, made = time.perf_counter(), list[Line]()
    budget = ProgramBudget(configurations=asked.budget, forms=asked.forms)
    names = asked.programs or [path.parent.name for path in sorted(PROGRAMS.glob("*/program.yaml"))]
    print(f"{len(names)} programs: {', '.join(names)}")
    for name in names:
        program = Program.read(PROGRAMS / name)
        workload = asked.workload if asked.workload in workloads(program) else ""
        given = load_given(program, workload, data_root())
        if asked.check:
            print(f"{name}: {given.workload}, {len(program.calls)} steps, {len(given.arrays)} arrays given")
            continue
        if time.perf_counter() - began > asked.seconds:
            print(f"{name}: left out, {asked.seconds:g} s are over")
            continue
        start = time.perf_counter()
        try:
            out = asked.record / name
            tuned = tune(program, given, asked.device, out, budget, processes=asked.processes, note=print)
        except AutotuneError as problem:
            print(f"{name}: {problem}")
            continue
        made += lines(tuned, time.perf_counter() - start)
        print(f"{name}: {', '.join(f'{phase} {took:.1f} s' for phase, took in tuned.seconds.items())}")
        write_report(tuned, asked.record / name / "report.html")
        if asked.policies:
            save(tuned, asked.policies)
        write_rows(
            asked.out, [asdict(line) for line in made]
        )  # what there is, should the next one end it all
    if made:
        print(summary(made))
    return 0 if made or asked.check else 1


if __name__ == "__main__":
    raise SystemExit(main())
