"""Maximal exact matches from files to a file: whole commands side by side on one machine.

    python benchmarks/mummergpu_end_to_end.py --data DATA --peers FOLDER --out benchmarks/results/end-to-end.csv

`autotune run mummergpu` (with its compile cache empty, then warm), mummer 3, MUMmer4, copMEM2 (for matches of at least
50 bases), E-MEM and essaMEM, on the forward strand. A time is that of a whole command: reading, index, transfer,
search, output. Inputs are made plain FASTA first, since the peers read nothing else. Runs take turns; every output is
compared by the number of matches and a sum over them that their order does not change: with mummer 3's, where that ran
or, with --known, where a table of an earlier run has what it found of the same reads; else with the first one's. Peak
memory is that of the largest process of a command (figures below 10 MiB are that of the process which starts it). A row
"copy of the output" says how long `cp` takes for the same file in the same folder. Workload `celeg` simulates its
reads: mummergpu_reads.py.

Programs are looked for in --peers and then on PATH, as mummer3, mummer4, mummer (either), copmem2, e-mem and
essamem; one that
is not there has a row that says so. A file versions.txt in --peers, lines of `name version`, says more than a
program does: its commit, and how it was built. The exit code is 1 where outputs differ or a command failed.
"""

import argparse
import gzip
import lzma
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from mummergpu_commands import FLOOR, OURS, PEERS, Command, ours, peers, told_by
from mummergpu_outputs import Found, found_in
from mummergpu_reads import write_reads
from result_files import read_frame, write_text

