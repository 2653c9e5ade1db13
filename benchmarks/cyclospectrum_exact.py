"""Every configuration of the cyclospectrum family on the GPU against numpy, value by value.

    python benchmarks/cyclospectrum_exact.py --out benchmarks/results/cyclospectrum-exact.csv

For a GPU; ``--device cpu`` with ``--set`` for a part of the space shows that the script works. The sorted list and the
pairs of mass and count: on the host up to --host residues, else on the device up to the largest size. The unsorted
list: every way to make the sums at every size. One sequential thread is too slow for more than 255 residues (brute) and
1,024 (optimized).
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from harness import arguments, check, module_of, variants_of
from result_files import write_rows

from autotune.compile import Cache, Compiled, CompileFailure, Variant, batch, compile_many, default_root
from autotune.declaration import Inputs, bind, load_family
from autotune.device import Backend, LaunchError, Resident, open_backend
from autotune.measure import Verifier

FAMILY = load_family("cyclospectrum")
SIZES = (1, 2, 3, 5, 10, 37, 255, 1024, 4096)
ORDERS = ("unsorted", "sorted", "pairs")
_SEQUENTIAL = {"sequential_brute": 255, "sequential_iterated": 1024}


def inputs_of(residues: int, order: str) -> Inputs:
    made = module_of(FAMILY).inputs({"residues": residues, "seed": residues}, Path())
    return bind(FAMILY, made, options_of(order), {})


def options_of(order: str) -> dict[str, str]:
    """Of the list in an order, or of pairs, which ascend."""
    return {"order": "sorted", "output": "pairs"} if order == "pairs" else {"order": order, "output": "list"}


def is_tried(variant: Variant, residues: int, order: str, host: int) -> bool:
    policies = variant.configuration
    if policies["generation"] in _SEQUENTIAL:
        return residues <= _SEQUENTIAL[str(policies["generation"])]
    sorts_on_host = order != "unsorted" and policies["finish"] == "host_sort"
    return not sorts_on_host or residues <= host


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "cyclospectrum-exact.csv")
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--set", action="append", default=[], metavar="POLICY=V1,V2", help="part of the space"
    )
    parser.add_argument("--preset", default="full", help="part of the space")
    parser.add_argument("--orders", nargs="*", default=ORDERS, choices=ORDERS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--host", type=int, default=255, help="largest size that is sorted on the host")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args(words)
    narrowed = {name: values.split(",") for name, _, values in (text.partition("=") for text in given.set)}
    space = FAMILY.space.configurations(given.preset, narrowed)
    if given.check:
        every = [inputs_of(min(given.sizes), order) for order in given.orders]
        return check(FAMILY, every, space, device=given.device)
    rows: list[dict[str, Any]] = []
    with closing(open_backend(given.device)) as backend, backend.current():
        for order in given.orders:
            begin = time.perf_counter()
            at_five = inputs_of(5, order)
            variants = variants_of(FAMILY, space, options_of(order))
            variants = tuple(v for v in variants if not excluded(v, at_five, backend))
            cache, toolchain = Cache(default_root()), backend.toolchain()
            chunks = compile_many(batch(FAMILY, variants), toolchain, cache, given.processes, 16)
            binaries = [binary for chunk in chunks for binary in chunk]
            print(f"{order}: {len(variants)} compiled, {time.perf_counter() - begin:.1f} s", flush=True)
            for residues in given.sizes:
                rows.append(
                    counted(backend, list(zip(variants, binaries, strict=True)), residues, order, given.host)
                )
                write_rows(given.out, rows)
    return int(any(row["wrong"] for row in rows))


def counted(
    backend: Backend,
    made: Sequence[tuple[Variant, Compiled | CompileFailure]],
    residues: int,
    order: str,
    host: int,
) -> dict[str, Any]:
    """How many are exact at one size."""
    begin = time.perf_counter()
    inputs = inputs_of(residues, order)
    expected = module_of(FAMILY).reference(inputs.arrays, inputs.options)
    resident, verifier = Resident(backend, inputs), Verifier(backend, FAMILY, expected)
    exact = left_out = wrong = 0
    for variant, binary in made:
        if not is_tried(variant, residues, order, host) or excluded(variant, inputs, backend):
            left_out += 1
            continue
        if isinstance(binary, CompileFailure):
            reason = binary.message
        else:
            try:
                reason, _ = verifier.run(resident.execution(variant, backend.load(binary)), cold=False)
            except (LaunchError, RuntimeError) as problem:
                reason = str(problem)
        exact, wrong = exact + (not reason), wrong + bool(reason)
        if reason:
            print(f"{order} {residues} {variant.configuration.id}: {reason}", flush=True)
    verifier.close()
    resident.close()
    seconds = f"{time.perf_counter() - begin:.1f}"
    print(f"{order} {residues}: {exact} exact, {left_out} left out, {wrong} wrong, {seconds} s", flush=True)
    return {
        "order": order, "residues": residues, "configurations": len(made), "exact": exact, "excluded": left_out,
        "wrong": wrong, "seconds": seconds,
    }  # fmt: skip


def excluded(variant: Variant, inputs: Inputs, backend: Backend) -> str:
    names = inputs.names(variant.configuration)
    return variant.explain_exclusion(names, backend.device.limits)


if __name__ == "__main__":
    sys.exit(main())
