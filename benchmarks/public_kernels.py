"""Kernels of public repositories on the cpu device: which run there, and what the others lack.

    python benchmarks/public_kernels.py FOLDER --out benchmarks/results/public-kernels-cpu.csv

FOLDER holds checkouts of the repositories that ``public_kernels.csv`` names, each under its name:
https://github.com/karpathy/llm.c and https://github.com/zjin-lcf/HeCBench. Each kernel goes through ``autotune adopt``
as its file is, with the options that a user would have to add: proved means that the kernel as it was and the rewritten
one ran on the cpu device on random inputs and left the same bytes, and wrote at least 90 % of each output. ``--list``
takes other kernels, in a CSV with the same columns.
"""

import argparse
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import python_path
from result_files import write_rows

COLUMNS = ("set", "repository", "file", "kernel", "uses", "options")
# `tried` are those that a newcomer tried before the cpu device had half, cooperative groups or CUB, `modern` those that
# use them.
LIST = Path(__file__).with_suffix(".csv")


def tried(folder: Path, row: Mapping[str, str], seconds: float) -> dict[str, object]:
    """Try a kernel and return its result, with the reason if autotune does not prove or does not accept it."""
    source = folder / row["repository"] / row["file"]
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, "-m", "autotune", "adopt", str(source), "--kernel", row["kernel"], "-o",
                   f"{made}/family", "-I", str(source.parent), *shlex.split(row["options"])]  # fmt: skip
        path = {**os.environ, "PYTHONPATH": python_path()}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, cwd=made, env=path, check=False
            )
            said = f"{done.stdout}\n{done.stderr}"
        except subprocess.TimeoutExpired:
            said = f"unproved: it took more than {seconds:.0f} s"
    said = re.sub(r"\S*/(?=[\w.-]+\.(?:cu|cuh|h|hpp)\b)", "", said)
    found = re.search(r"^(proved|unproved|error): (.*)", said, re.MULTILINE)
    result, reason = found.groups() if found else ("refused", said.strip().splitlines()[-1:] or [""])
    accesses = re.search(r"(\d+) accesses of memory", said)
    return {
        **{name: row[name] for name in COLUMNS},
        "result": "refused" if result == "error" else result,
        "accesses": accesses[1] if accesses and result == "proved" else "",
        "seconds": f"{time.perf_counter() - begun:.0f}",
        "reason": "" if result == "proved" else str(reason)[:300],
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, default=LIST, help="a CSV of kernels")
    parser.add_argument("--only", default="", help="kernels whose file or name this text is in")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    text = given.list.read_text(encoding="utf-8")
    rows = [
        row for row in csv.DictReader(io.StringIO(text)) if given.only in f"{row['file']} {row['kernel']}"
    ]
    found = []
    for row in rows:
        found.append(tried(given.folder, row, given.seconds))
        print(f"{row['repository']} {row['kernel']}: {found[-1]['result']} {found[-1]['reason']}", flush=True)
    write_rows(given.out, found)
    for name in dict.fromkeys(row["set"] for row in rows):
        results = [row["result"] for row in found if row["set"] == name]
        print(f"{name}: {results.count('proved')} of {len(results)} proved")
    return 0


if __name__ == "__main__":
    sys.exit(main())
