"""Eager, fused and lazy ion placement beside a float64 reference by numpy: places, times, and points gone over.

    python benchmarks/coulomb_ions.py --data DATA --workload mache-ions --device cuda --out ions.csv
    python benchmarks/coulomb_ions.py --data DATA --workload mache-ions --make-reference mache-ions.npy

The reference takes a while on a large map: --make-reference keeps its places, --reference FILE compares with those, and
without either it is computed. Configurations may be named (update=lazy,tile=6,...); a policy that is not named has its
default. Times are of one call of the whole plan, the median of three. A row is written as soon as it is there.
"""

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Cache, Compiled, Variant, batch, compile_many, default_root
from autotune.declaration import Inputs, load_family, load_workload, prepare
from autotune.device import Resident, open_backend
from autotune.measure import median

FAMILY = load_family("ion_placement")

LAZY = "update=lazy,launch=persistent,tile_records=soa"
TRIED = (
    "update=eager", "update=fused", "update=lazy,launch=graph,tile_records=soa,tile=6",
    f"{LAZY},tile=6", f"{LAZY},tile=8", f"{LAZY},tile=6,near=3", f"{LAZY},tile=8,near=3",
    f"{LAZY},tile=6,block_size=128,lazy_blocks=264",
)  # fmt: skip
COLUMNS = ("configuration", "milliseconds", "updated", "times_fewer", "same_as_reference")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("configurations", nargs="*", default=TRIED, metavar="CONFIGURATION")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workload", default="mache-ions")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("ions.csv"))
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--make-reference", type=Path)
    given = parser.parse_args()
    begin = time.perf_counter()
    inputs = prepare(FAMILY, load_workload(FAMILY, given.workload), given.data)
    points = inputs.sizes["slice"] * inputs.sizes["row"] * inputs.sizes["column"]
    print(
        f"{points:,} points, {inputs.sizes['ion']} ions; {time.perf_counter() - begin:.1f} s for the potential",
        flush=True,
    )
    expected = np.load(given.reference) if given.reference else computed(inputs)
    if given.make_reference:
        np.save(given.make_reference, expected)
        return
    variants = tuple(Variant(FAMILY, FAMILY.space.configuration(text), ()) for text in given.configurations)
    backend = open_backend(given.device)
    with backend.current(), given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        resident = Resident(backend, inputs)
        cores = len(os.sched_getaffinity(0))
        made = compile_many(batch(FAMILY, variants), backend.toolchain(), Cache(default_root()), cores, 1)
        for variant, built in zip(variants, (c for chunk in made for c in chunk), strict=True):
            assert isinstance(built, Compiled), built
            execution = resident.execution(variant, backend.load(built))
            execution.run()
            places = execution.restore("places", (inputs.sizes["ion"],))
            every = points * (inputs.sizes["ion"] - 1)
            lazy = variant.configuration["update"] == "lazy"
            updated = int(execution.head("updates", 1)[0]) if lazy else every
            milliseconds = median(backend.sample(execution.run, 3, cold=False))
            row = (variant.configuration.id, f"{milliseconds:.4g}", updated, f"{every / updated:.1f}",
                   bool((places == expected).all()))  # fmt: skip
            writer.writerow(row)
            file.flush()
            print(*row, flush=True)
        resident.close()
    backend.close()


def computed(inputs: Inputs) -> NDArray[np.uint32]:
    begin = time.perf_counter()
    assert FAMILY.module is not None
    places = FAMILY.module.reference(inputs.arrays, inputs.scalars)["places"]
    print(f"{time.perf_counter() - begin:.1f} s for the reference", flush=True)
    return np.asarray(places)


if __name__ == "__main__":
    main()