# Started for every run: a child's peak memory counts from what the process that started it had, so that is small.
LAUNCHER = """
import os, sys, time
out, err, *command = sys.argv[1:]
flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
actions = [(os.POSIX_SPAWN_OPEN, 1, out, flags, 0o644), (os.POSIX_SPAWN_OPEN, 2, err, flags, 0o644)]
begin = time.perf_counter()
child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - begin, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


class Workload(NamedTuple):
    reference: str
    queries: str
    min_match_length: int


# As in workloads/mummergpu.
WORKLOADS = {
    "lmono": Workload("genomes/lmono_EGDe_NC_003210.1.fa.gz", "reads/lmono_sim_1M_454_116bp.fa.xz", 20),
    "ssuis": Workload("genomes/ssuis_P1-7_sanger_2007491.fa.gz", "reads/ssuis_sim_1M_36bp.fa.xz", 10),
    "hsill": Workload("genomes/hs_GRCh37_chr20_60001-16060000.fa.gz", "reads/hsill_sim_wgs_500k_29bp.fa.xz", 14),
    "cbrigg": Workload("genomes/ce2_chrX_1-13000000.fa.gz", "reads/cbrigg_sim_500k_sanger_615bp.fa.xz", 100),
}  # fmt: skip

# Its reads are simulated from its reference.
SIMULATED = {"celeg": Workload("genomes/ce2_chrX_1-13000000.fa.gz", "", 50)}


# ---- inputs


def plain(source: Path, target: Path, most: int | None = None) -> tuple[int, int]:
    """Write `source` (FASTA; plain, gzip or xz), at most `most` records, decompressed; records and bases of it."""
    records = bases = 0
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(source.suffix, open)
    with opened(source, "rb") as lines, target.open("wb") as file:
        for line in lines:
            if line.startswith(b">"):
                if records == most:
                    break
                records += 1
            else:
                bases += len(line.strip())
            file.write(line)
    return records, bases


# ---- commands


@dataclass(frozen=True)
class Run:
    """Wall seconds and the peak memory in KiB; `said` is what the command printed where that is not its output."""

    seconds: float
    peak_kib: int
    problem: str
    said: str
    found: Found | None


def run(command: Command, names: dict[str, str], folder: Path, limit: float, pool: Executor) -> Run:
    """Once, in `folder`; what it wrote is compared and removed."""
    output, said = folder / "output.mems", folder / "said"
    program, *arguments = (a.format(**names, output=output) for a in command.arguments)
    writes_itself = any("{output}" in a for a in command.arguments)
    streams = [said, folder / "problems"] if writes_itself else [output, Path(os.devnull)]
    kept = Path(names.get("kept", output))
    for stale in (output, said):
        stale.unlink(missing_ok=True)
    if command.emptied:
        shutil.rmtree(command.emptied, ignore_errors=True)
    launcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, *map(str, streams), program, *arguments],
        cwd=folder, env=os.environ | command.environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = launcher.communicate(timeout=limit)
    except BaseException as interruption:
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.communicate()
        if isinstance(interruption, subprocess.TimeoutExpired):
            return Run(limit, 0, f"not done in {limit:g} s", "", None)
        raise
    seconds, peak, code = printed.split()
    text = said.read_text() if writes_itself else ""
    problem, found = "", None
    if int(code):
        told = streams[1].read_text().strip().splitlines() if writes_itself else []
        problem = " ".join([f"exit code {code}", *told[-1:]])
    else:
        try:
            found = found_in(output, pool)
        except (OSError, ValueError) as error:
            problem = str(error)
    if found is None or kept.exists() or kept == output:
        output.unlink(missing_ok=True)
    else:
        output.rename(kept)
    return Run(float(seconds), int(peak), problem, text, found)


# ---- the table


def row(
    command: Command, runs: list[Run], expected: tuple[str, Found] | None, of_all: dict[str, Any]
) -> dict[str, Any]:
    """One line of the table from what a command's runs gave; `expected` is who was first and what it found."""
    done = sorted((r for r in runs if r.found is not None), key=lambda r: r.seconds)
    middle = done[len(done) // 2] if done else None
    seconds = np.array([r.seconds for r in done])
    problems = sorted({r.problem for r in runs if r.problem})
    agree = [r.found == expected[1] for r in done] if expected else []
    return {
        **of_all, "tool": command.tool, "version": command.version, "threads": command.threads,
        "seconds_median": round(float(np.median(seconds)), 3) if done else None,
        "seconds_min": round(float(seconds.min()), 3) if done else None,
        "seconds_max": round(float(seconds.max()), 3) if done else None,
        "runs": len(done), "peak_rss_mib": round(max(r.peak_kib for r in done) / 1024, 1) if done else None,
        "matches": middle.found.matches if middle and middle.found else None,
        "checksum": f"{middle.found.checksum:016x}" if middle and middle.found else "",
        "agrees": {True: "yes", False: "no"}[all(agree)] if agree else "",
        "compared_with": expected[0] if expected else "",
        "phases": phases(middle.said) if middle else "",
        "configuration": configuration(middle.said) if middle else "", "problem": "; ".join(problems),
        "command": " ".join([Path(command.arguments[0]).name, *command.arguments[1:]]),
    }  # fmt: skip


def canonical(known: Path | None, of_all: dict[str, Any]) -> tuple[str, Found] | None:
    """What mummer 3 found of the same reads, and who it was, from a table of an earlier run."""
    if known is None:
        return None
    table = read_frame(known)
    same = [table[name] == of_all[name] for name in ("workload", "reads", "bases", "length")]
    table = table[np.logical_and.reduce([table["tool"] == "mummer 3", table["checksum"].notna(), *same])]
    if table.empty:
        return None
    first = table.iloc[0]
    found = Found(int(first["matches"]), int(first["checksum"], 16))
    return f"{first['tool']} {first['version']}, earlier", found


def phases(said: str) -> str:
    """What `autotune run` says of where its seconds went: `start 0.014, index 0.000, search 0.506, …`."""
    line = re.search(r"^seconds +[0-9.]+: (.*)$", said, re.MULTILINE)
    return line[1] if line else ""


def configuration(said: str) -> str:
    """What ran, and how it was chosen: `block_size=256,… (control)`."""
    line = re.search(r"^mummergpu on .+: (.*=.*)$", said, re.MULTILINE)
    return line[1] if line else ""


def machine(cores: int) -> dict[str, Any]:
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    gpu = shutil.which("nvidia-smi")
    names = told_by([gpu, "--query-gpu=name", "--format=csv,noheader"]).splitlines() if gpu else []
    return {"device": names[0] if names else "none", "cpu": cpu[1] if cpu else "unknown", "cores": cores}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(), help="the folder with genomes and reads")
    parser.add_argument(
        "--workload", action="append", choices=sorted(WORKLOADS | SIMULATED), help="default: lmono and ssuis"
    )
    parser.add_argument("--given", nargs=3, metavar=("REFERENCE", "QUERIES", "LENGTH"), help="files instead")
    parser.add_argument("--reads", type=int, help="only the first so many")
    parser.add_argument("--peers", type=Path, help="a folder of programs, before PATH")
    parser.add_argument("--tool", action="append", help=f"only those named so: {OURS}, {', '.join(PEERS)}")
    parser.add_argument("--threads", type=int, action="append", help="of peers; default: 1 and all cores")
    parser.add_argument("--device", default="", help="for autotune: cuda, cpu")
    parser.add_argument("--policies", type=Path, help="for autotune")
    parser.add_argument("--runs", type=int, default=5, help="at most")
    parser.add_argument(
        "--cold-runs", type=int, default=1, help="at most, of ours with an empty compile cache"
    )
    parser.add_argument("--seconds", type=float, default=60, help="no further run of a command beyond these")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a command is ended")
    parser.add_argument("--scratch", type=Path, help="where inputs and outputs lie; best in memory: /dev/shm")
    parser.add_argument("--known", type=Path, help="a table of an earlier run, for what mummer 3 found")
    parser.add_argument("--out", type=Path, default=Path("mummergpu-end-to-end.csv"))
    arguments = parser.parse_args(words)
    chosen = {name: (WORKLOADS | SIMULATED)[name] for name in arguments.workload or ("lmono", "ssuis")}
    if arguments.given:
        reference, queries, length = arguments.given
        chosen = {Path(queries).name: Workload(reference, queries, int(length))}
    cores = len(os.sched_getaffinity(0))
    rows: list[dict[str, Any]] = []
    workers = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"))
    with workers as pool, tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        for name, workload in chosen.items():
            compare(name, workload, arguments, cores, Path(scratch), pool, rows)
    table = pd.DataFrame(rows)
    shown = ["workload", "tool", "version", "threads", "seconds_median", "seconds_min", "seconds_max", "runs"]
    print(table[[*shown, "peak_rss_mib", "matches", "agrees", "problem"]].fillna("").to_string(index=False))
    for row_ in rows:
        if row_["phases"]:
            print(f"{row_['workload']}, {row_['tool']}: {row_['phases']}")
    bad = (table["agrees"] == "no") | ((table["problem"] != "") & (table["problem"] != MISSING))
    sys.exit(int(bad.any()))


