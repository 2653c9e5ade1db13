"""Every configuration of the cyclospectrum family on the GPU against numpy, value by value.

    python benchmarks/cyclospectrum_exact.py --out benchmarks/results/cyclospectrum-exact.csv

Needs a CUDA device and PyCUDA. The sorted list: host sort up to --host residues, else sorted on the device up to the
largest size. The unsorted list: every way to make the sums at every size. One sequential thread is too slow for more
than 255 residues (brute) and 1,024 (optimized).
"""

import argparse
import csv
import sys
import time
from pathlib import Path

from autotune.compile import Cache, CompileFailure, Variant, batch, compile_many, default_root
from autotune.declaration import Inputs, bind, load_family
from autotune.device import CudaBackend, LaunchError, Resident
from autotune.measure import Verifier

FAMILY = load_family("cyclospectrum")
SIZES = (1, 2, 3, 5, 10, 37, 255, 1024, 4096)
_SEQUENTIAL = {"sequential_brute": 255, "sequential_iterated": 1024}


def inputs_of(residues: int, order: str) -> Inputs:
    made = FAMILY.module.inputs({"residues": residues, "seed": residues}, Path())  # type: ignore[union-attr]
    return bind(FAMILY, made, {"order": order}, {})


def is_tried(variant: Variant, residues: int, order: str, host: int) -> bool:
    policies = variant.configuration
    if policies["generation"] in _SEQUENTIAL:
        return residues <= _SEQUENTIAL[str(policies["generation"])]
    sorts_on_host = order == "sorted" and policies["finish"] == "host_sort"
    return not sorts_on_host or residues <= host


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--host", type=int, default=255, help="largest size that is sorted on the host")
    parser.add_argument("--processes", type=int, default=16)
    arguments = parser.parse_args()
    wrong = 0
    with CudaBackend(0) as backend, arguments.out.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["order", "residues", "configurations", "exact", "excluded", "wrong", "seconds"])
        for order in ("unsorted", "sorted"):
            begin = time.perf_counter()
            variants = tuple(Variant(FAMILY, c, (("order", order),)) for c in FAMILY.space.configurations())
            at_five = inputs_of(5, order)
            variants = tuple(v for v in variants if not excluded(v, at_five, backend))
            cache, toolchain = Cache(default_root()), backend.toolchain()
            chunks = compile_many(batch(FAMILY, variants), toolchain, cache, arguments.processes, 16)
            binaries = [binary for chunk in chunks for binary in chunk]
            print(f"{order}: {len(variants)} compiled, {time.perf_counter() - begin:.1f} s", flush=True)
            for residues in arguments.sizes:
                begin = time.perf_counter()
                inputs = inputs_of(residues, order)
                expected = FAMILY.module.reference(inputs.arrays, inputs.options)  # type: ignore[union-attr]
                resident, verifier = Resident(backend, inputs), Verifier(backend, FAMILY, expected)
                exact = left_out = bad = 0
                for variant, binary in zip(variants, binaries, strict=True):
                    if isinstance(binary, CompileFailure):
                        reason = binary.message
                    elif not is_tried(variant, residues, order, arguments.host) or excluded(
                        variant, inputs, backend
                    ):
                        left_out += 1
                        continue
                    else:
                        try:
                            execution = resident.execution(variant, backend.load(binary))
                            reason, _ = verifier.run(execution, cold=False)
                        except (LaunchError, RuntimeError) as problem:
                            reason = str(problem)
                    exact, bad = exact + (not reason), bad + bool(reason)
                    if reason:
                        print(f"{order} {residues} {variant.configuration.id}: {reason}", flush=True)
                verifier.close()
                resident.close()
                seconds = time.perf_counter() - begin
                rows.writerow([order, residues, len(variants), exact, left_out, bad, f"{seconds:.1f}"])
                print(
                    f"{order} {residues}: {exact} exact, {left_out} left out, {bad} wrong, {seconds:.1f} s",
                    flush=True,
                )
                wrong += bad
    sys.exit(1 if wrong else 0)


def excluded(variant: Variant, inputs: Inputs, backend: CudaBackend) -> str:
    names = inputs.names(variant.configuration)
    return variant.exclusion(names, backend.device.limits)


if __name__ == "__main__":
    main()
