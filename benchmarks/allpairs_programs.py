"""All-pairs distance, compared with whole programs: hammingdist on the same GPU, PLINK 1.9 with all host threads.

    python benchmarks/allpairs_programs.py --data DATA --policies policies --out programs.csv

hammingdist (PyPI) reads a FASTA file and counts the differences of each pair once, as 16-bit numbers: the values 0, 1,
2 and 3 become A, C, G and T, so that its distances are autotune's with ``missing=category``. PLINK's ``--distance``
counts alleles, on the cpu, each pair once; ``allpairs_plink.py`` tells what is timed of it.

Three parts: the kernel (PLINK: the calculation), a call from numpy to numpy (hammingdist: from FASTA to numpy), and
PLINK's command. Kernels' times are what torch's profiler sees of them. All take turns in every round.

Needs a CUDA device, torch, hammingdist and PLINK 1.9. Before anything is timed, hammingdist's distances have to be
autotune's, every one, and PLINK's those that numpy counts in some rows.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version as package
from pathlib import Path
from typing import Any

import harness
import numpy as np
from allpairs_plink import in_turn, milliseconds, plink_distance, plink_version, summary, write_fileset
from harness import arguments, inputs_of
from result_files import write_rows

import autotune
from autotune.compile import cpu_model
from autotune.declaration import load_family

Genotypes = np.ndarray[Any, Any]
Timed = Callable[[], dict[str, float]]

LETTERS = np.frombuffer(b"ACGT", np.uint8)
MISSING = 3


def write_fasta(path: Path, genotypes: Genotypes) -> None:
    """One sequence for each instance, a letter for each value."""
    with path.open("wb") as file:
        for number, letters in enumerate(LETTERS[genotypes]):
            file.write(b">%d\n%s\n" % (number, letters.tobytes()))


def hammingdist_of(fasta: Path) -> Any:
    """The distances below the diagonal, row by row."""
    return import_module("hammingdist").from_fasta_large(str(fasta), use_gpu=True).lt_array


def profiled(call: Callable[[], Any], kernel: str) -> dict[str, float]:
    """Milliseconds of a call and of its kernels that have ``kernel`` in their names."""
    torch = import_module("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        taken = milliseconds(call)
    kernels = [event for event in seen.key_averages() if kernel in event.key]
    assert kernels, f"the profiler saw no kernel {kernel}"
    return {"kernel": sum(event.self_device_time_total for event in kernels) / 1e3, "call": taken}


def check_hammingdist(fasta: Path, distance: Genotypes) -> None:
    """Every pair."""
    below = np.tri(len(distance), k=-1, dtype=bool)
    assert np.array_equal(hammingdist_of(fasta), distance[below]), (
        "hammingdist's distances are not autotune's"
    )


def check_plink(bed: Path, genotypes: Genotypes, threads: int) -> None:
    """Some rows: alleles that differ where both are known, scaled to all SNPs."""
    plink_distance(bed, threads)
    instances, attributes = genotypes.shape
    found = np.memmap(bed.with_name("plink.dist.bin"), np.float64, "r", shape=(instances, instances))
    for row in np.linspace(0, instances - 1, 5, dtype=int):
        known = (genotypes != MISSING) & (genotypes[row] != MISSING)
        alleles = (np.abs(genotypes - genotypes[row]) * known).sum(1)
        np.testing.assert_allclose(found[row], alleles * (attributes / known.sum(1)), rtol=1e-12)


def compare(
    workload: str, genotypes: Genotypes, policies: Path, rounds: int, threads: int
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, autotune.load("allpairs", policies=policies) as kernel:
        taken, _ = kernel.explain(kernel.bind(genotypes))
        bed, fasta = write_fileset(Path(folder), genotypes), Path(folder) / "genotypes.fa"
        write_fasta(fasta, genotypes)
        check_hammingdist(fasta, kernel(genotypes))
        check_plink(bed, genotypes, threads)
        ways: dict[str, Timed] = {
            "autotune": lambda: profiled(lambda: kernel(genotypes), "allpairs"),
            "hammingdist": lambda: profiled(lambda: hammingdist_of(fasta), "hamming::Dist"),
            f"plink --distance, {threads} threads": lambda: plink_distance(bed, threads),
        }
        times = in_turn(ways, rounds)
        device = kernel.device
    about = {
        "workload": workload, "instances": genotypes.shape[0], "attributes": genotypes.shape[1],
        "device": device, "cpu": cpu_model(), "configuration": str(taken.configuration),
    }  # fmt: skip
    return [
        {"what": name, "part": part, **summary(values), **about} for (name, part), values in times.items()
    ]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "allpairs-programs.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--workload", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of PLINK")
    given = parser.parse_args(words)
    family = load_family("allpairs")
    every = {name: inputs_of(family, name, given.data) for name in given.workload or ("hapmap3", "wide")}
    if given.check:
        print(f"plink1.9: {shutil.which('plink1.9') or 'not on PATH (Debian package plink1.9)'}")
        return harness.check(family, every.values(), ["control"], peers=("torch", "hammingdist"))
    version = plink_version()
    rows: list[dict[str, Any]] = []
    for name, inputs in every.items():
        for row in compare(name, inputs.arrays["genotypes"], given.policies, given.rounds, given.threads):
            rows.append({**row, "plink": version, "hammingdist": package("hammingdist")})
            told = "{workload:10} {what:32} {part:12} {median_ms:>8} ms ({minimum_ms} to {maximum_ms})"
            print(told.format(**rows[-1]), flush=True)
            write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
