"""The post's two charts, measured again: milliseconds against residues, of its four programs and of other ways.

    python benchmarks/cyclospectrum_charts.py --device cuda --out benchmarks/results/cyclospectrum-charts-h200.csv
    python benchmarks/cyclospectrum_charts.py --device cpu --out benchmarks/results/cyclospectrum-charts-cpu.csv

On a GPU: the brute, the iterated and the other kernels. On the cpu device, one thread: the two sequential programs,
compiled by the host's C++ compiler. ``sums`` is the unsorted list alone, ``list`` the whole call with its sort on the
host, as in the post. Inputs stay on the device. A size is left out once the one before took longer than --seconds.
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from statistics import median
from typing import Any

from cyclospectrum_exact import inputs_of, options_of
from harness import arguments, bound, check, variants_of
from result_files import write_rows

from autotune.compile import Variant
from autotune.declaration import load_family
from autotune.device import Backend, CpuBackend, Resident, open_backend
from autotune.measure import spread

FAMILY = load_family("cyclospectrum")
SIZES = (5, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SEQUENTIAL = {"sequential brute": "cyclospec", "sequential optimized": "cyclospec-opt"}
PARALLEL = {
    "CUDA brute": "cyclospec-gpu",
    "CUDA optimized": "cyclospec-opt-gpu",
    "prefix differences": "generation=prefix,outputs_per_thread=8,vector_width=4",
}


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "cyclospectrum-charts.csv")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--list-sizes", type=int, default=1024, help="largest size whose whole list is timed")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--samples", type=int, default=5)
    given = parser.parse_args(words)
    programs = PARALLEL if given.device == "cuda" else SEQUENTIAL
    if given.check:
        every = [inputs_of(min(given.sizes), order) for order in ("unsorted", "sorted")]
        return check(FAMILY, every, programs.values(), device=given.device)
    backend: Backend = open_backend("cuda") if given.device == "cuda" else CpuBackend(1)
    rows: list[dict[str, Any]] = []
    with closing(backend), backend.current():
        for order, what in (("unsorted", "sums"), ("sorted", "list")):
            variants = variants_of(FAMILY, programs.values(), options_of(order))
            for program, variant in zip(programs, variants, strict=True):
                sizes = [n for n in given.sizes if what == "sums" or n <= given.list_sizes]
                for row in timed(backend, variant, order, sizes, given):
                    rows.append({"device": given.device, "program": program, "what": what, **row})
                    print(*rows[-1].values(), flush=True)
                write_rows(given.out, rows)
    return 0


def timed(
    backend: Backend, variant: Variant, order: str, sizes: Sequence[int], given: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for residues in sizes:
        inputs = inputs_of(residues, order)
        names = inputs.names(variant.configuration)
        if variant.explain_exclusion(names, backend.device.limits):
            break
        resident = Resident(backend, inputs)
        (execution,) = bound(resident, (variant,))  # compiled once: the cache has it after that
        first = backend.sample(execution.run, 1, False)[0]
        count = given.samples if first < given.seconds * 1e3 / 2 else 2
        times = backend.sample(execution.run, count, False)
        resident.close()
        found.append({"residues": residues, "ms": f"{median(times):.5f}", "spread": f"{spread(times):.3f}",
                      "samples": len(times)})  # fmt: skip
        if median(times) > given.seconds * 1e3:
            break
    return found


if __name__ == "__main__":
    sys.exit(main())
