"""How far configurations are from float64, at random points of a real structure's map, by rsqrt and precision,
and the rate of each.

    python benchmarks/coulomb_accuracy.py --data DATA --workload mache-half --device cuda --out accuracy.csv CONFIG ...

For each configuration and precision: the largest |error| / sum of |q| / r (the backward error, at most 1e-6), the
norm of the errors over the norm of the potential (at most 1e-5), evaluations a second (median of five).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from harness import arguments, bound, check, inputs_of, module_of, variants_of
from result_files import write_rows

from autotune.declaration import load_family
from autotune.device import Resident, open_backend

FAMILY = load_family("coulomb")
_POINTS = 2000
_BATCHED = "slices_per_launch=all,accumulate=at_end"
_THREAD = f"{_BATCHED},precalculate=thread,points_x=8,points_z=8,staging=shared,block_x=16,block_y=8"
_SPREAD = f"{_BATCHED},points=spread,points_x=3,points_z=8,staging=shared,block_x=8,block_y=4,unroll=2"
_DEFAULT = (
    f"{_THREAD},rsqrt=fast",
    *(f"{_SPREAD},precalculate=block,rsqrt={rsqrt}" for rsqrt in ("fast", "cubic3")),
    "simple", "v1", "v2", "v3", "v4", "v4-batched",
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-accuracy.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="mache-half")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("configurations", nargs="*", default=_DEFAULT)
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        return check(FAMILY, [inputs], given.configurations, device=given.device)
    shape = tuple(inputs.sizes[name] for name in ("slice", "row", "column"))
    points = np.random.default_rng(0).integers(0, shape, (_POINTS, 3))
    exact = module_of(FAMILY).exact
    values, sizes = exact.potential_at(inputs.arrays["atoms"], points, inputs.scalars["spacing"])
    evaluations = float(np.prod(shape)) * inputs.sizes["atom"]
    backend = open_backend(given.device)
    rows = []
    with backend.current():
        resident = Resident(backend, inputs)
        for precision in ("float32", "compensated", "float64"):
            variants = variants_of(FAMILY, given.configurations, {"precision": precision})
            for variant, text in zip(variants, given.configurations, strict=True):
                if precision != "float32" and variant.configuration["rsqrt"] not in ("ieee", "fast"):
                    continue
                (execution,) = bound(resident, (variant,))
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
    write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