MISSING = "not here"


def compare(
    name: str, workload: Workload, arguments: Any, cores: int, scratch: Path, pool: Executor, rows: list[Any]
) -> None:  # fmt: skip
    """Add the rows of one workload to `rows`; write the table again after every round."""
    names = {which: str(scratch / f"{which}.fa") for which in ("reference", "queries")}
    plain(arguments.data / workload.reference, Path(names["reference"]))
    queries = Path(names["queries"])
    if workload.queries:
        reads, bases = plain(arguments.data / workload.queries, queries, arguments.reads)
    else:
        reads, bases = write_reads(Path(names["reference"]), queries, arguments.reads)
    names |= {"length": str(workload.min_match_length), "kept": str(scratch / "kept.mems")}
    Path(names["kept"]).unlink(missing_ok=True)
    of_all = {
        **machine(cores),
        "workload": name,
        "reads": reads,
        "bases": bases,
        "length": int(names["length"]),
    }
    theirs, missing = peers(cores, arguments.peers, workload.min_match_length, arguments.threads or ())
    cache = Path(tempfile.mkdtemp(dir=scratch))
    wanted = arguments.tool or [""]
    own = ours(cores, cache, arguments.device, arguments.policies, arguments.cold_runs)
    commands = [*theirs, *own]
    commands = [c for c in commands if any(w in c.tool for w in wanted)] + [FLOOR]
    absent = [Command(tool, "", 0, ("",)) for tool in missing if any(w in tool for w in wanted)]
    ran: dict[Command, list[Run]] = {}
    kept = list(rows)
    while waiting := [c for c in commands if _goes_on(c, ran.get(c, []), arguments.runs, arguments.seconds)]:
        for command in waiting:
            result = run(command, names, scratch, arguments.limit, pool)
            ran.setdefault(command, []).append(result)
            told = f"{command.tool}, {command.threads} threads: {result.seconds:.2f} s {result.problem}"
            print(f"{name}: {told}", flush=True)
        firsts = [(f"{c.tool} {c.version}", r.found) for c in commands for r in ran[c] if r.found]
        expected = firsts[0] if firsts else None
        if not firsts or not firsts[0][0].startswith("mummer 3"):
            expected = canonical(arguments.known, of_all) or expected
        rows[:] = kept + [row(c, ran[c], expected, of_all) for c in commands]
        rows += [row(c, [], None, of_all) | {"problem": MISSING, "command": ""} for c in absent]
        write_text(arguments.out, pd.DataFrame(rows).to_csv(index=False))


def _goes_on(command: Command, runs: list[Run], most: int, seconds: float) -> bool:
    if not runs:
        return True
    spent = sum(r.seconds for r in runs)
    allowed = min(most, command.most_runs or most)
    return len(runs) < allowed and not runs[-1].problem and spent + runs[-1].seconds <= seconds


if __name__ == "__main__":
    main()
