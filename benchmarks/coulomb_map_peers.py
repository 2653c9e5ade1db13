"""A map, compared with fast multipole methods (jaxFMM, jzfmm) and a particle mesh (cuFFT by CuPy) at equal error.

    python benchmarks/coulomb_map_peers.py --out benchmarks/results/coulomb_map-h200-peers.csv

Every program gets the same atoms, and makes the map at every point of the lattice (``--strides 1``), or at every second
or fourth point of it along each axis, where its memory or the time takes no more. Errors are those at ``--points``
points of the lattice, against float64 sums: the largest, as a share of the sum of |q| / r there, and the root of the
mean square, as a share of V's. Each other program runs through a list of its own orders, coarse to fine; ``settings``
is what it ran with. Ours runs each ``--configuration`` with the accuracy that it begins with, the first on every
lattice and the others on the finest; ``bound_of_sum`` is the largest bound of a point, as a share of the sum there.
``reaches`` says whether a program's largest error is at most that of the first (``ours``), or at most the workload's
accuracy (``accuracy``). The table printed last has, for each result of another program, the fastest of ours with no
larger error.

A call of ours and of the mesh begins with unsorted atoms. The multipole methods keep their trees: what they make before
the first call is ``setup_s``, their compilers' time with it. jzfmm has no points without a charge's place: points are
atoms of charge 0 to it. jaxFMM has its own float64; ours and the mesh store float32. Times are medians of ``--rounds``
calls by device events (ours, mesh) or until the array is ready (JAX).

Each other program has a process of its own, ended after ``--seconds``; its rows are kept until then in a file next to
``--out``. What is not installed, or fails, is reported and left out. Ours at looser accuracies, compared with four
meshes, takes less than a minute:

    python benchmarks/coulomb_map_peers.py --strides 1 --peers mesh --rounds 7 --out equal-errors.csv \\
        --meshes float32:1.5:1e-5 float32:1.5:1e-6 float32:1.5:1e-7 float64:1.5:1e-8
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from math import ceil, log, pi, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from coulomb_map import FAMILY, Opened, by_torch, compile_all, shape_of
from harness import arguments, check, inputs_of, module_of, python_path
from numpy.typing import NDArray
from result_files import read_rows, write_rows

from autotune.declaration import Inputs, bind
from autotune.device import Backend, open_backend

OURS = (  # the accuracy that is asked for, and what keeps it without going back to single atoms
    "accuracy=1e-6,cell=12,order=14,separation=24,tile=256,expand_blocks=2,point_blocks=3",
    "accuracy=5e-4,cell=12,order=12,separation=18,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=2e-3,cell=12,order=12,separation=16,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=1e-4,cell=12,order=12,separation=20,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=3e-6,cell=12,order=14,separation=22,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=1e-6,cell=12,order=14,separation=24,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=1e-3,cell=12,order=14,separation=16,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=2e-3,cell=12,order=12,separation=16,tile=128,expand_blocks=3,point_blocks=4",
    "accuracy=2e-3,cell=12,order=8,separation=20,tile=128,expand_blocks=3,point_blocks=4",
    "accuracy=2e-3,cell=12,order=10,separation=18,tile=128,expand_blocks=3,point_blocks=4",
    "accuracy=1e-4,cell=12,order=14,separation=18,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=2e-5,cell=12,order=14,separation=20,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=2e-3,cell=8,order=12,separation=16,tile=256,expand_blocks=2,point_blocks=4",
    "accuracy=2e-3,cell=16,order=12,separation=16,tile=256,expand_blocks=2,point_blocks=2",
)
LONGEST = 1000  # milliseconds of a call of ours that is repeated: one that sums single atoms takes more
COLUMNS = ("program", "version", "settings", "atoms", "points", "setup_s", "ms", "points_per_s", "error_of_sum",
           "rms_of_rms", "reaches", "accuracy", "bound_of_sum", "device", "problem")  # fmt: skip
ORDERS = ((8, 0.55), (10, 0.4))  # of jaxFMM: its own ladder's (p, theta)
OPENINGS = ((7, 0.5), (7, 0.3))  # of jzfmm, which has orders to 7
MESHES = (  # the type of its numbers, its edge in lattice spacings, and what each of its parts leaves out
    "float32:2:1e-4", "float32:1.5:1e-4", "float32:1.5:1e-5", "float32:2:1e-5", "float32:1.5:1e-6", "float64:1.5:1e-6",
    "float32:1.25:1e-6", "float64:1.25:1e-6", "float32:1.5:1e-7", "float64:1.5:1e-7", "float32:1.5:1e-8",
    "float64:1.5:1e-8",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Atoms, the lattice, and what V and the sum of |q| / r are at some of its points (x, y, z)."""

    atoms: NDArray[np.float32]  # (atoms, 4): x, y, z, q
    shape: tuple[int, int, int]  # slices, rows, columns
    spacing: float
    chosen: NDArray[np.int64]  # (points, 3): slice, row, column
    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    ours: float  # our largest error, as a share of the sum of |q| / r
    accuracy: float

    def every(self, stride: int) -> tuple[tuple[int, int, int], float, NDArray[np.int64]]:
        """The shape, the spacing and the chosen points of a lattice with every ``stride``th point."""
        nz, ny, nx = (-(-count // stride) for count in self.shape)
        return (nz, ny, nx), self.spacing * stride, self.chosen // stride

    def row(
        self, program: str, settings: str, stride: int, setup: float, ms: float, made: Any
    ) -> dict[str, Any]:
        """``made`` is what the program has at the chosen points."""
        points = int(np.prod(self.every(stride)[0]))
        error = np.asarray(made, np.float64) - self.values
        largest = float((np.abs(error) / self.sizes).max())
        reached = "ours" if largest <= self.ours else "accuracy" if largest <= self.accuracy else "neither"
        return {
            "program": program, "settings": settings, "atoms": len(self.atoms), "points": points,
            "setup_s": f"{setup:.3g}", "ms": f"{ms:.4g}", "points_per_s": f"{points / ms * 1e3:.4g}",
            "error_of_sum": f"{largest:.3g}", "reaches": reached,
            "rms_of_rms": f"{sqrt((error**2).mean() / (self.values**2).mean()):.3g}",
        }  # fmt: skip


Rows = Iterator[dict[str, Any]]


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "coulomb-map-peers.csv")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", default="million")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--configuration", nargs="+", default=OURS, help="accuracy=A,policy=value,...")
    parser.add_argument("--strides", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40, help="of each other program")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--meshes", nargs="+", default=list(MESHES), metavar="TYPE:EDGE:SHARE")
    parser.add_argument("--problem", type=Path, help="of a process of this script's own")
    given = parser.parse_args(words)
    if given.problem:
        return alone(given)
    inputs = inputs_of(FAMILY, given.workload, given.data)
    needs = [NEEDS[name] for name in given.peers]
    if given.check:
        configurations = [asked(text, 0)[1] for text in given.configuration]
        return check(FAMILY, [inputs], configurations, device=given.device, peers=["torch", *needs])
    rows: list[dict[str, Any]] = []
    problem = made_problem(inputs, given.strides, given.points, given.device)
    problem = ours(problem, inputs, given, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, **vars(problem))
        for name in given.peers:
            rows += by_itself(name, path, given)
            write_rows(given.out, rows, COLUMNS)
    show(rows)
    return 0


