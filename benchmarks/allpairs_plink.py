"""All-pairs distance, compared with PLINK 1.9 on a cpu: both count the same pairs of the same people, in one run.

    python benchmarks/allpairs_plink.py --data DATA --policies policies --out benchmarks/results/allpairs-plink-cpu.csv

Of autotune there are the primer's loop (`appendix`), what an untuned cpu runs (`cpu`), and what the policy files in
`--policies` have for these very sizes (`tuned`). Three parts of each: the kernel on data that stay, a call from numpy
to numpy, and the command from .bed to .npy. Of PLINK there are the command, from .bed to a binary matrix, and the time
between its lines on filters and on the matrix being complete: it reads the .bed and counts then, without its start and
its writing. All take turns in every round.

PLINK's distance counts alleles, so that opposite homozygotes differ by 2, and leaves missing calls out; autotune's
counts genotypes, and leaves them out with `missing=masked`. `plink --genome full` prints both counts for each pair:
before anything is timed, IBS0 + IBS1 has to be autotune's distance, and 2 IBS0 + IBS1, scaled to all SNPs,
PLINK's. PLINK leaves out what is on no autosome, so here all SNPs are said to be on chromosome 1.
"""

import argparse
import datetime as dt
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import harness
import numpy as np
import yaml
from harness import arguments, inputs_of, module_of
from result_files import write_rows

import autotune
from autotune.compile import cpu_model
from autotune.declaration import load_family

Genotypes = np.ndarray[Any, Any]
Timed = Callable[[], dict[str, float]]
Way = TypeVar("Way")

FILTERED, COMPLETE = b"pass filters", b"matrix calculation complete"


def write_fileset(folder: Path, genotypes: Genotypes) -> Path:
    """A fileset of its own, all SNPs on chromosome 1: what both commands read."""
    plink = module_of(load_family("allpairs")).plink
    instances, attributes = genotypes.shape
    names = [f"I{number}" for number in range(instances)]
    rows = [f"1\trs{number}\t0\t{number + 1}\tA\tC" for number in range(attributes)]
    plink.write_bed(folder / "genotypes.bed", genotypes, names, rows)
    return folder / "genotypes.bed"


