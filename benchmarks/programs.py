"""Whole programs tuned on this device: a turn of the loop under all AoS, all SoA, each kernel's own best with
conversions, the field's own layout, the greedy choice and the chosen one; predicted and measured.

    python benchmarks/programs.py --workload large --each 70 --out benchmarks/results/programs-h200.csv
    python benchmarks/programs.py md pic --workload small --device cpu --each 0 --out programs-cpu.csv

The programs are folders below examples/programs, by default all of them, those with the fewest kernels first. Each is
tuned in a process of its own for about --each seconds, and ended after twice these and 30 more; so one that fails
costs nothing but itself, and its row says why. The table is written after each program. A record is kept below
--record: a second run goes on from it, and measures what is missing.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from result_files import RESULTS, read_frame, write_rows

from autotune.errors import AutotuneError
from autotune.files import data_root
from autotune.program import Program, ProgramBudget, Tuned, load_given, save, tune, workloads, write_report

LINES = "lines.json"  # of a program, in its record
PROGRAMS = Path(__file__).resolve().parents[1] / "examples" / "programs"


@dataclass(frozen=True)
class Line:
    """One assignment of one program. ``ms`` is of a turn; ``beside`` is that over the chosen one's; ``error`` is the
    prediction over the measurement, minus 1; ``share`` the runs that were measured over those of all assignments;
    ``wrong`` says why there are no figures."""

    program: str
    workload: str
    device: str
    assignment: str
    ms: float = math.nan
    predicted_ms: float = math.nan
    error: float = math.nan
    beside: float = math.nan
    conversions: int = 0
    wrong: str = ""
    share: float = math.nan
    regret: float = math.nan
    turns: int = 0
    periods: str = ""
    seconds: float = math.nan
    phases: str = ""


def lines(tuned: Tuned, seconds: float) -> list[Line]:
    """The table of one program."""
    best = tuned.chosen.measured_ms
    periods = "; ".join(
        f"{step} {period or 'never'}" for step, period in tuned.chosen.assignment.periods.items()
    )
    phases = "; ".join(f"{phase} {took:.1f}" for phase, took in tuned.seconds.items())
    return [
        Line(
            program=tuned.bound.program.name, workload=tuned.workload, device=tuned.device.name, assignment=row.name,
            ms=_short(row.measured_ms), predicted_ms=_short(row.predicted_ms), error=_short(row.error),
            beside=_short(row.measured_ms / best), conversions=sum(one.count for one in row.cost.conversions),
            wrong=row.refusal, share=_short(tuned.counts.share), regret=_short(tuned.regret), turns=tuned.turns,
            periods=periods, seconds=round(seconds, 1), phases=phases,
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
        told = line.wrong[:120] if line.wrong else (
            f"{line.ms:10.4g} {line.predicted_ms:10.4g} {100 * line.error:+7.1f}% {line.beside:9.3f}"
        )  # fmt: skip
        said.append(f"{line.program:10} {line.assignment:14} {told}")
    right = [line for line in made if not line.wrong]
    if right:
        said.append(
            f"median error of the prediction: {100 * median(abs(line.error) for line in right):.1f} %"
        )
    for program in dict.fromkeys(line.program for line in right):
        mine = [line for line in right if line.program == program]
        uniform = min((line.beside for line in mine if line.assignment in ("aos", "soa")), default=math.nan)
        least = min(line.beside for line in mine)
        said.append(
            f"{program}: best uniform layout {uniform:.3f} x the chosen one; fastest of all {least:.3f} x"
        )
    return "\n".join(said)


def tables() -> dict[str, str]:
    """What docs/guides/programs.md has (pages.py)."""
    frame = read_frame(RESULTS / "programs-h200.csv")
    ways = ("aos", "soa", "own best", "hand", "greedy", "chosen")
    made = [
        "| program | all AoS | all SoA | own best | by hand | greedy | chosen | predicted | best uniform / chosen |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for program, mine in frame.groupby("program", sort=False):
        ms = mine.set_index("assignment")["ms"]
        foreseen = mine.set_index("assignment")["predicted_ms"]["chosen"]
        cells = " | ".join(f"{ms[way]:.4g}" for way in ways)
        uniform = min(ms["aos"], ms["soa"]) / ms["chosen"]
        made.append(f"| {program} | {cells} | {foreseen:.4g} | {uniform:.2f} |")
    return {"h200": "\n".join(made)}


# -- one program, in a process of its own


def tune_one(name: str, asked: argparse.Namespace) -> list[Line]:
    """Tune a program, with a line on each thing that is done."""
    start = time.perf_counter()

    def note(text: str) -> None:
        print(f"{name} {time.perf_counter() - start:6.1f} s  {text}", flush=True)

    program = Program.read(PROGRAMS / name)
    given = load_given(program, asked.workload if asked.workload in workloads(program) else "", data_root())
    note(f"workload {given.workload}: {len(program.calls)} steps, {len(given.arrays)} arrays given")
    if asked.check:
        return []
    left = max(1.0, asked.each - (time.perf_counter() - start)) if asked.each else math.inf
    budget = ProgramBudget(configurations=asked.budget, forms=asked.forms, seconds=left)
    tuned = tune(
        program, given, asked.device, asked.record / name, budget, processes=asked.processes, note=note
    )
    made = lines(tuned, time.perf_counter() - start)
    keep(asked, name, made)  # whatever the report makes of it
    write_report(tuned, asked.record / name / "report.html")
    if asked.policies:
        save(tuned, asked.policies)
    return made


def keep(asked: argparse.Namespace, name: str, made: list[Line]) -> None:
    """Leave the lines where the first process finds them."""
    asked.record.joinpath(name).mkdir(parents=True, exist_ok=True)
    asked.record.joinpath(name, LINES).write_text(json.dumps([asdict(line) for line in made]))


def run_one(name: str, asked: argparse.Namespace, words: Sequence[str], most: float) -> list[Line]:
    """What a process of at most ``most`` seconds says of a program; a line with the reason where it says nothing."""
    there = asked.record / name / LINES
    there.unlink(missing_ok=True)
    start, wrong = time.perf_counter(), ""
    command = [sys.executable, __file__, *words, "--only", name]
    child = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    )
    try:
        said = child.communicate(timeout=most)[1]
        if child.returncode:
            print(said, end="", file=sys.stderr)
            told = [line for line in said.splitlines() if "Error" in line or "Measured" in line]
            wrong = told[-1] if told else f"ended with code {child.returncode}"
    except subprocess.TimeoutExpired:
        wrong = f"was not done after {time.perf_counter() - start:.0f} s, and was ended"
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # with its compilers and measuring processes
            child.wait()
    made = [Line(**told) for told in json.loads(there.read_text())] if there.is_file() else []
    if wrong:
        print(f"{name}: {wrong}", flush=True)
    if wrong and not made:
        taken = round(time.perf_counter() - start, 1)
        made = [Line(name, asked.workload, asked.device, "none", wrong=wrong, seconds=taken)]
    return made


def fewest_kernels(name: str) -> int:
    """What programs are ordered by; one that cannot be read comes last."""
    try:
        return sum(map(len, Program.read(PROGRAMS / name).calls.values()))
    except AutotuneError:
        return sys.maxsize


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
    parser.add_argument("--each", type=float, default=70.0, help="seconds of each program; 0: no limit")
    parser.add_argument("--seconds", type=float, default=570.0, help="of all programs together")
    parser.add_argument("--processes", type=int, default=0, help="compiler processes; 0 is one a core")
    parser.add_argument("--record", type=Path, default=Path("autotune-results/programs"))
    parser.add_argument("--policies", type=Path, help="write policy files there")
    parser.add_argument("--out", type=Path, default=Path("programs.csv"))
    parser.add_argument("--check", action="store_true", help="read programs and workloads, then stop")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    words = sys.argv[1:] if words is None else words
    asked = parser.parse_args(words)
    if asked.only:
        tune_one(asked.only, asked)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so end the process of a program
    began, made = time.perf_counter(), list[Line]()
    names = asked.programs or [path.parent.name for path in sorted(PROGRAMS.glob("*/program.yaml"))]
    names = sorted(names, key=fewest_kernels)
    print(f"{len(names)} programs: {', '.join(names)}", flush=True)
    for name in names:
        left = asked.seconds - (time.perf_counter() - began)
        if left < max(5.0, 0.7 * asked.each):
            wrong = f"left out: {max(0.0, left):.0f} s are left of {asked.seconds:g}"
            made.append(Line(name, asked.workload, asked.device, "none", wrong=wrong))
        else:
            made += run_one(name, asked, words, min(left, 2 * asked.each + 30) if asked.each else left)
        if made:
            write_rows(asked.out, [asdict(line) for line in made])
    print(summary(made))
    return int(any(line.assignment == "none" for line in made))


if __name__ == "__main__":
    raise SystemExit(main())
