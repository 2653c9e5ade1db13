"""KING kinship and PLINK 2's with all threads of the host: every coefficient is compared before anything is timed.

    python benchmarks/king_plink.py --workload biobank-slice --out benchmarks/results/king-plink.csv

Of autotune: the kernel (as torch's profiler sees it on a GPU), and a call from numpy to numpy. Of PLINK: the command
`--make-king square bin`, from .bed to a binary matrix in double precision; it has no call without reading and writing
files. All take turns in every round. PLINK leaves out sex chromosomes, so all variants are said to be on chromosome 1.

Needs plink2 on PATH. `--device cpu` compares on a machine without a GPU.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
import numpy as np
from allpairs_plink import Timed, in_turn, milliseconds, summary, write_fileset
from allpairs_programs import profiled
from harness import arguments, inputs_of
from result_files import write_rows

import autotune
from autotune.compile import cpu_model
from autotune.declaration import load_family


def run_plink(bed: Path, threads: int) -> np.ndarray[Any, Any]:
    """Return the coefficients that PLINK computes."""
    command: list[str | Path] = [
        "plink2",
        "--bfile",
        bed.with_suffix(""),
        "--threads",
        str(threads),
        "--make-king",
        "square",
        "bin",
    ]
    subprocess.run([*command, "--out", bed.with_suffix("")], check=True, capture_output=True)
    matrix = np.fromfile(bed.with_suffix(".king.bin"))
    return matrix.reshape(int(len(matrix) ** 0.5), -1)


def compare(workload: str, genotypes: np.ndarray[Any, Any], given: Any) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        autotune.load("king", given.device, policies=given.policies) as kernel,
    ):
        bed = write_fileset(Path(folder), genotypes)
        coefficients = kernel(genotypes)["kinship"]
        expected = run_plink(bed, given.threads)
        different = np.count_nonzero(expected.astype(np.float32) != coefficients)
        assert different == np.isnan(expected).sum(), f"{different} coefficients are not PLINK's"
        chosen, _ = kernel.explain(kernel.bind(genotypes))
        with kernel.prepare(genotypes) as prepared:
            ways: dict[str, Timed] = {
                "autotune": lambda: (
                    profiled(lambda: kernel(genotypes), "king")
                    if kernel.kind == "cuda"
                    else {
                        "kernel": milliseconds(prepared.execution.run),
                        "call": milliseconds(lambda: kernel(genotypes)),
                    }
                ),
                f"plink2 --make-king, {given.threads} threads": lambda: {
                    "command": milliseconds(lambda: run_plink(bed, given.threads))
                },
            }
            times = in_turn(ways, given.rounds)
        about = {
            "workload": workload, "instances": genotypes.shape[0], "attributes": genotypes.shape[1],
            "device": kernel.device, "cpu": cpu_model(), "configuration": str(chosen.configuration),
        }  # fmt: skip
    return [
        {"what": name, "part": part, **summary(values), **about} for (name, part), values in times.items()
    ]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "king-plink.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--workload", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of PLINK")
    given = parser.parse_args(words)
    family = load_family("king")
    every = {
        name: inputs_of(family, name, given.data) for name in given.workload or ("hapmap3", "biobank-slice")
    }
    if given.check:
        print(f"plink2: {shutil.which('plink2') or 'not on PATH (Debian package plink2)'}")
        return harness.check(family, every.values(), ["control"], peers=())
    version = subprocess.run(
        ["plink2", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    rows: list[dict[str, Any]] = []
    for name, inputs in every.items():
        for row in compare(name, inputs.arrays["genotypes"], given):
            rows.append({**row, "plink": version})
            line = "{workload:14} {what:32} {part:8} {median_ms:>8} ms ({minimum_ms} to {maximum_ms})"
            print(line.format(**rows[-1]), flush=True)
            write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
