"""Kernel Tuner's own CUDA examples with only their imports changed: which run, and what the others lack.

    python benchmarks/kernel_tuner_examples.py CHECKOUT --device cuda:0 --out benchmarks/results/kernel-tuner-examples

CHECKOUT is a checkout of https://github.com/KernelTuner/kernel_tuner. Each example runs in a process of its own, in a
copy of ``examples/cuda``; the imports of ``kernel_tuner`` become those of ``autotune.kernel_tuner`` and nothing else is
edited. The examples' spaces are large: each call of ``tune_kernel`` is limited to ``--trials`` configurations, and each
example to ``--seconds``.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import python_path
from result_files import write_rows

IMPORTS = (
    (r"^(\s*)import kernel_tuner$", r"\1from autotune import kernel_tuner"),
    (r"^(\s*)from kernel_tuner import util$", r"\1from autotune import kernel_tuner as util"),
    (r"^(\s*)from kernel_tuner(\.file_utils|\.util)? import", r"\1from autotune.kernel_tuner import"),
)

# Runs the example as its file says, and tells what each call gave.
PROGRAM = """
import json, runpy, sys
from functools import wraps
from autotune import kernel_tuner
told, trials, device = [], int(sys.argv[2]), sys.argv[3]

def limited(tune_kernel):
    @wraps(tune_kernel)
    def tune(*given, **named):
        options = {"max_fevals": trials, **(named.pop("strategy_options", None) or {})}
        results, env = tune_kernel(*given, **named, strategy_options=options, device=device)
        timed = [one for one in results if "time" in one]
        told.append([given[0], len(results), len(timed), min(one["time"] for one in timed), env["device_name"]])
        return results, env
    return tune

def placed(run_kernel):
    @wraps(run_kernel)
    def run(*given, **named):
        return run_kernel(*given, **named, device=device)
    return run

kernel_tuner.tune_kernel = limited(kernel_tuner.tune_kernel)
kernel_tuner.run_kernel = placed(kernel_tuner.run_kernel)
try:
    if "test_" in sys.argv[1]:
        import pytest
        code = pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]])
        told.append(["pytest", int(code), 0, 0.0, ""])
    else:
        runpy.run_path(sys.argv[1], run_name="__main__")
finally:
    print("\\ntold " + json.dumps(told))
"""


def rewritten(text: str) -> str:
    for pattern, imported in IMPORTS:
        text = re.sub(pattern, imported, text, flags=re.MULTILINE)
    return text


def run(example: Path, trials: int, device: str, seconds: float) -> dict[str, Any]:
    """A row: whether it ran, what it measured, or the last line of what stopped it."""
    import json

    began = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, example.name, str(trials), device]
    row: dict[str, Any] = {"example": example.name, "state": "", "seconds": 0.0, "calls": "", "why": ""}
    try:
        done = subprocess.run(
            command, cwd=example.parent, capture_output=True, text=True, check=False, timeout=seconds,
            env={**os.environ, "PYTHONPATH": python_path()},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**row, "state": "too long", "seconds": round(seconds, 1), "why": f"over {seconds:g} s"}
    found = re.search(r"^told (.*)$", done.stdout, re.MULTILINE)
    told = json.loads(found[1]) if found else []
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    failed = done.returncode or any(name == "pytest" and code for name, code, *_ in told)
    return {
        **row,
        "state": "failed" if failed else "runs",
        "seconds": round(time.perf_counter() - began, 1),
        "calls": "; ".join(
            f"{name}: {timed} of {tried}, best {best:.4g} ms on {on}"
            for name, tried, timed, best, on in told
            if name != "pytest"
        ),
        "why": (lines[-1] if lines else done.stdout.strip()[-200:]) if failed else "",
    }


def main(words: Sequence[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--processes", type=int, default=1, help="examples at a time")
    parser.add_argument("--only", default="", help="names, joined by commas")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/kernel-tuner-examples"))
    given = parser.parse_args(words)
    rows, asked = [], []
    with tempfile.TemporaryDirectory(prefix="kernel-tuner-examples-") as root:
        folder = Path(shutil.copytree(given.checkout / "examples" / "cuda", Path(root, "cuda")))
        for example in sorted(folder.glob("*.py")):
            if given.only and example.stem not in given.only.split(","):
                continue
            example.write_text(rewritten(example.read_text(encoding="utf-8")), encoding="utf-8")
            asked.append(example)
        with ThreadPoolExecutor(given.processes) as pool:
            for row in pool.map(
                lambda example: run(example, given.trials, given.device, given.seconds), asked
            ):
                rows.append(row)
                print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    write_rows(given.out.with_name(f"{given.out.name}.csv"), rows)
    return rows


if __name__ == "__main__":
    main()