def made_problem(inputs: Inputs, strides: Sequence[int], points: int, device: str) -> Problem:
    """Points that all the lattices have, drawn, and the exact sums there."""
    shape, step = shape_of(inputs), max(strides)
    within = [(count - 1) // step + 1 for count in shape]
    chosen = step * np.random.default_rng(1).integers(0, within, (points, 3))
    atoms, spacing = inputs.arrays["atoms"], float(np.float32(inputs.scalars["spacing"]))
    sums = by_torch if device == "cuda" else module_of(FAMILY).exact.potential_at
    values, sizes = sums(atoms, chosen, spacing)
    columns = np.stack([atoms[name] for name in "xyzq"], axis=1).astype(np.float32)
    return Problem(columns, (shape[0], shape[1], shape[2]), spacing, chosen, values, sizes, 0.0,
                   float(inputs.scalars["accuracy"]))  # fmt: skip


# ---- ours


def asked(text: str, usual: float) -> tuple[float, str]:
    """The accuracy that ``text`` begins with, else the usual one; and the configuration, by expansions unless it says
    otherwise."""
    first, _, rest = text.partition(",")
    name, _, value = first.partition("=")
    if name != "accuracy":
        return usual, text
    return float(value), rest if "method=" in rest else f"method=expansions,{rest}"


def ours(problem: Problem, inputs: Inputs, given: Any, rows: list[dict[str, Any]]) -> Problem:
    """Adds a row for the first configuration on each lattice, and for the others on the finest. Returns the problem
    with the first one's largest error on any of them."""
    backend = open_backend(given.device)
    texts = [asked(text, problem.accuracy) for text in given.configuration]
    compile_all(backend, [configuration for _, configuration in texts], ("largest",))
    with backend.current():
        for number, (accuracy, configuration) in enumerate(texts):
            for stride in given.strides if number == 0 else [min(given.strides)]:
                made = our_row(backend, problem, inputs, stride, accuracy, configuration, given.rounds)
                if number == 0:
                    problem = replace(problem, ours=max(problem.ours, float(made["error_of_sum"])))
                rows.append({**made, "reaches": "ours"} if number == 0 else made)
                print(rows[-1], flush=True)
                write_rows(given.out, rows, COLUMNS)
    backend.close()
    return problem


def our_row(  # what a call takes on every ``stride``th point, and its errors
    backend: Backend,
    problem: Problem,
    inputs: Inputs,
    stride: int,
    accuracy: float,
    configuration: str,
    rounds: int,
) -> dict[str, Any]:
    shape, spacing, chosen = problem.every(stride)
    nz, ny, nx = shape
    scalars = {"nx": nx, "ny": ny, "nz": nz, "spacing": spacing, "accuracy": accuracy}
    lattice = bind(
        FAMILY, {**inputs.arrays, **scalars, "least": inputs.scalars["least"]}, {"bounds": "largest"}, {}
    )
    with Opened(backend, lattice, configuration) as execution:
        (first,) = backend.sample(execution.run, 1, cold=False)
        ms = first if first > LONGEST else median(backend.sample(execution.run, rounds, cold=False))
        made = execution.restore("potential", shape)[tuple(chosen.T)]
        share = float(execution.restore("share", (1,))[0])
    row = problem.row("autotune", configuration, stride, 0, ms, made)
    row |= {"accuracy": f"{accuracy:g}", "bound_of_sum": f"{share * accuracy:.3g}"}
    return {**row, "device": backend.device.name}


# ---- the others, each in a process of its own


def by_itself(name: str, problem: Path, given: Any) -> list[dict[str, Any]]:
    """A program's rows, all that it had until its time was over; one that says why it has none."""
    if find_spec(NEEDS[name]) is None:
        print(f"{name}: {NEEDS[name]} is not installed")
        return []
    kept = given.out.with_name(f"{given.out.stem}-{name}.csv")
    kept.unlink(missing_ok=True)
    command = [
        sys.executable, __file__, "--peers", name, "--problem", str(problem), "--out", str(kept),
        "--rounds", str(given.rounds), "--strides", *map(str, given.strides), "--meshes", *given.meshes,
    ]  # fmt: skip
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    try:
        status = subprocess.run(command, env=environment, timeout=given.seconds, check=False).returncode
        ended = f"exit status {status}" if status else ""
    except subprocess.TimeoutExpired:
        ended = f"ended after {given.seconds:g} s"
    rows: list[dict[str, Any]] = [*read_rows(kept)] if kept.exists() else []
    kept.unlink(missing_ok=True)
    return [*rows, {"program": name, "problem": ended}] if ended else rows


def alone(given: Any) -> int:
    """What such a process does: the rows of one program, written after each."""
    with np.load(given.problem) as file:
        whole = {name: file[name] for name in file.files}
    shape = tuple(int(count) for count in whole["shape"])
    numbers = {name: float(whole[name]) for name in ("spacing", "ours", "accuracy")}
    problem = Problem(**{**whole, "shape": shape, **numbers})
    (name,) = given.peers
    rows: list[dict[str, Any]] = []
    run = partial(mesh, names=given.meshes) if name == "mesh" else PEERS[name]
    for row in run(problem, given.strides, given.rounds):
        rows.append({"version": versions(name), **row})
        print(rows[-1], flush=True)
        write_rows(given.out, rows, COLUMNS)
    return 0


def versions(name: str) -> str:
    """Of a program, and of what it runs on."""
    if name == "mesh":
        cupy = import_module("cupy")
        return f"cupy {cupy.__version__}, cuFFT {cupy.cuda.cufft.getVersion()}"
    return f"{name} {version(name)}, jax {version('jax')}"


def tried(program: str, settings: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A row, or one with what went wrong: memory, mostly."""
    try:
        return run()
    except Exception as problem:  # noqa: BLE001  # whatever the program raises
        text = " ".join(f"{type(problem).__name__}: {problem}".split())
        return {"program": program, "settings": settings, "problem": text[:300]}


def timed(call: Callable[[], Any], rounds: int) -> float:
    """The median of some calls in milliseconds, by the host's clock; ``call`` waits for the device."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return median(times)


def lattice_points(shape: tuple[int, int, int], spacing: float, dtype: Any) -> Any:
    """(points, 3), x the fastest, on JAX's device."""
    jnp = import_module("jax.numpy")
    z, y, x = (spacing * jnp.arange(count, dtype=dtype) for count in shape)
    grid = jnp.meshgrid(z, y, x, indexing="ij")
    return jnp.stack([grid[2].ravel(), grid[1].ravel(), grid[0].ravel()], axis=1)


def flat(chosen: NDArray[np.int64], shape: tuple[int, int, int]) -> NDArray[np.int64]:
    index: NDArray[np.int64] = np.ravel_multi_index(tuple(chosen.T), shape)
    return index


def jaxfmm(problem: Problem, strides: Sequence[int], rounds: int) -> Rows:
    """Its tree of any shape, which alone has points apart from charges, in float64, all near pairs too. The coarsest
    lattice has every order; finer ones the first that is as exact as ours there, or the last."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jnp, trees, flex = jax.numpy, import_module("jaxfmm.trees"), import_module("jaxfmm.flex")
    places = jnp.asarray(problem.atoms[:, :3], jnp.float64)
    charges = jnp.asarray(problem.atoms[:, 3], jnp.float64)

    def run(order: int, theta: float, stride: int, settings: str) -> dict[str, Any]:
        shape, spacing, chosen = problem.every(stride)
        begin = time.perf_counter()
        points = lattice_points(shape, spacing, jnp.float64)
        kept = trees.gen_hierarchy(places, eval_pts=points, p=order, theta=theta, N_max=128)
        evaluate = flex.compile_point_evaluator(kept, p2p_mixed=False)
        made = jax.block_until_ready(evaluate(charges))
        setup = time.perf_counter() - begin
        ms = timed(lambda: jax.block_until_ready(evaluate(charges)), rounds)
        some = np.asarray(made[jnp.asarray(flat(chosen, shape))]) * (4 * pi)
        return problem.row("jaxfmm", settings, stride, setup, ms, some)

    yield from through(strides, ORDERS, "jaxfmm", run)


def jzfmm(problem: Problem, strides: Sequence[int], rounds: int) -> Rows:
    """float32; points are atoms of charge 0. A call sorts them and makes the tree, as ours does."""
    jax = import_module("jax")
    jnp, package, data = jax.numpy, import_module("jzfmm"), import_module("jztree.data")

    def run(order: int, theta: float, stride: int, settings: str) -> dict[str, Any]:
        shape, spacing, chosen = problem.every(stride)
        points = lattice_points(shape, spacing, jnp.float32)
        places = jnp.concatenate([jnp.asarray(problem.atoms[:, :3]), points])
        charges = jnp.concatenate([jnp.asarray(problem.atoms[:, 3]), jnp.zeros(len(points), jnp.float32)])
        configuration = package.FMMConfig(
            p=order, kernel=package.PlummerKernel(softening=1e-4), opening=package.OpeningByAngle(theta=theta),
            alloc_fac_ilist=50 / theta**3,  # about those within 2 / theta of a node, and half as many again
        )  # fmt: skip
        call = jax.jit(lambda part: package.fmm.fast_multipole_method(part, configuration).potential())
        part = data.PosMass(pos=places, mass=charges)
        begin = time.perf_counter()
        made = jax.block_until_ready(call(part))
        setup = time.perf_counter() - begin
        ms = timed(lambda: jax.block_until_ready(call(part)), rounds)
        some = -np.asarray(made[jnp.asarray(len(problem.atoms) + flat(chosen, shape))])  # it has -1 / r
        return problem.row("jzfmm", settings, stride, setup, ms, some)

    yield from through(strides, OPENINGS, "jzfmm", run)


def through(
    strides: Sequence[int],
    orders: Sequence[tuple[int, float]],
    program: str,
    run: Callable[[int, float, int, str], dict[str, Any]],
) -> Rows:
    """Every order on the coarsest lattice until one is as exact as ours, and that one on the finer ones until memory
    ends it."""
    coarse, *finer = sorted(strides, reverse=True)
    best = orders[-1]
    for order, theta in orders:
        settings = f"p={order} theta={theta:g}"
        row = tried(program, settings, lambda o=order, t=theta, s=settings: run(o, t, coarse, s))  # type: ignore[misc]
        yield row
        if row.get("reaches") == "ours":
            best = order, theta
            break
    settings = f"p={best[0]} theta={best[1]:g}"
    for stride in finer:
        row = tried(program, settings, lambda s=stride: run(*best, s, settings))  # type: ignore[misc]
        yield row
        if "problem" in row:
            return


# ---- the mesh

_MESH = r"""
template <class Real>
__device__ void spread_one(const float4* atoms, Real* mesh, int count, int width, int edge, Real step, Real sigma,
                           Real x0, Real y0, Real z0) {
  const long long id = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= (long long)count * width * width) return;
  const int n = int(id / (width * width)), rest = int(id % (width * width)), dx = rest % width, dy = rest / width;
  const float4 atom = atoms[n];
  const Real px = (Real(atom.x) - x0) / step, py = (Real(atom.y) - y0) / step, pz = (Real(atom.z) - z0) / step;
  const int first = 1 - width / 2;  // the nodes around the atom: width of them, as many on each side
  const int ix = int(floor(px)) + first + dx, iy = int(floor(py)) + first + dy, iz = int(floor(pz)) + first;
  const Real in_width = step / sigma, half = Real(-0.5);
  const Real ax = (ix - px) * in_width, ay = (iy - py) * in_width;
  const Real norm = Real(0.39894228040143267794) / sigma;
  const Real plane = Real(atom.w) * norm * norm * norm * exp(half * (ax * ax + ay * ay));
  for (int k = 0; k < width; ++k) {
    const Real az = (iz + k - pz) * in_width;
    atomicAdd(&mesh[((long long)(iz + k) * edge + iy) * edge + ix], plane * exp(half * az * az));
  }
}

extern "C" __global__ void spread_float(const float4* atoms, float* mesh, int count, int width, int edge, float step,
                                        float sigma, float x0, float y0, float z0) {
  spread_one<float>(atoms, mesh, count, width, edge, step, sigma, x0, y0, z0);
}

extern "C" __global__ void spread_double(const float4* atoms, double* mesh, int count, int width, int edge,
                                         double step, double sigma, double x0, double y0, double z0) {
  spread_one<double>(atoms, mesh, count, width, edge, step, sigma, x0, y0, z0);
}

// A warp has 8 x 4 columns of 8 points. Atoms are sorted by cells, x the fastest; of each row of cells those that some
// point of the warp can reach are read. 1 / r less the mesh's part of it, a polynomial in r * r.
extern "C" __global__ void __launch_bounds__(128)
    sum_near(const float4* atoms, const int* starts, float* map, int nx, int ny, int nz, float spacing, float reach,
             float cell, int cx, int cy, int cz, float x0, float y0, float z0) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tile_x = blockIdx.x * 8, tile_y = (blockIdx.y * 4 + warp) * 4, tile_z = blockIdx.z * 8;
  if (tile_y >= ny) return;
  const int i = tile_x + lane % 8, j = tile_y + lane / 8;
  const float x = spacing * i, y = spacing * j, square = reach * reach, scale = 2 / square;
  float sum[8], z[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) sum[k] = 0, z[k] = spacing * (tile_z + k);
  const float left = spacing * tile_x, right = spacing * (tile_x + 7);
  const float low_y = spacing * tile_y, high_y = spacing * (tile_y + 3);
  const float low_z = spacing * tile_z, high_z = spacing * (tile_z + 7);
  const int first_z = max(0, int(floorf((low_z - reach - z0) / cell)));
  const int last_z = min(cz - 1, int(floorf((high_z + reach - z0) / cell)));
  const int first_y = max(0, int(floorf((low_y - reach - y0) / cell)));
  const int last_y = min(cy - 1, int(floorf((high_y + reach - y0) / cell)));
  for (int c = first_z; c <= last_z; ++c) {
    const float away_z = fmaxf(0.f, fmaxf(z0 + cell * c - high_z, low_z - (z0 + cell * (c + 1))));
    for (int b = first_y; b <= last_y; ++b) {
      const float away_y = fmaxf(0.f, fmaxf(y0 + cell * b - high_y, low_y - (y0 + cell * (b + 1))));
      const float rest = square - away_z * away_z - away_y * away_y;
      if (rest <= 0) continue;
      const float half = sqrtf(rest);
      const int from = max(0, int(floorf((left - half - x0) / cell)));
      const int to = min(cx - 1, int(floorf((right + half - x0) / cell)));
      if (from > to) continue;
      const int row = (c * cy + b) * cx, end = starts[row + to + 1];
      for (int n = starts[row + from]; n < end; ++n) {
        const float4 atom = atoms[n];
        const float dx = x - atom.x, dy = y - atom.y, flat = dx * dx + dy * dy;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const float dz = z[k] - atom.z, r2 = flat + dz * dz, t = r2 * scale - 1;
          float far = terms[DEGREE];
#pragma unroll
          for (int d = DEGREE - 1; d >= 0; --d) far = far * t + terms[d];
          const float near = rsqrtf(r2 + 1e-8f) - far;
          sum[k] += r2 < square ? atom.w * near : 0.f;
        }
      }
    }
  }
  if (i >= nx || j >= ny) return;
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (tile_z + k < nz) map[((long long)(tile_z + k) * ny + j) * nx + i] += sum[k];
}
"""


@dataclass(frozen=True)
class Split:
    """How 1 / r is divided: the mesh has erf(r / (s sqrt 2)) / r with s = ``smooth``, single atoms the rest up to
    ``reach``. Charges become Gaussians of ``sigma`` on ``width``**3 nodes, the map is gathered by the same, and the
    convolution has what is left of s. Each part leaves out about ``share`` of its own."""

    step: float  # of the mesh
    share: float

    @property
    def smooth(self) -> float:
        return sqrt(2 * log(1 / self.share)) * self.step / pi

    @property
    def sigma(self) -> float:
        return self.smooth / 2

    @property
    def width(self) -> int:
        return 2 * ceil(sqrt(2 * log(1 / self.share)) * self.sigma / self.step)

    @property
    def reach(self) -> float:
        return sqrt(2 * log(1 / self.share)) * self.smooth

    def terms(self) -> NDArray[np.float64]:
        """The polynomial of erf(r / (s sqrt 2)) / r in 2 (r / reach)**2 - 1; its degree is the least that keeps
        ``share`` of 1 / reach, or float32's."""
        erf = np.vectorize(math.erf)

        def far(t: NDArray[np.float64]) -> NDArray[np.float64]:
            r = self.reach * np.sqrt(np.maximum((t + 1) / 2, 1e-12))
            made: NDArray[np.float64] = erf(r / (self.smooth * sqrt(2))) / r
            return made

        chebyshev, dense = np.polynomial.chebyshev, np.linspace(-1, 1, 2001)
        for degree in range(4, 24):
            fitted = chebyshev.Chebyshev.interpolate(far, degree)
            if np.abs(fitted(dense) - far(dense)).max() <= max(self.share, 1e-7) / self.reach:
                break
        return np.asarray(chebyshev.cheb2poly(fitted.coef))


