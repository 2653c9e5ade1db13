"""The study's fourth version as published, and what a tuner makes of it: evaluations a second.

    python benchmarks/coulomb_published.py --data DATA --workload mache-half --out published.csv

Needs a CUDA device and PyCUDA. The kernel is coulomb_published.cu, compiled with --use_fast_math as VMD does. It runs
as in the study (a slice and 4,000 atoms a launch, atoms copied from the host for each) and, to show the inner loop by
itself, on one padded plane of 4,096 x 4,096 points with 4,000 atoms. Times are by events, medians. ``--check`` also
compiles the kernel, for sm_90.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, check, inputs_of
from result_files import write_rows

from autotune.compile import Batch, Built, Nvrtc, VariantSource
from autotune.declaration import Inputs, load_family
from autotune.device.cuda.backend import CudaBackend

FAMILY = load_family("coulomb")
_SOURCE = Path(__file__).with_suffix(".cu")
_ATOMS = 4000
_SHAPES = ((8, 8), (16, 8), (16, 16))


def compiled(arch: str) -> Built:
    variant = VariantSource("published", "Shape", "struct Shape {};\n", ("published",))
    return Nvrtc(arch).build(Batch(_SOURCE, (), (variant,), ("--use_fast_math",)))


class Published:
    """The kernel on one device."""

    def __init__(self, backend: CudaBackend) -> None:
        from pycuda import driver

        self.driver = driver
        built = compiled(backend.device.arch)
        self._module = driver.module_from_buffer(built.image)
        self._kernel = self._module.get_function(built.symbols["published"]["published"])
        self._atominfo = self._module.get_global("atominfo")[0]

    def upload(self, atoms: np.ndarray[Any, Any]) -> None:
        self.driver.memcpy_htod(self._atominfo, atoms)

    def launch(
        self, grid: int, atoms: int, spacing: float, blocks: tuple[int, int], shape: tuple[int, int]
    ) -> None:
        width = np.uint32(blocks[0] * shape[0] * 8)
        self._kernel(
            np.uintp(grid), np.int32(atoms), np.float32(spacing), width, block=(*shape, 1), grid=(*blocks, 1)
        )

    def seconds(self, plan: Any, count: int = 7) -> float:
        times: list[float] = []
        for _ in range(count):
            begin, end = self.driver.Event(), self.driver.Event()
            begin.record()
            plan()
            end.record()
            end.synchronize()
            times.append(begin.time_till(end) / 1e3)
        return median(times)


def plane(published: Published, shape: tuple[int, int], side: int = 4096) -> float:
    """Evaluations a second of the inner loop alone."""
    generator = np.random.default_rng(0)
    atoms = generator.uniform(0, 400, (_ATOMS, 4)).astype(np.float32)
    published.upload(atoms)
    memory = published.driver.mem_alloc(side * side * 4)
    blocks = (side // (shape[0] * 8), side // shape[1])

    def plan() -> None:
        published.launch(int(memory), _ATOMS, 0.1, blocks, shape)

    plan()
    seconds = published.seconds(plan)
    memory.free()
    return side * side * _ATOMS / seconds


def whole_map(
    published: Published, inputs: Inputs, shape: tuple[int, int]
) -> tuple[float, np.ndarray[Any, Any]]:
    """Evaluations a second, and the map."""
    nx, ny, nz = (int(inputs.scalars[name]) for name in ("nx", "ny", "nz"))
    atoms, spacing = inputs.arrays["atoms"], float(inputs.scalars["spacing"])
    blocks = (-(-nx // (shape[0] * 8)), -(-ny // shape[1]))
    width, height = blocks[0] * shape[0] * 8, blocks[1] * shape[1]
    plain = np.stack([atoms[name] for name in "xyzq"], axis=1)
    memory = published.driver.mem_alloc(width * height * nz * 4)

    def plan() -> None:
        published.driver.memset_d8(memory, 0, width * height * nz * 4)
        for k in range(nz):
            sliced = plain.copy()
            sliced[:, 2] = (np.float32(spacing * k) - sliced[:, 2]) ** 2
            for first in range(0, len(atoms), _ATOMS):
                part = sliced[first : first + _ATOMS]
                published.upload(part)
                published.launch(int(memory) + k * width * height * 4, len(part), spacing, blocks, shape)

    plan()
    seconds = published.seconds(plan, 3)
    made = np.empty((nz, height, width), np.float32)
    published.driver.memcpy_dtoh(made, memory)
    memory.free()
    return nx * ny * nz * len(atoms) / seconds, made[:, :ny, :nx]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-published.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="mache-half")
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        print(f"{_SOURCE.name}: {compiled('sm_90').figures['published']['published']}")
        return check(FAMILY, [inputs], ())
    rows = []
    with CudaBackend() as backend, backend.current():
        published = Published(backend)
        for shape in _SHAPES:
            inner = plane(published, shape)
            rate, _ = whole_map(published, inputs, shape)
            rows.append({"block": f"{shape[0]}x{shape[1]}", "plane_evaluations_per_s": f"{inner:.4g}",
                         "map_evaluations_per_s": f"{rate:.4g}"})  # fmt: skip
            print(rows[-1], flush=True)
    write_rows(given.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
