"""Eager, fused and lazy ion placement, compared with a float64 reference by numpy: places, times, points visited.

    python benchmarks/coulomb_ions.py --data DATA --workload mache-ions --device cuda --out ions.csv
    python benchmarks/coulomb_ions.py --data DATA --workload mache-ions --make-reference mache-ions.npy

The reference takes a while on a large map: --make-reference keeps its places, --reference FILE compares with those, and
without either it is computed. Configurations may be named (update=lazy,tile=6,...); a policy that is not named has its
default. Times are of one call of the whole plan, the median of three. A row is written as soon as it is there.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from harness import arguments, bound, check, inputs_of, module_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.declaration import Inputs, load_family
from autotune.device import Resident, open_backend

FAMILY = load_family("ion_placement")

LAZY = "update=lazy,launch=persistent,tile_records=soa"
TRIED = (
    "update=eager", "update=fused", "update=lazy,launch=graph,tile_records=soa,tile=6",
    f"{LAZY},tile=6", f"{LAZY},tile=8", f"{LAZY},tile=6,near=3", f"{LAZY},tile=8,near=3",
    f"{LAZY},tile=6,block_size=128,lazy_blocks=264",
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "ions.csv")
    parser.add_argument("configurations", nargs="*", default=TRIED, metavar="CONFIGURATION")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="mache-ions")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--make-reference", type=Path)
    given = parser.parse_args(words)
    begin = time.perf_counter()
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        return check(FAMILY, [inputs], given.configurations, device=given.device)
    points = inputs.sizes["slice"] * inputs.sizes["row"] * inputs.sizes["column"]
    print(
        f"{points:,} points, {inputs.sizes['ion']} ions; {time.perf_counter() - begin:.1f} s for the potential",
        flush=True,
    )
    expected = np.load(given.reference) if given.reference else computed(inputs)
    if given.make_reference:
        np.save(given.make_reference, expected)
        return 0
    variants = variants_of(FAMILY, given.configurations, {})
    backend = open_backend(given.device)
    rows = []
    with backend.current():
        resident = Resident(backend, inputs)
        for variant in variants:
            (execution,) = bound(resident, (variant,))
            execution.run()
            places = execution.restore("places", (inputs.sizes["ion"],))
            every = points * (inputs.sizes["ion"] - 1)
            lazy = variant.configuration["update"] == "lazy"
            updated = int(execution.head("updates", 1)[0]) if lazy else every
            milliseconds = median(backend.sample(execution.run, 3, cold=False))
            rows.append({
                "configuration": variant.configuration.id, "milliseconds": f"{milliseconds:.4g}", "updated": updated,
                "times_fewer": f"{every / updated:.1f}", "same_as_reference": bool((places == expected).all()),
            })  # fmt: skip
            write_rows(given.out, rows)
            print(*rows[-1].values(), flush=True)
        resident.close()
    backend.close()
    return 0


def computed(inputs: Inputs) -> NDArray[np.uint32]:
    begin = time.perf_counter()
    places = module_of(FAMILY).reference(inputs.arrays, inputs.scalars)["places"]
    print(f"{time.perf_counter() - begin:.1f} s for the reference", flush=True)
    return np.asarray(places)


if __name__ == "__main__":
    sys.exit(main())
