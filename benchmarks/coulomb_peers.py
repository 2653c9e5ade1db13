"""This project's potential and how people write it on a GPU, in one run: PyTorch (eager, and compiled), a Triton
kernel, a CUDA C++ kernel by cupy, KeOps. Each map is compared with float64 sums at random points.

    python benchmarks/coulomb_peers.py --data DATA --policies policies --out benchmarks/results/coulomb-h200-peers.csv

Needs a CUDA device, PyCUDA and torch; what else is not installed is said and left out. Atoms and points are on the
device for all, sums are float32; caches are flushed before each call, rounds are interleaved, the median and its 95 %
interval are kept. torch and KeOps take the map a slice at a time: eager torch has every distance of a slice in memory.
``--device cpu`` leaves the peers out, and shows that the script works.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, check, inputs_of, module_of
from result_files import write_rows

from autotune.declaration import Inputs, load_family
from autotune.dispatch import load
from autotune.measure import spread

FAMILY = load_family("coulomb")
_SOFTENING = 1e-8
_POINTS = 2000
Plan = Callable[[], Any]  # makes the map, a tensor of (slices, rows, columns)

_KERNEL = """
extern "C" __global__ void potential(const float4* atoms, float* map, float step, int nx, int ny, int nz, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
  if (i >= nx) return;
  float sum = 0;
  for (int a = 0; a < count; ++a) {
    const float4 atom = atoms[a];
    const float dx = step * i - atom.x, dy = step * j - atom.y, dz = step * k - atom.z;
    sum += atom.w * rsqrtf(dx * dx + dy * dy + dz * dz + 1e-8f);
  }
  map[(k * ny + j) * nx + i] = sum;
}
"""

_TRITON = """
import triton
import triton.language as tl


