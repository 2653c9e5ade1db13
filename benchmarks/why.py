"""Why is the winner faster than control? `autotune why` for a few families, from sweeps of what is between the two.

    python benchmarks/why.py --device cuda --seconds 90 --out why-h200.csv

A part is a family with a workload and the winner of an earlier sweep. All configurations that have, in each policy, the
value of control or that of this winner are swept, then `autotune why` explains the way from control to this winner. A
row is a step, with its time, its sentence and the figures that were read; the file is written again after each
part. What Nsight Compute printed is stored in the same folder, as ncu-FAMILY.csv. A part that fails or has no time left
is reported, and the next one begins.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from harness import arguments, check, python_path
from result_files import RESULTS, read_rows, write_rows

from autotune.advise.why import WAITS, make_columns
from autotune.declaration import Configuration, Family, load_family
from autotune.figures import format_plain
from autotune.processes import program

ROOT = Path(__file__).parents[1]
LEAST_S = 10.0  # a part needs no less
SWEEP_SHARE = 0.4  # of what is left: no new configuration is begun later


@dataclass(frozen=True)
class Part:
    """``winner`` says what a recorded sweep's winner has other than control; ``workload`` is the family's."""

    family: str
    workload: str
    winner: str

    def load(self) -> Family:
        folder = ROOT / "examples" / self.family
        return load_family(str(folder) if folder.is_dir() else self.family)


PARTS = (
    Part(
        "lookup",
        "large",
        "block_size=512,memory=readonly,node_width=8,order=nodes8,vector_width=4,walk=nodes",
    ),
    Part(
        "allpairs",
        "wide",
        "accumulate=tensor_tile,axes=instance_major,block_size=64,packing=planes2,pairs=triangle,tile=2,vector_width=2",
    ),
    Part(  # launch stays stream: each launch is counted by itself
        "cyclospectrum",
        "n4096",
        "find=table,finish=counting,generation=prefix,outputs_per_thread=16,scan=look_back,vector_width=4,window=8192,"
        "wrap=doubled",
    ),
)


def between(family: Family, winner: Configuration) -> dict[str, list[str]]:
    """Each policy with the values that control and ``winner`` have."""
    control = family.space.control
    return {name: [str(v) for v in dict.fromkeys((control[name], winner[name]))] for name in control}


def explain(
    part: Part, workload: str, device: str, folder: Path, raw: Path, seconds: float
) -> dict[str, Any]:
    """What ``autotune why --json`` prints. Raises RuntimeError with what a command said last, TimeoutExpired."""
    family, end = part.load(), time.monotonic() + seconds
    record, budget = folder / family.name, max(LEAST_S / 2, SWEEP_SHARE * seconds)
    held = between(family, family.space.configuration(part.winner))
    narrowed = [word for name, values in held.items() for word in ("--set", f"{name}={','.join(values)}")]
    _autotune(
        end, "sweep", str(family.folder), "--workload", workload, "--device", device, *narrowed, "--budget",
        f"{budget:.0f}s", "--search", "exhaustive", "--out", str(record), "--policies", str(folder / "policies"),
    )  # fmt: skip
    printed = _autotune(
        end, "why", str(family.folder), "--workload", workload, "--record", str(record), "--raw", str(raw), "--json",
        "--of", part.winner, *(("--device", device) if device.startswith("cuda") else ()),
    )  # fmt: skip
    told: dict[str, Any] = json.loads(printed)
    return told


def _autotune(end: float, *words: str) -> str:
    """What the command prints before ``end``."""
    done = program(
        [sys.executable, "-m", "autotune", *words],
        seconds=max(1.0, end - time.monotonic()),
        environment={**os.environ, "PYTHONPATH": python_path()},
    )
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-4:])
        raise RuntimeError(f"autotune {words[0]}: exit code {done.returncode}: {last}")
    return done.stdout


ABOUT = ("family", "workload", "device", "device_name", "clock_mhz")
COLUMNS = (
    *ABOUT, "step", "change", "configuration", "time_ms", "speedup", "is_noise",
    *(column.key for column in make_columns()), *(one.column.key for one in WAITS), "sentence", "notes",
)  # fmt: skip


def rows(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for the first configuration, then one for each step."""
    about = {name: told[name] for name in ABOUT}
    first = told["from"]
    yield {**about, "step": 0, "change": "from", **_figures(first), "notes": " | ".join(told["notes"])}
    for number, step in enumerate(told["steps"], 1):
        change = ", ".join(f"{name}={value}" for name, value in step["set"].items())
        own = {name: step[name] for name in ("speedup", "is_noise", "sentence")}
        yield {**about, "step": number, "change": change, **_figures(step), **own}


