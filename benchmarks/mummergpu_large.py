"""A reference of human size through the whole command: `autotune run mummergpu`, both strands, one page or as many as
the device asks for, and whether every read is found where it was taken from.

    python benchmarks/mummergpu_large.py --out benchmarks/results/mummergpu-h200-large.csv

The reference is made of the pieces of mummergpu_index.py's genome, in --records records of one line, with each letter
changed once more with a chance of 0.05, as the copies of a repeat differ (a tandem repeat of 1,000 letters without a
change has a million matches with a read of it). Reads are 150 letters of it, every other one of the other strand. A row
has the seconds of the command by a clock outside it and by what it prints, and the most memory that it took on the
host. 3.1 billion letters take 3.2 GB of disk in --scratch, 7 GB of the host's memory and up to 110 GB of the device's.
The exit code is 1 where a read was not found, or where a program's matches are not ours.

    python benchmarks/mummergpu_large.py --peers FOLDER --runs 3 --limit 40 --scratch /dev/shm --out beside-peers.csv

With --peers copMEM2 and MUMmer4 (or one of them: --tool), looked for as mummergpu_end_to_end.py does, get the same
files, both strands and all cores; a program that is not done after --limit seconds is ended, has a row that says so,
and is not run again. Programs take turns, --runs times at most; no run begins that would, by the time that its program
took before, end later than --seconds after the start. Our first run finds an empty compile cache, the others what it
left.
All matches are compared by their number and a sum over them that their order does not change.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mummergpu_index as genomes
import numpy as np
from harness import arguments, python_path
from mummergpu_commands import OURS, Command, peers
from mummergpu_end_to_end import configuration, machine, phases
from numpy.typing import NDArray
from result_files import write_rows

import autotune

SEED = 20261122
READ_LETTERS = 150
CHANGED = 13  # of 256
PIECE = 1 << 24
THEIRS = ("copMEM2", "MUMmer4")
LETTERS = np.frombuffer(b"ACGT", np.uint8)


class Read(NamedTuple):
    """Where reads were taken from: record, position and strand, and their codes."""

    record: NDArray[np.int64]
    position: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    codes: NDArray[np.uint8]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "mummergpu-large.csv")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--letters", type=int, default=3_100_000_000)
    parser.add_argument("--records", type=int, default=24)
    parser.add_argument("--reads", type=int, default=200_000)
    parser.add_argument("--min-match-length", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1, help="of each program, at most")
    parser.add_argument(
        "--seconds", type=float, default=600, help="for all runs, without making the reference"
    )
    parser.add_argument("--scratch", type=Path, help="a folder for the reference and the output")
    parser.add_argument("--peers", type=Path, help="a folder of programs to run beside ours")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of peers")
    parser.add_argument("--tool", action="append", choices=THEIRS, help="of the peers, only these")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a peer is ended")
    parser.add_argument("--policies", type=Path, help="for ours, in place of those that ship")
    given = parser.parse_args(words)
    if given.check:
        print(f"{given.letters:,} letters in {given.records} records")
        return 0
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        folder = Path(name)
        reads = write_reference(folder / "reference.fa", given.letters, given.records, given.reads)
        write_reads(folder / "reads.fa", reads)
        of_all = {
            **machine(len(os.sched_getaffinity(0))), "letters": given.letters, "records": given.records,
            "reads": len(reads.record),
        }  # fmt: skip

        def add(row: dict[str, Any]) -> None:
            if not row["problem"]:
                found = found_in(folder / "output.mems", reads)
                row |= {"matches": found.matches, "found": found.reads, "checksum": f"{found.checksum:016x}"}
            rows.append({**of_all, **row})
            print(*(f"{key}: {value}" for key, value in rows[-1].items()), sep="\n", flush=True)
            write_rows(given.out, rows)

        turns: list[Callable[[], dict[str, Any]]] = [
            partial(run, folder, given.device, given.min_match_length, given.policies)
        ]
        if given.peers:
            wanted = given.tool or THEIRS
            made, missing = peers(given.threads, given.peers, given.min_match_length, [given.threads])
            turns += [
                partial(run_peer, folder, command, given.min_match_length, given.limit)
                for command in made
                if command.tool in wanted
            ]
            print(*(f"{tool}: not here" for tool in missing if tool in wanted), sep="\n")
        take_turns(turns, given.runs, given.seconds, add)
    done = [row for row in rows if not row["problem"]]
    print(*summary(rows), sep="\n")
    sums = {(row["matches"], row["checksum"]) for row in done}
    return int(len(sums) > 1 or any(row["found"] < row["reads"] for row in done))


def take_turns(
    turns: Sequence[Callable[[], dict[str, Any]]], runs: int, seconds: float, add: Callable[[dict[str, Any]], None]
) -> None:  # fmt: skip
    """Run each of ``turns`` up to ``runs`` times, for about ``seconds`` at most; ``add`` takes what they return."""
    end = time.perf_counter() + seconds
    took = dict.fromkeys(range(len(turns)), 0.0)
    for _ in range(runs):
        for number, turn in enumerate(turns):
            if number not in took or time.perf_counter() + took[number] > end:
                continue
            row = turn()
            took[number] = row["seconds"]
            if row["problem"]:
                del took[number]
            add(row)


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each program: the median of its seconds, the least and the most, or what its problem was."""
    lines = []
    for tool in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == tool]
        seconds = [row["seconds"] for row in own if not row["problem"]]
        told = own[-1]["problem"]
        if seconds:
            told = f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}, {len(seconds)} runs)"
        lines.append(f"{tool}: {told}")
    return lines


