"""The post's two charts anew: milliseconds against residues of its four programs, and of the ways it did not try.

    python benchmarks/cyclospectrum_charts.py --device cuda --out benchmarks/results/cyclospectrum-charts-h200.csv
    python benchmarks/cyclospectrum_charts.py --device cpu --out benchmarks/results/cyclospectrum-charts-cpu.csv

On a GPU: the brute, the iterated and the other kernels. On the cpu device, one thread: the two sequential programs,
compiled by the host's C++ compiler. ``sums`` is the unsorted list alone, ``list`` the whole call with its sort on the
host, as in the post. Inputs stay on the device. A size is left out once the one before took longer than --seconds.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.compile import Cache, Compiled, Variant, batch, compile_many, default_root
from autotune.declaration import bind, load_family
from autotune.device import CpuBackend, Resident
from autotune.measure import median, spread

FAMILY = load_family("cyclospectrum")
SIZES = (5, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SEQUENTIAL = {"sequential brute": "cyclospec", "sequential optimized": "cyclospec-opt"}
PARALLEL = {
    "CUDA brute": "cyclospec-gpu",
    "CUDA optimized": "cyclospec-opt-gpu",
    "optimized, one graph": "generation=iterated_graph",
    "optimized, one cooperative launch": "generation=iterated_cooperative",
    "running sum": "generation=running_sum",
    "prefix differences": "generation=prefix,outputs_per_thread=8,vector_width=4",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--list-sizes", type=int, default=1024, help="largest size whose whole list is timed")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--processes", type=int, default=16)
    arguments = parser.parse_args()
    programs = PARALLEL if arguments.device == "cuda" else SEQUENTIAL
    backend: Any = CpuBackend(1)
    if arguments.device == "cuda":
        from autotune.device import CudaBackend

        backend = CudaBackend(0)
    with backend, arguments.out.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["device", "program", "what", "residues", "ms", "spread", "samples"])
        for order, what in (("unsorted", "sums"), ("sorted", "list")):
            variants = tuple(
                Variant(FAMILY, FAMILY.space.configuration(text), (("order", order),))
                for text in programs.values()
            )
            cache = Cache(default_root())
            chunks = compile_many(batch(FAMILY, variants), backend.toolchain(), cache, arguments.processes, 1)
            binaries = [binary for chunk in chunks for binary in chunk]
            for (program, variant), binary in zip(
                zip(programs, variants, strict=True), binaries, strict=True
            ):
                assert isinstance(binary, Compiled), binary
                sizes = [n for n in arguments.sizes if what == "sums" or n <= arguments.list_sizes]
                for row in timed(backend, variant, binary, order, sizes, arguments):
                    rows.writerow([arguments.device, program, what, *row])
                    print(program, what, *row, flush=True)


def timed(
    backend: Any, variant: Variant, binary: Compiled, order: str, sizes: Sequence[int], arguments: Any
) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for residues in sizes:
        made = FAMILY.module.inputs({"residues": residues, "seed": residues}, Path())  # type: ignore[union-attr]
        inputs = bind(FAMILY, made, {"order": order}, {})
        names = inputs.names(variant.configuration)
        if variant.exclusion(names, backend.device.limits):
            break
        resident = Resident(backend, inputs)
        execution = resident.execution(variant, backend.load(binary))
        first = backend.sample(execution.run, 1, False)[0]
        count = arguments.samples if first < arguments.seconds * 1e3 / 2 else 2
        times = backend.sample(execution.run, count, False)
        resident.close()
        found.append((residues, f"{median(times):.5f}", f"{spread(times):.3f}", len(times)))
        if median(times) > arguments.seconds * 1e3:
            break
    return found


if __name__ == "__main__":
    main()