@triton.jit
def potential(atoms, made, step, nx, ny, count, points: tl.constexpr, at_once: tl.constexpr):
    point = tl.program_id(0) * points + tl.arange(0, points)
    k = tl.program_id(1)
    x = (point % nx).to(tl.float32) * step
    y = (point // nx).to(tl.float32) * step
    z = k.to(tl.float32) * step
    total = tl.zeros((points,), tl.float32)
    for first in range(0, count, at_once):
        for n in tl.static_range(at_once):
            there = first + n < count
            atom = atoms + 4 * (first + n)
            dx = x - tl.load(atom, mask=there, other=0.0)
            dy = y - tl.load(atom + 1, mask=there, other=0.0)
            dz = z - tl.load(atom + 2, mask=there, other=0.0)
            q = tl.load(atom + 3, mask=there, other=0.0)
            total += q * tl.rsqrt(dx * dx + dy * dy + dz * dz + 1e-8)
    tl.store(made + k * nx * ny + point, total, mask=point < nx * ny)
"""


class Problem:
    """Some inputs on the device, as tensors."""

    def __init__(self, inputs: Inputs) -> None:
        self.torch = import_module("torch")
        self.shape = tuple(inputs.sizes[name] for name in ("slice", "row", "column"))
        self.step = float(inputs.scalars["spacing"])
        atoms = np.stack([inputs.arrays["atoms"][name] for name in "xyzq"], axis=1)
        self.atoms = self.torch.from_numpy(atoms).cuda()
        self.map = self.torch.empty(self.shape, device="cuda")
        rows, columns = np.indices(self.shape[1:], np.float32).reshape(2, -1) * np.float32(self.step)
        self.plane = self.torch.from_numpy(
            np.stack([columns, rows], axis=1)
        ).cuda()  # x, y of a slice's points

    def by_slices(self, potential: Callable[[Any, Any, float], Any]) -> Plan:
        """``potential(atoms, plane, z)`` for each slice, (points,)."""

        def plan() -> Any:
            for k in range(self.shape[0]):
                self.map[k] = potential(self.atoms, self.plane, self.step * k).view(self.shape[1:])
            return self.map

        return plan


def _sums(atoms: Any, plane: Any, z: float) -> Any:
    x, y, at, q = atoms.unbind(1)
    squared = (plane[:, :1] - x) ** 2 + (plane[:, 1:] - y) ** 2 + ((z - at) ** 2 + _SOFTENING)
    return (q * squared.rsqrt()).sum(1)


def by_torch(problem: Problem) -> Plan:
    return problem.by_slices(_sums)


def by_torch_compile(problem: Problem) -> Plan:
    torch = problem.torch
    compiled = torch.compile(_sums, dynamic=False)
    return problem.by_slices(lambda atoms, plane, z: compiled(atoms, plane, torch.tensor(z, device="cuda")))


def by_triton(problem: Problem) -> Plan:
    folder = Path(tempfile.mkdtemp())  # Triton reads a kernel's text from its file
    (folder / "coulomb_by_triton.py").write_text(_TRITON, encoding="utf-8")
    sys.path.insert(0, str(folder))
    kernel = import_module("coulomb_by_triton").potential
    nz, ny, nx = problem.shape
    count = len(problem.atoms)

    def plan() -> Any:
        grid = (-(-nx * ny // 256), nz)
        kernel[grid](
            problem.atoms, problem.map, problem.step, nx, ny, count, points=256, at_once=4, num_warps=4
        )
        return problem.map

    return plan


def by_cupy(problem: Problem) -> Plan:
    cupy = import_module("cupy")
    kernel = cupy.RawKernel(_KERNEL, "potential", ("--use_fast_math",))
    atoms, made = cupy.from_dlpack(problem.atoms), cupy.from_dlpack(problem.map)
    nz, ny, nx = problem.shape
    sizes = (np.float32(problem.step), *map(np.int32, (nx, ny, nz, len(problem.atoms))))

    def plan() -> Any:
        kernel((-(-nx // 64), ny, nz), (64,), (atoms, made, *sizes))
        return problem.map

    return plan


def by_keops(problem: Problem) -> Plan:
    lazy = import_module("pykeops.torch").LazyTensor
    torch = problem.torch
    where, charges = (problem.atoms[:, part].contiguous() for part in (slice(0, 3), slice(3, 4)))
    atoms, charges = lazy(where[None]), lazy(charges[None])

    def potential(_atoms: Any, plane: Any, z: float) -> Any:
        points = torch.cat((plane, torch.full_like(plane[:, :1], z)), 1)
        squared = ((lazy(points[:, None].contiguous()) - atoms) ** 2).sum(-1) + _SOFTENING
        return (charges * squared.rsqrt()).sum(1)

    return problem.by_slices(potential)


PEERS: dict[str, tuple[str, Callable[[Problem], Plan]]] = {  # what it needs, and how
    "torch": ("torch", by_torch),
    "torch.compile": ("torch", by_torch_compile),
    "Triton": ("triton", by_triton),
    "cupy": ("cupy", by_cupy),
    "KeOps": ("pykeops", by_keops),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-peers.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="mache-half")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    given = parser.parse_args(words)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    if given.check:
        needs = sorted({PEERS[name][0] for name in given.peers})
        return check(FAMILY, [inputs], [FAMILY.space.control], peers=needs, device=given.device)
    with load("coulomb", given.device, given.policies) as kernel:
        write_rows(given.out, compared(kernel.prepare(inputs), inputs, given.peers, given.rounds))
    return 0


def compared(prepared: Any, inputs: Inputs, peers: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """A row for each way to make the map."""
    backend = prepared.execution.backend  # timed with the tuner's own sampling
    shape = tuple(inputs.sizes[name] for name in ("slice", "row", "column"))
    points = np.random.default_rng(0).integers(0, shape, (_POINTS, 3))
    exact = module_of(FAMILY).exact.potential_at(inputs.arrays["atoms"], points, inputs.scalars["spacing"])
    with backend.current():
        prepared.execution.run()
        ours = prepared.execution.restore("potential", shape)[tuple(points.T)]
        plans: dict[str, Plan] = {"autotune": prepared.execution.run}
        backward = {"autotune": _backward(ours, exact)}
        for name in peers if backend.device.kind == "cuda" else ():
            if made := _made(name, inputs):
                plans[name], backward[name] = made[0], _backward(made[1][tuple(points.T)], exact)
                print(f"{name}: ready", flush=True)
        times: dict[str, list[float]] = {name: [] for name in plans}
        for _ in range(rounds):
            for name, plan in plans.items():
                times[name] += backend.sample(plan, 1, True)
    evaluations = float(np.prod(shape)) * inputs.sizes["atom"]
    mine = median(times["autotune"])
    rows = [
        {
            "what": name, "ms": f"{median(taken):.4g}", "spread": f"{spread(taken):.4f}", "samples": len(taken),
            "evaluations_per_s": f"{evaluations / median(taken) * 1e3:.4g}",
            "times_ours": f"{median(taken) / mine:.2f}", "backward_error": f"{backward[name]:.2g}",
        }
        for name, taken in times.items()
    ]  # fmt: skip
    for row in rows:
        print(row)
    print(prepared.variant.configuration.id)
    prepared.close()
    return rows


def _backward(made: Any, exact: tuple[Any, Any]) -> float:
    """The largest |error| / sum of |q| / r."""
    return float((np.abs(made - exact[0]) / exact[1]).max())


def _made(name: str, inputs: Inputs) -> tuple[Plan, Any] | None:
    """A peer's plan and its map; None where it is not here, or fails: that is said."""
    needs, peer = PEERS[name]
    if find_spec(needs) is None:
        print(f"{name}: {needs} is not installed")
        return None
    try:
        plan = peer(Problem(inputs))
        return plan, plan().cpu().numpy().copy()
    except Exception as problem:  # noqa: BLE001  # whatever a peer's own compiler says
        print(f"{name}: {type(problem).__name__}: {problem}")
        return None


if __name__ == "__main__":
    sys.exit(main())