# ---- inputs


def write_reference(path: Path, letters: int, records: int, reads: int) -> Read:
    """Write a FASTA file of ``letters`` letters, and about ``reads`` reads of it."""
    size = letters // records
    elements = genomes.repeats(np.random.default_rng(SEED))
    jobs = [(record, begin) for record in range(records) for begin in range(0, size, PIECE)]
    header = len(b">chr00\n")
    with path.open("wb") as file, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for record in range(records):
            os.pwrite(file.fileno(), b">chr%02d\n" % record, record * (header + size + 1))
            os.pwrite(file.fileno(), b"\n", (record + 1) * (header + size + 1) - 1)

        def make(job: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
            record, begin = job
            generator = np.random.default_rng((SEED, record, begin))
            piece = np.empty(min(PIECE, size - begin), np.uint8)
            genomes.fill(piece, elements, generator)
            drawn = generator.integers(0, 256, piece.size, np.uint8)
            changed = np.flatnonzero(drawn < CHANGED)
            piece[changed] = (piece[changed] + 1 + drawn[changed] % 3) % 4
            os.pwrite(file.fileno(), LETTERS[piece].data, record * (header + size + 1) + header + begin)
            positions = generator.integers(0, piece.size - READ_LETTERS, reads // len(jobs) + 1)
            return positions + begin, piece[positions[:, None] + np.arange(READ_LETTERS)]

        made = list(pool.map(make, jobs))
    of_record = np.repeat([record for record, _ in jobs], [len(positions) for positions, _ in made])
    codes = np.concatenate([codes for _, codes in made])
    is_reverse = np.arange(len(codes)) % 2 == 1
    codes = np.where(is_reverse[:, None], 3 - codes[:, ::-1], codes).astype(np.uint8)
    return Read(of_record, np.concatenate([positions for positions, _ in made]), is_reverse, codes)


def write_reads(path: Path, reads: Read) -> None:
    lines = (b">r%d\n%b\n" % (number, read.tobytes()) for number, read in enumerate(LETTERS[reads.codes]))
    path.write_bytes(b"".join(lines))


# ---- the command


def run(folder: Path, device: str, min_match_length: int, policies: Path | None = None) -> dict[str, Any]:
    """The command once; the first time it finds an empty compile cache."""
    given = {
        "reference": folder / "reference.fa", "queries": folder / "reads.fa", "both_strands": "true",
        "min_match_length": min_match_length,
    }  # fmt: skip
    command = [sys.executable, "-m", "autotune", "run", "mummergpu", "--device", device]
    command += [word for name, value in given.items() for word in ("-i", f"{name}={value}")]
    cache = folder / "cache"
    state = "warm" if cache.exists() else "cold"
    environment = {**os.environ, "PYTHONPATH": python_path(), "AUTOTUNE_CACHE": str(cache)}
    if policies:
        environment["AUTOTUNE_POLICIES"] = str(policies.resolve())
    command += ["-o", str(folder / "output.mems")]
    said = folder / "said"
    with said.open("w") as file:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    text = said.read_text()
    assert process.returncode == 0, text
    pages = re.search(r"(\d+) pages?$", text, re.MULTILINE)
    printed = re.search(r"^seconds +([0-9.]+):", text, re.MULTILINE)
    assert pages and printed
    return {
        **_row(f"{OURS}, {state} cache", autotune.__version__, 0, min_match_length, seconds),
        "host_mib": usage.ru_maxrss >> 10, "pages": int(pages[1]),
        "seconds_printed": float(printed[1]), "phases": phases(text), "configuration": configuration(text),
    }  # fmt: skip


def run_peer(folder: Path, command: Command, min_match_length: int, limit: float) -> dict[str, Any]:
    """A program once, on both strands."""
    output = folder / "output.mems"
    output.unlink(missing_ok=True)
    names = {"reference": folder / "reference.fa", "queries": folder / "reads.fa", "length": min_match_length}
    program, *words = (word.format(**names, output=output) for word in command.arguments)
    begin, problem = time.perf_counter(), ""
    with (Path(os.devnull) if str(output) in words else output).open("wb") as printed:
        process = subprocess.Popen([program, "-b", *words], stdout=printed, stderr=subprocess.PIPE)
        try:
            _, errors = process.communicate(timeout=limit)
            if process.returncode:
                problem = f"exit code {process.returncode}: {errors.decode(errors='replace')[-200:]}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            problem = f"not done in {limit:g} s"
    seconds = time.perf_counter() - begin
    return {
        **_row(command.tool, command.version, command.threads, min_match_length, seconds),
        "problem": problem,
    }


def _row(tool: str, version: str, threads: int, min_match_length: int, seconds: float) -> dict[str, Any]:
    return {
        "tool": tool, "version": version, "threads": threads or "", "min_match_length": min_match_length,
        "strands": 2, "seconds": round(seconds, 2), "problem": "", "matches": "", "found": "", "checksum": "",
        "pages": "", "seconds_printed": "", "phases": "", "host_mib": "", "configuration": "",
    }  # fmt: skip


class Found(NamedTuple):
    """How many matches an output has, how many reads it has where they were taken from, whole, and a sum over them."""

    matches: int
    reads: int
    checksum: int


def found_in(path: Path, reads: Read) -> Found:
    matches, checksum, seen = 0, 0, np.zeros(len(reads.record), bool)
    read, is_reverse, header = -1, False, b""
    with path.open("rb") as lines:
        for line in lines:
            words = line.split()
            if line.startswith(b">"):
                header = b" ".join(words)
                read, is_reverse = int(words[1][1:]), len(words) > 2
                continue
            matches += 1
            match = b" ".join([header, *words])
            checksum += zlib.crc32(match) << 32 | zlib.adler32(match)
            own = reads.is_reverse[read] == is_reverse and words[0] == b"chr%02d" % reads.record[read]
            if own and int(words[1]) == reads.position[read] + 1 and int(words[3]) == READ_LETTERS:
                seen[read] = True
    return Found(matches, int(seen.sum()), checksum % 2**64)


if __name__ == "__main__":
    sys.exit(main())