def family_with_the_loop(folder: Path) -> Path:
    """A copy of the family in which the primer's loop is what an untuned cpu runs."""
    shipped = load_family("allpairs").folder
    copy = folder / "allpairs"
    copy.mkdir()
    for path in shipped.iterdir():
        if path.is_file() and path.name != "family.yaml":
            (copy / path.name).write_bytes(path.read_bytes())
    content = yaml.safe_load((shipped / "family.yaml").read_text(encoding="utf-8"))
    content["presets"]["cpu"] = deepcopy(content["presets"]["appendix"])  # no aliases
    (copy / "family.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return copy


def milliseconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def in_turn(ways: Mapping[Way, Timed], rounds: int) -> dict[tuple[Way, str], list[float]]:
    """Milliseconds of each part of each way, one way after the other in every round."""
    times: dict[tuple[Way, str], list[float]] = {}
    for _ in range(rounds):
        for way, timed in ways.items():
            for part, taken in timed().items():
                times.setdefault((way, part), []).append(taken)
    return times


def summary(values: Sequence[float]) -> dict[str, Any]:
    """What a table says of milliseconds that were taken in turn."""
    return {
        "median_ms": f"{median(values):.4g}", "minimum_ms": f"{min(values):.4g}",
        "maximum_ms": f"{max(values):.4g}", "rounds": len(values),
    }  # fmt: skip


def plink_version() -> str:
    return subprocess.run(
        ["plink1.9", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def plink_command(bed: Path, threads: int, *asked: str) -> list[str]:
    place = ["--bfile", str(bed.with_suffix("")), "--out", str(bed.with_name("plink"))]
    return ["plink1.9", *place, "--threads", str(threads), *asked]


def plink_distance(bed: Path, threads: int) -> dict[str, float]:
    """Milliseconds of `--distance`, and of its calculation by the moments of its messages."""
    command = plink_command(bed, threads, "--distance", "square", "bin", "flat-missing")
    begin, told, at = time.perf_counter(), b"", dict[bytes, float]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        while some := os.read(process.stdout.fileno(), 1 << 16):
            told += some
            for line in (FILTERED, COMPLETE):
                if line in told:
                    at.setdefault(line, time.perf_counter())
    taken = (time.perf_counter() - begin) * 1e3
    assert process.returncode == 0, told.decode()
    return {"calculation": (at[COMPLETE] - at[FILTERED]) * 1e3, "command": taken}


def plink_genome(bed: Path, threads: int) -> dict[str, float]:
    command = plink_command(bed, threads, "--genome", "full")
    return {"command": milliseconds(lambda: subprocess.run(command, check=True, capture_output=True))}


def check(bed: Path, threads: int, masked: Genotypes) -> None:
    """autotune's distances and PLINK's, each from PLINK's own counts of alleles shared by a pair."""
    plink_genome(bed, threads)
    plink_distance(bed, threads)
    lines = bed.with_name("plink.genome").read_text(encoding="utf-8").splitlines()
    columns = [lines[0].split().index(name) for name in ("IBS0", "IBS1", "IBS2")]
    ibs0, ibs1, ibs2 = np.array([[line.split()[c] for c in columns] for line in lines[1:]], np.int64).T
    instances, attributes = len(masked), len(bed.with_suffix(".bim").read_text().splitlines())
    pairs = np.triu_indices(instances, 1)
    assert np.array_equal(masked[pairs], ibs0 + ibs1), "autotune's distances are not IBS0 + IBS1"
    assert np.array_equal(masked, masked.T)
    assert not masked.diagonal().any()
    alleles = np.fromfile(bed.with_name("plink.dist.bin")).reshape(instances, instances)
    scaled = (2 * ibs0 + ibs1) * (attributes / (ibs0 + ibs1 + ibs2))
    np.testing.assert_allclose(alleles[pairs], scaled, rtol=1e-12)


def autotune_command(family: str, policies: Path, bed: Path, missing: str) -> list[str]:
    told = ["-i", f"genotypes={bed}", "-i", f"missing={missing}", "-o", str(bed.with_name("distance.npy"))]
    return [
        sys.executable,
        "-m",
        "autotune",
        "run",
        family,
        "--device",
        "cpu",
        "--policies",
        str(policies),
        *told,
    ]


def ways_of(
    stack: ExitStack, bed: Path, genotypes: Genotypes, missing: str, sources: dict[str, tuple[str, Path]]
) -> dict[str, tuple[str, Timed]]:
    """Name -> (configuration, what is timed). ``sources``: name -> (family, policy folder)."""
    ways: dict[str, tuple[str, Timed]] = {}
    for name, (family, policies) in sources.items():
        kernel = stack.enter_context(autotune.load(family, device="cpu", policies=policies))
        taken, _ = kernel.explain(kernel.bind(genotypes, missing=missing))
        if taken.match != ("exact" if name == "tuned" else "preset"):
            assert name == "tuned", (
                f"{name}: {taken.origin}; is there a policy file of this cpu in ./policies?"
            )
            continue
        assert taken.configuration is not None
        execution = stack.enter_context(kernel.prepare(genotypes, missing=missing)).execution
        command = autotune_command(family, policies, bed, missing)

        def timed(
            kernel: Any = kernel, execution: Any = execution, command: Any = command
        ) -> dict[str, float]:
            return {
                "kernel": milliseconds(execution.run),
                "call": milliseconds(lambda: kernel(genotypes, missing=missing)),
                "command": milliseconds(lambda: subprocess.run(command, check=True, capture_output=True)),
            }

        timed()  # compiles
        assert np.array_equal(np.load(bed.with_name("distance.npy")), kernel(genotypes, missing=missing))
        ways[f"autotune: {name}"] = (taken.configuration.id, timed)
    return ways


def compare(
    bed: Path, genotypes: Genotypes, given: argparse.Namespace, scratch: Path
) -> list[dict[str, Any]]:
    nothing = scratch / "no-policies"
    sources = {
        "appendix": (str(scratch / "allpairs"), nothing),
        "cpu": ("allpairs", nothing),
        "tuned": ("allpairs", given.policies),
    }
    with ExitStack() as stack:
        ways: dict[tuple[str, str], tuple[str, Timed]] = {
            ("masked", "plink --distance"): ("", lambda: plink_distance(bed, given.threads)),
            ("masked", "plink --genome"): ("", lambda: plink_genome(bed, given.threads)),
        }
        for missing in ("masked", "category"):
            found = ways_of(stack, bed, genotypes, missing, sources)
            ways |= {(missing, name): way for name, way in found.items()}
        kernel = stack.enter_context(autotune.load("allpairs", device="cpu", policies=nothing))
        check(bed, given.threads, kernel(genotypes, missing="masked"))
        times = in_turn({way: timed for way, (_, timed) in ways.items()}, given.rounds)
    return [
        {"missing": way[0], "what": way[1], "part": part, **summary(values), "configuration": ways[way][0]}
        for (way, part), values in times.items()
    ]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "allpairs-plink-cpu.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--workload", action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of PLINK")
    given = parser.parse_args(words)
    family = load_family("allpairs")
    every = {
        name: inputs_of(family, name, given.data) for name in given.workload or ("hapmap3-slice", "hapmap3")
    }
    if given.check:
        print(f"plink1.9: {shutil.which('plink1.9') or 'not on PATH (Debian package plink1.9)'}")
        return harness.check(family, every.values(), ["appendix", "cpu"], device="cpu")
    machine = {"cpu": cpu_model(), "threads": given.threads, "plink": plink_version(),
               "autotune": autotune.__version__, "date": dt.datetime.now(dt.UTC).date()}  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, inputs in every.items():
        genotypes = inputs.arrays["genotypes"]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not tuned
            family_with_the_loop(Path(folder))
            bed = write_fileset(Path(folder), genotypes)
            sizes = {"workload": name, "instances": len(genotypes), "attributes": genotypes.shape[1]}
            for row in compare(bed, genotypes, given, Path(folder)):
                rows.append({**sizes, **row, **machine})
                told = "{workload:14} {missing:9} {what:20} {part:12} {median_ms:>8} ms ({minimum_ms} to {maximum_ms})"
                print(told.format(**rows[-1]), flush=True)
    write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