class Mesh:
    """Arrays and the transformed kernel of one split, for one lattice; in the precision of ``real``."""

    def __init__(self, problem: Problem, split: Split, real: Any) -> None:
        self.cupy, self.fft = import_module("cupy"), import_module("cupyx.scipy.fft")
        self.problem, self.split, self.real = problem, split, np.dtype(real)
        self.atoms = self.cupy.asarray(problem.atoms)
        extent = np.array(problem.shape[::-1]) * problem.spacing
        self.low = np.minimum(problem.atoms[:, :3].min(axis=0), 0).astype(np.float64)
        high = np.maximum(problem.atoms[:, :3].max(axis=0), extent)
        self.corner = self.low - (split.width / 2 + 1) * split.step  # of the mesh
        self.nodes = int(np.ceil((high - self.corner).max() / split.step)) + split.width // 2 + 2
        self.edge = int(self.fft.next_fast_len(2 * self.nodes))
        self.edge += self.edge % 2
        self.cell = split.reach / 2
        self.cells = [int(n) for n in np.floor((high - self.low) / self.cell) + 1]
        terms = split.terms()
        self.degree = len(terms) - 1
        text = ", ".join(f"{term:.9e}f" for term in terms)
        head = f"#define DEGREE {self.degree}\n__constant__ float terms[] = {{{text}}};\n"
        module = self.cupy.RawModule(code=head + _MESH, options=("-std=c++17",))
        self.spread = module.get_function(f"spread_{'float' if self.real == np.float32 else 'double'}")
        self.near = module.get_function("sum_near")

    @cached_property
    def kernel(self) -> Any:
        """Of the convolution, transformed: its Gaussian is what smoothing has beyond spreading and gathering."""
        special, edge, step = import_module("cupyx.scipy.special"), self.edge, self.split.step
        beta = 1 / (sqrt(2) * sqrt(self.split.smooth**2 - 2 * self.split.sigma**2))
        index = self.cupy.arange(edge, dtype=np.float64)
        square = (self.cupy.minimum(index, edge - index) * step) ** 2
        values = self.cupy.empty((edge, edge, edge), self.real)
        plane = square[:, None] + square[None, :]
        for k in range(edge):
            r = self.cupy.sqrt(self.cupy.maximum(plane + square[k], 1e-12))
            values[k] = special.erf(beta * r) / r * step**3
        values[0, 0, 0] = 2 * beta / sqrt(pi) * step**3
        return self.fft.rfftn(values).real.astype(self.real)

    @cached_property
    def gathers(self) -> list[Any]:
        """For z, y, x: (points, nodes), the Gaussians that a point is gathered by."""
        sigma, step = self.split.sigma, self.split.step
        made = []
        for axis, count in zip((2, 1, 0), self.problem.shape, strict=True):
            points = np.arange(count) * self.problem.spacing
            nodes = self.corner[axis] + np.arange(self.nodes) * step
            away = (points[:, None] - nodes[None, :]) / sigma
            weights = np.exp(-(away**2) / 2) * (step / (sqrt(2 * pi) * sigma))
            made.append(self.cupy.asarray(weights, self.real))
        return made

    def map(self) -> Any:
        """From unsorted atoms to (slices, rows, columns) in float32."""
        cupy, split, real, count = self.cupy, self.split, self.real.type, len(self.problem.atoms)
        cx, cy, cz = self.cells
        place = cupy.floor((self.atoms[:, :3] - cupy.asarray(self.low, np.float32)) / np.float32(self.cell))
        cell = cupy.clip(place.astype(np.int32), 0, cupy.asarray(np.array(self.cells) - 1, np.int32))
        number = (cell[:, 2] * cy + cell[:, 1]) * cx + cell[:, 0]
        order = cupy.argsort(number)
        atoms = self.atoms[order]
        starts = cupy.searchsorted(number[order], cupy.arange(cx * cy * cz + 1, dtype=np.int32)).astype(
            np.int32
        )
        mesh = cupy.zeros((self.edge,) * 3, self.real)
        threads = count * split.width**2
        self.spread(
            (-(-threads // 256),), (256,),
            (atoms, mesh, np.int32(count), np.int32(split.width), np.int32(self.edge), real(split.step),
             real(split.sigma), *(real(low) for low in self.corner)),
        )  # fmt: skip
        modes = self.fft.rfftn(mesh, overwrite_x=True)
        modes *= self.kernel
        far = self.fft.irfftn(modes, s=(self.edge,) * 3, overwrite_x=True)
        nodes, (along_z, along_y, along_x) = self.nodes, self.gathers
        slices, rows, columns = self.problem.shape
        made = cupy.ascontiguousarray(far[:nodes, :nodes, :nodes]).reshape(nodes * nodes, nodes)
        made = cupy.matmul(along_y, cupy.matmul(made, along_x.T).reshape(nodes, nodes, columns))
        made = cupy.matmul(along_z, made.reshape(nodes, rows * columns)).reshape(self.problem.shape)
        made = made.astype(np.float32, copy=False)
        self.near(
            (-(-columns // 8), -(-rows // 16), -(-slices // 8)), (128,),
            (atoms, starts, made, np.int32(columns), np.int32(rows), np.int32(slices),
             np.float32(self.problem.spacing), np.float32(split.reach),
             np.float32(self.cell), np.int32(cx), np.int32(cy), np.int32(cz), *(np.float32(low) for low in self.low)),
        )  # fmt: skip
        return made


def mesh(problem: Problem, strides: Sequence[int], rounds: int, names: Sequence[str] = MESHES) -> Rows:
    """A particle mesh without periods (Hockney's doubled domain) by cuFFT on the whole lattice."""
    if 1 not in strides:
        return
    cupy = import_module("cupy")
    chosen = tuple(cupy.asarray(index) for index in problem.chosen.T)

    def run(edge: float, share: float, real: Any, settings: str) -> dict[str, Any]:
        begin = time.perf_counter()
        made = Mesh(problem, Split(edge * problem.spacing, share), real)
        some = cupy.asnumpy(made.map()[chosen])
        setup = time.perf_counter() - begin
        times = []
        for _ in range(rounds):
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            made.map()
            last.record()
            last.synchronize()
            times.append(cupy.cuda.get_elapsed_time(first, last))
        settings += f" nodes={made.edge}^3 reach={made.split.reach:.3g} width={made.split.width}"
        return problem.row("mesh", f"{settings} degree={made.degree}", 1, setup, median(times), some)

    for name in names:
        real, edge, share = name.split(":")
        settings = f"{real} edge={edge} share={float(share):g}"
        yield tried("mesh", settings, partial(run, float(edge), float(share), np.dtype(real), settings))
        cupy.get_default_memory_pool().free_all_blocks()


PEERS: dict[str, Callable[[Problem, Sequence[int], int], Rows]] = {
    "mesh": mesh,
    "jzfmm": jzfmm,
    "jaxfmm": jaxfmm,
}
NEEDS = {"mesh": "cupy", "jzfmm": "jzfmm_cuda", "jaxfmm": "jaxfmm"}  # what each is to Python


def show(rows: Sequence[dict[str, Any]]) -> None:
    """All of ours; for each result of another program the fastest of ours on the same lattice with no larger error."""
    mine = [row for row in rows if row["program"] == "autotune"]
    print("autotune  points       ms        error/S   bound/S   configuration")
    for row in mine:
        shown = [f"{row[column]:9}" for column in ("ms", "error_of_sum", "bound_of_sum")]
        print(f"          {row['points']:<12} {' '.join(shown)} {row['settings']}")
    print("program   points       ms        error/S   ours ms   error/S   accuracy  ratio  settings")
    for row in rows:
        if row["program"] == "autotune" or not row.get("ms"):
            continue
        best = fastest(mine, int(row["points"]), float(row["error_of_sum"]))
        shown = [f"{row[column]:9}" for column in ("ms", "error_of_sum")]
        if best:
            shown += [f"{best[column]:9}" for column in ("ms", "error_of_sum", "accuracy")]
            shown.append(f"{float(row['ms']) / float(best['ms']):<6.3g}")
        print(f"{row['program']:9} {row['points']:<12} {' '.join(shown)} {row['settings']}")


def fastest(rows: Sequence[dict[str, Any]], points: int, error: float) -> dict[str, Any] | None:
    """Of those on so large a lattice, with at most that error."""
    found = [row for row in rows if int(row["points"]) == points and float(row["error_of_sum"]) <= error]
    return min(found, key=lambda row: float(row["ms"]), default=None)


if __name__ == "__main__":
    sys.exit(main())
