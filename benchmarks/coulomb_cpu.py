"""The potential on a cpu, all cores: the family's configurations, the naive numpy formulation, and numba where it is.

    python benchmarks/coulomb_cpu.py --workload 1a63 --out benchmarks/results/coulomb-cpu.csv

Evaluations a second, the best of three calls after one that compiles. numpy is what one writes first: for a row of
points all atoms at once, in float32, one row after the other.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, bound, check, inputs_of, module_of, variants_of, write_rows

from autotune.declaration import load_family
from autotune.device import CpuBackend, Resident

FAMILY = load_family("coulomb")
_ALL = "slices_per_launch=all"
_DEEP = f"{_ALL},accumulate=at_end,precalculate=thread,rsqrt=fast,block_x=16,block_y=8"
_CONFIGURATIONS = (
    "simple",
    f"{_ALL},rsqrt=fast",
    f"{_ALL},rsqrt=fast,points_x=8,accumulate=at_end,block_y=8",
    f"{_DEEP},points_x=4,points_z=4",
    f"{_DEEP},points_x=4,points_z=8",
    f"{_DEEP},points_x=8,points_z=8",
)

Atoms = np.ndarray[Any, Any]


def numpy_map(atoms: Atoms, counts: tuple[int, int, int], spacing: float) -> np.ndarray[Any, Any]:
    nx, ny, nz = counts
    made = np.empty((nz, ny, nx), np.float32)
    step = np.float32(spacing)
    x = step * np.arange(nx, dtype=np.float32)
    for k in range(nz):
        for j in range(ny):
            dyz2 = (step * j - atoms["y"]) ** 2 + (step * k - atoms["z"]) ** 2 + np.float32(1e-8)
            made[k, j] = (atoms["q"] / np.sqrt((x[:, None] - atoms["x"]) ** 2 + dyz2)).sum(axis=1)
    return made


def numba_map() -> Callable[..., np.ndarray[Any, Any]]:
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def run(
        x: Atoms, y: Atoms, z: Atoms, q: Atoms, nx: int, ny: int, nz: int, step: float
    ) -> np.ndarray[Any, Any]:
        made = np.empty((nz, ny, nx), np.float32)
        for row in numba.prange(nz * ny):
            k, j = row // ny, row % ny
            for i in range(nx):
                total = np.float32(0)
                for a in range(len(q)):
                    dx, dy, dz = step * i - x[a], step * j - y[a], step * k - z[a]
                    total += q[a] / np.sqrt(dx * dx + dy * dy + dz * dz + np.float32(1e-8))
                made[k, j, i] = total
        return made

    def whole(atoms: Atoms, counts: tuple[int, int, int], spacing: float) -> np.ndarray[Any, Any]:
        columns = [np.ascontiguousarray(atoms[name]) for name in "xyzq"]
        return np.asarray(run(*columns, *counts, np.float32(spacing)))

    return whole


def best_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    made = call()
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        made = call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), made


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-cpu.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="1a63-slice")
    parser.add_argument("configurations", nargs="*", default=_CONFIGURATIONS)
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        return check(FAMILY, [inputs], given.configurations, peers=("numba",), device="cpu")
    counts = (int(inputs.scalars["nx"]), int(inputs.scalars["ny"]), int(inputs.scalars["nz"]))
    atoms, spacing = inputs.arrays["atoms"], float(inputs.scalars["spacing"])
    evaluations = float(np.prod(counts)) * len(atoms)
    expected = module_of(FAMILY).exact.potential(atoms, counts, spacing)
    rows = []

    def row(name: str, call: Callable[[], Any]) -> None:
        seconds, made = best_seconds(call)
        error = np.linalg.norm(made - expected) / np.linalg.norm(expected)
        rows.append({"what": name, "threads": len(os.sched_getaffinity(0)), "seconds": f"{seconds:.4g}",
                     "evaluations_per_s": f"{evaluations / seconds:.3g}", "norm_of_error": f"{error:.2g}"})  # fmt: skip
        print(rows[-1], flush=True)

    row("numpy", lambda: numpy_map(atoms, counts, spacing))
    if find_spec("numba"):
        whole = numba_map()
        row("numba", lambda: whole(atoms, counts, spacing))
    with CpuBackend() as backend:
        resident = Resident(backend, inputs)
        variants = variants_of(FAMILY, given.configurations, {"precision": "float32"})
        for text, execution in zip(given.configurations, bound(resident, variants), strict=True):

            def call(run: Any = execution) -> Any:
                run.run()
                return run.restore("potential", (counts[2], counts[1], counts[0]))

            row(text, call)
        resident.close()
    write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
