"""Eager, fused and lazy ion placement beside a float64 reference by numpy: places, times, and points gone over.

    python benchmarks/coulomb_ions.py --data DATA --workload mache-ions --device cuda --out ions.csv

Every configuration's places are compared with the reference's, which takes a while on a large map: --no-reference
compares with the first configuration instead. Times are of one call of the whole plan, the median of five.
"""

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np

from autotune import family as families
from autotune import workload as workloads
from autotune.cache import Cache, default_root
from autotune.compiler import Compiled, compile_many
from autotune.devices import open_backend
from autotune.measure import median
from autotune.resident import Resident
from autotune.variant import Variant, batch


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workload", default="mache-ions")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--no-reference", action="store_true")
    given = parser.parse_args()
    family = families.load("ion_placement")
    assert family.module is not None
    inputs = workloads.prepare(family, workloads.load(family, given.workload), given.data)
    points = inputs.sizes["slice"] * inputs.sizes["row"] * inputs.sizes["column"]
    print(f"{points:,} points, {inputs.sizes['ion']} ions", flush=True)
    backend = open_backend(given.device)
    rows, expected = [], None
    with backend.current():
        resident = Resident(backend, inputs)
        variants = tuple(Variant(family, c, ()) for c in family.space.configurations())
        made = compile_many(
            batch(family, variants),
            backend.toolchain(),
            Cache(default_root()),
            len(os.sched_getaffinity(0)),
            4,
        )
        for variant, built in zip(variants, (c for chunk in made for c in chunk), strict=True):
            configuration = variant.configuration
            assert isinstance(built, Compiled), built
            execution = resident.execution(variant, backend.load(built))
            execution.run()
            places = execution.restore("places", (inputs.sizes["ion"],))
            lazy = configuration["update"] == "lazy"
            updated = int(execution.head("updates", 1)[0]) if lazy else points * (inputs.sizes["ion"] - 1)
            if expected is None:
                expected = places
            milliseconds = median(backend.sample(execution.run, 5, cold=False))
            rows.append({"configuration": configuration.id, "milliseconds": f"{milliseconds:.4g}", "updated": updated,
                         "same": bool((places == expected).all())})  # fmt: skip
            print(rows[-1], flush=True)
        resident.close()
    backend.close()
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    if not given.no_reference:
        begin = time.perf_counter()
        reference = family.module.reference(inputs.arrays, inputs.scalars)["places"]
        same = bool((reference == expected).all())
        print(
            f"equal to the float64 reference: {same}; it took {time.perf_counter() - begin:.1f} s", flush=True
        )
        np.save(given.out.with_suffix(".npy"), reference)


if __name__ == "__main__":
    main()
