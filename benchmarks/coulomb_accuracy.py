"""How far configurations are from float64, at random points of a real structure's map, by rsqrt and precision,
and the rate of each.

    python benchmarks/coulomb_accuracy.py --data DATA --workload mache-half --device cuda --out accuracy.csv CONFIG ...

For each configuration and precision: the largest |error| / sum of |q| / r (the backward error, at most 1e-6), the
norm of the errors over the norm of the potential (at most 1e-5), evaluations a second (median of five).
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from autotune.compile import Cache, Compiled, Variant, batch, compile_batch, default_root
from autotune.declaration import load_family, load_workload, prepare
from autotune.device import Resident, open_backend
from autotune.measure import median

_POINTS = 2000
_BATCHED = "slices_per_launch=all,accumulate=at_end"
_THREAD = f"{_BATCHED},precalculate=thread,points_x=8,points_z=8,staging=shared,block_x=16,block_y=8"
_DEFAULT = (
    *(f"{_THREAD},rsqrt={rsqrt}" for rsqrt in ("fast", "mixed4", "mixed3", "mixed2", "newton")),
    "simple", "v1", "v2", "v3", "v4", "v4-batched",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workload", default="mache-half")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("configurations", nargs="*", default=_DEFAULT)
    given = parser.parse_args()
    family = load_family("coulomb")
    assert family.module is not None
    inputs = prepare(family, load_workload(family, given.workload), given.data)
    shape = tuple(inputs.sizes[name] for name in ("slice", "row", "column"))
    points = np.random.default_rng(0).integers(0, shape, (_POINTS, 3))
    values, sizes = family.module.exact.potential_at(
        inputs.arrays["atoms"], points, inputs.scalars["spacing"]
    )
    evaluations = float(np.prod(shape)) * inputs.sizes["atom"]
    backend = open_backend(given.device)
    rows = []
    with backend.current():
        resident = Resident(backend, inputs)
        for precision in ("float32", "compensated", "float64"):
            for text in given.configurations:
                configuration = family.space.configuration(text)
                if precision != "float32" and configuration["rsqrt"] not in ("ieee", "fast"):
                    continue
                variant = Variant(family, configuration, (("precision", precision),))
                (built,) = compile_batch(
                    batch(family, (variant,)), backend.toolchain(), Cache(default_root())
                )
                assert isinstance(built, Compiled), built
                execution = resident.execution(variant, backend.load(built))
                execution.run()
                made = execution.restore("potential", shape)[tuple(points.T)]
                rate = evaluations / median(backend.sample(execution.run, 5, cold=False)) * 1e3
                error = np.abs(made - values)
                rows.append({"precision": precision, "configuration": text, "backward": f"{(error / sizes).max():.3g}",
                             "norm": f"{np.linalg.norm(error) / np.linalg.norm(values):.3g}",
                             "evaluations_per_s": f"{rate:.4g}"})  # fmt: skip
                print(rows[-1], flush=True)
        resident.close()
    backend.close()
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
