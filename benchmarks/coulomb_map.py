"""A map of a million atoms with a bound on its error: times, each kernel's part, and the error at random points.

    python benchmarks/coulomb_map.py --workload million --device cuda --out map.csv CONFIGURATION ...

For each configuration: the time of a call (median of three), the time in each kernel, the largest bound as a share of
the accuracy asked for, and at random points the largest error against float64 sums, as a share of the sum of |q| / r
and of the bound.
``--points`` are computed by numpy; ``--points-by-torch`` more of them by torch on the device.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, bound, check, inputs_of, module_of, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache, batch, compile_many, default_root
from autotune.declaration import Inputs, bind, load_family
from autotune.device import Backend, Execution, Resident, open_backend

FAMILY = load_family("coulomb_map")
TRIED = ("cubes-8", "cubes-12", "cubes-16", "always")
_AT_ONCE = 64  # points of torch's sums

Sums = tuple[NDArray[np.float64], NDArray[np.float64]]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-map.csv")
    parser.add_argument("configurations", nargs="*", default=TRIED, metavar="CONFIGURATION")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="million")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--points-by-torch", type=int, default=0)
    parser.add_argument("--times-only", action="store_true", help="no errors, and no bounds of single points")
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        return check(FAMILY, [inputs], given.configurations, device=given.device, peers=["torch"])
    shape = shape_of(inputs)
    chosen = np.random.default_rng(1).integers(0, shape, (given.points + given.points_by_torch, 3))
    exact = None if given.times_only else sums_at(inputs, chosen, given.points)
    backend = open_backend(given.device)
    compile_all(backend, given.configurations, ("largest",) if given.times_only else ("largest", "points"))
    rows: list[dict[str, Any]] = []
    with backend.current():
        for text in given.configurations:
            row = {"workload": given.workload, "atoms": inputs.sizes["atom"], "points": int(np.prod(shape)),
                   "configuration": text, **timed(backend, asking(inputs, "largest"), text)}  # fmt: skip
            if exact is not None:
                row.update(errors(backend, asking(inputs, "points"), text, chosen, exact))
            rows.append(row)
            print(row, flush=True)
            write_rows(given.out, rows)
    backend.close()
    return 0


def asking(inputs: Inputs, bounds: str) -> Inputs:
    """The same inputs, with that option."""
    given = {name: inputs.scalars[name] for name in ("nx", "ny", "nz", "spacing", "accuracy", "least")}
    return bind(FAMILY, {**inputs.arrays, **given}, {"bounds": bounds}, {})


def shape_of(inputs: Inputs) -> tuple[int, ...]:
    return tuple(inputs.sizes[name] for name in ("slice", "row", "column"))


def compile_all(backend: Backend, texts: Sequence[str], options: Sequence[str]) -> None:
    """Into the cache, in as many processes as there are cores."""
    variants = [v for bounds in options for v in variants_of(FAMILY, texts, {"bounds": bounds})]
    cache, processes = Cache(default_root()), len(os.sched_getaffinity(0))
    for _ in compile_many(
        batch(FAMILY, tuple(variants)), backend.toolchain(), cache, processes, 1, early=False
    ):
        pass


def timed(backend: Backend, plain: Inputs, text: str) -> dict[str, Any]:
    """A call, and its kernels."""
    with Opened(backend, plain, text) as execution:
        execution.run()
        milliseconds = median(backend.sample(execution.run, 3, cold=False))
        parts = backend.kernel_times(execution.run)
        share = float(execution.restore("share", (1,))[0])
    evaluations = float(plain.sizes["atom"]) * float(np.prod(shape_of(plain)))
    return {"ms": f"{milliseconds:.4g}", "evaluations_per_s": f"{evaluations / milliseconds * 1e3:.4g}",
            "largest_share": f"{share:.4g}", **{f"{name}_ms": f"{ms:.4g}" for name, ms in parts.items()}}  # fmt: skip


def errors(
    backend: Backend, inputs: Inputs, text: str, chosen: NDArray[np.integer], exact: Sums
) -> dict[str, Any]:
    """Compare a map with the exact sums and with the bound of every point."""
    shape = shape_of(inputs)
    with Opened(backend, inputs, text) as execution:
        execution.run()
        milliseconds = median(backend.sample(execution.run, 3, cold=False))
        at = tuple(chosen.T)
        made, bounds = (
            execution.restore(name, shape)[at].astype(np.float64) for name in ("potential", "bound")
        )
    values, sizes = exact
    error = np.abs(made - values)
    return {"ms_with_bounds": f"{milliseconds:.4g}", "checked": len(values),
            "error_of_sum": f"{(error / sizes).max():.3g}", "bound_of_sum": f"{(bounds / sizes).max():.3g}",
            "error_of_bound": f"{(error / bounds).max():.3g}", "above_bound": int((error > bounds).sum())}  # fmt: skip


class Opened:
    """The configuration on the inputs, its memory given back at the end."""

    def __init__(self, backend: Backend, inputs: Inputs, text: str) -> None:
        self.resident = Resident(backend, inputs)
        self.variants = variants_of(FAMILY, [text], inputs.options)

    def __enter__(self) -> Execution:
        return bound(self.resident, self.variants)[0]

    def __exit__(self, *_: object) -> None:
        self.resident.close()


def sums_at(inputs: Inputs, chosen: NDArray[np.integer], by_numpy: int) -> Sums:
    """V and the sum of |q| / r in float64: of the first ``by_numpy`` points by numpy, of the rest by torch."""
    atoms, spacing = inputs.arrays["atoms"], float(inputs.scalars["spacing"])
    values, sizes = module_of(FAMILY).exact.potential_at(atoms, chosen[:by_numpy], spacing)
    if by_numpy == len(chosen):
        return values, sizes
    more = by_torch(atoms, chosen[by_numpy:], spacing)
    return np.concatenate([values, more[0]]), np.concatenate([sizes, more[1]])


def by_torch(atoms: NDArray[np.void], chosen: NDArray[np.integer], spacing: float) -> Sums:
    import torch  # only where it is asked for

    place = torch.tensor(np.stack([atoms[name] for name in "zyxq"]), dtype=torch.float64, device="cuda")
    points = torch.tensor(chosen * float(np.float32(spacing)), dtype=torch.float64, device="cuda")
    made = torch.empty((2, len(chosen)), dtype=torch.float64, device="cuda")
    charges = torch.stack([place[3], place[3].abs()], dim=1)
    for first in range(0, len(chosen), _AT_ONCE):
        part = points[first : first + _AT_ONCE, :, None]
        away = (part[:, 0] - place[0]).square_()
        for axis in (1, 2):
            away += (part[:, axis] - place[axis]).square_()
        made[:, first : first + _AT_ONCE] = (away.add_(1e-8).rsqrt_() @ charges).T
    values, sizes = made.cpu().numpy()
    return values, sizes


if __name__ == "__main__":
    sys.exit(main())