def _figures(step: dict[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in step["figures"].items() if name in COLUMNS and value is not None}
    return {"configuration": step["configuration"], "time_ms": step["time_ms"], **named}


def tables(path: Path = RESULTS / "why.csv") -> dict[str, str]:
    """By family, a line for each step; of figures that were read."""
    head = "| change | ms | faster | loads, 10⁶ | from L2, MB | instructions, 10⁶ | warps that wait |"
    found: dict[str, list[str]] = {}
    for row in read_rows(path):
        faster = f"{format_plain(float(row['speedup']))} x" if row["speedup"] else ""
        cells = [
            f"`{row['change']}`" if row["speedup"] else "control", f"{float(row['time_ms']):.4g}", faster,
            *(
                f"{scale * float(row[name]):,.{digits}f}" if row[name] else "" for name, scale, digits in _SHOWN
            ),
        ]  # fmt: skip
        lines = found.setdefault(row["family"], [head, "|---|" + "---:|" * 6])
        lines.append(f"| {' | '.join(cells)} |")
    return {family: "\n".join(lines) for family, lines in found.items()}


_SHOWN = (  # column, factor, digits
    ("global_loads", 1e-6, 1), ("l2_read_bytes", 1e-6, 0), ("instructions", 1e-6, 1),
    ("stall_long_scoreboard_warps", 1, 1),
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, out="why.csv")
    parser.add_argument("--device", default="cuda", help="default: cuda; on a cpu, without counters")
    parser.add_argument("--only", nargs="*", default=[part.family for part in PARTS], metavar="FAMILY")
    parser.add_argument("--workload", default="", help="in place of the parts' own")
    parser.add_argument("--seconds", type=float, default=90.0, help="for all parts; default: 90")
    given = parser.parse_args(words)
    parts = [part for part in PARTS if part.family in given.only]
    if given.check:
        for part in parts:
            family = part.load()
            winner = family.space.configuration(part.winner)
            held = family.space.select_values(between(family, winner))
            chosen = family.space.configurations(narrowed=held)
            assert {family.space.control, winner} <= set(chosen), (
                f"{part.family}: control or winner is excluded"
            )
            print(f"{part.family} on {part.workload}: {len(chosen)} configurations")
        return check(parts[0].load(), (), ())
    end, found, failed = time.monotonic() + given.seconds, list[dict[str, Any]](), list[str]()
    for part in parts:
        left, begun = end - time.monotonic(), time.monotonic()
        if left < LEAST_S:
            failed.append(f"{part.family}: {max(0.0, left):.0f} s are left, and it needs {LEAST_S:.0f}")
            continue
        raw = given.out.resolve().parent / f"ncu-{part.family}.csv"
        with tempfile.TemporaryDirectory(prefix="why-") as folder:
            try:
                told = explain(part, given.workload or part.workload, given.device, Path(folder), raw, left)
            except (RuntimeError, OSError, ValueError, TimeoutExpired) as problem:
                failed.append(f"{part.family}: {str(problem)[:600]}")
                print(failed[-1], flush=True)
                continue
        found += rows(told)
        write_rows(given.out, found, COLUMNS)
        print(f"{part.family} in {time.monotonic() - begun:.0f} s: {told['headline']}", flush=True)
        for number, step in enumerate(told["steps"], 1):
            print(f"  {number}. {step['sentence']}", flush=True)
        for note in told["notes"]:
            print(f"  {note}", flush=True)
    print(f"{len(found)} rows of {len(parts) - len(failed)} parts in {given.out}; not done: {len(failed)}")
    for line in failed:
        print(f"  {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
