"""Kernels of CuPy and Numba, as they are, whose inputs' layout matters: the layout found, its gain and its cost.

    python benchmarks/callables_layouts.py [--device cuda] [--scale 1] [--kernels points,...] [--out FILE]

Each kernel is tuned over the layouts of its arrays alone: the order of axes, padding, fields together or apart, the
order of rows with their links. ``gain`` is the time with the arrays as they were given over the winner's,
``transform_ms`` what storing the winner's layout costs the host once, ``break_even`` from how many calls on it pays. On
the cpu the same functions work on numpy's arrays.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from harness import arguments, is_there
from result_files import RESULTS, read_frame, write_rows

import autotune
from autotune.callables import Layouts
from autotune.errors import AutotuneError

POINTS = """
extern "C" __global__ void lengths(const float* p, float* out, long long n, long long s0, long long s1) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float total = 0;
  for (int k = 0; k < 2; ++k) { float c = p[i * s0 + k * s1]; total += c * c; }
  out[i] = sqrtf(total);
}"""
COLUMNS = """
extern "C" __global__ void columns(const float* m, float* out, long long rows, long long n, long long s0,
                                   long long s1) {
  long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (j >= rows) return;
  float total = 0;
  for (long long i = 0; i < n; ++i) total += m[j * s0 + i * s1];
  out[j] = total;
}"""
FIELDS = """
extern "C" __global__ void pick(const int* at, const float* x, const float* y, const float* z, float* out,
                                long long n, long long s) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long k = (long long)at[i] * s;
  out[i] = x[k] + y[k] * z[k];
}"""
STENCIL = """
extern "C" __global__ void differences(const float* a, float* out, long long n0, long long n1, long long n2,
                                       long long s0, long long s1, long long s2) {
  long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x, j = place / n2, k = place % n2;
  if (j >= n1) return;
  const float* at = a + j * s1 + k * s2;
  for (long long i = 1; i < n0 - 1; ++i)
    out[(i * n1 + j) * n2 + k] = at[(i + 1) * s0] - 2 * at[i * s0] + at[(i - 1) * s0];
}"""
THREADS = 256


def steps(array: Any) -> list[int]:
    """Strides in elements."""
    return [step // array.itemsize for step in array.strides]


def raw(code: str, name: str) -> Any:
    cupy = import_module("cupy")
    if name not in KNOWN:
        KNOWN[name] = cupy.RawKernel(code, name)
    return KNOWN[name]


KNOWN: dict[str, Any] = {}


def blocks(n: int) -> tuple[tuple[int], tuple[int]]:
    return (-(-n // THREADS),), (THREADS,)


def points(p: Any, out: Any, *, threads: int) -> None:
    """Lengths by two of the eight numbers of each point."""
    if isinstance(p, np.ndarray):
        out[:] = np.sqrt((p[:, :2] * p[:, :2]).sum(axis=1))
        return
    raw(POINTS, "lengths")(*blocks(len(p)), (p, out, len(p), *steps(p)))


def columns(m: Any, out: Any, *, threads: int) -> None:
    """A thread sums a row."""
    if isinstance(m, np.ndarray):
        out[:] = m.sum(axis=1)
        return
    raw(COLUMNS, "columns")(*blocks(len(m)), (m, out, *m.shape, *steps(m)))


def fields(at: Any, x: Any, y: Any, z: Any, out: Any, *, threads: int) -> None:
    """Three fields of a record that an index picks."""
    if isinstance(x, np.ndarray):
        out[:] = x[at] + y[at] * z[at]
        return
    raw(FIELDS, "pick")(*blocks(len(at)), (at, x, y, z, out, len(at), *steps(x)))


def neighbours(links: Any, values: Any, out: Any, *, threads: int) -> None:
    """Sums over the neighbours of a graph whose numbering says nothing."""
    out[:] = values[links].sum(axis=1)


def stencil(a: Any, out: Any, *, threads: int) -> None:
    """Second differences along the first axis of a 3d array; a thread walks along it."""
    if isinstance(a, np.ndarray):
        out[1:-1] = a[2:] - 2 * a[1:-1] + a[:-2]
        return
    raw(STENCIL, "differences")(*blocks(a.shape[1] * a.shape[2]), (a, out, *a.shape, *steps(a)))


def walk(a: Any, out: Any, *, threads: int) -> None:
    """The same by Numba."""
    if isinstance(a, np.ndarray):
        stencil(a, out, threads=threads)
        return
    KNOWN.setdefault("walk", made())[blocks(a.shape[1] * a.shape[2])](a, out)


def made() -> Any:
    cuda = import_module("numba.cuda")

    @cuda.jit
    def walk(a, out):  # type: ignore[no-untyped-def]
        place = cuda.grid(1)
        j, k = place // a.shape[2], place % a.shape[2]
        if j < a.shape[1]:
            for i in range(1, a.shape[0] - 1):
                out[i, j, k] = a[i + 1, j, k] - 2 * a[i, j, k] + a[i - 1, j, k]

    return walk


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    needs: str
    arrays: Callable[[int], dict[str, Any]]
    layouts: Layouts = field(default_factory=Layouts)


def _graph(n: int) -> dict[str, Any]:
    """A grid's neighbours under numbers that were shuffled."""
    rng, side = np.random.default_rng(3), max(4, int((2 * n) ** 0.5))
    count = side * side
    number = rng.permutation(count)
    i, j = np.divmod(np.arange(count), side)
    near = [(i + a) % side * side + (j + b) % side for a, b in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    links = np.empty((count, 4), np.int32)
    links[number] = number[np.stack(near, axis=1)]
    return {"links": links, "values": _drawn(count), "out": np.zeros(count, np.float32)}


def _box(n: int) -> dict[str, Any]:
    shape = max(4, n // 256), 16, 512
    return {"a": _drawn(*shape), "out": np.zeros(shape, np.float32)}


def _drawn(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


NODES = Layouts(
    spaces={"node": ["links", "values", "out"]}, links={"links": "node"},
    orders={"node": {"cuthill_mckee": {"order": "reverse_cuthill_mckee", "links": ["links"]}}},
)  # fmt: skip
CASES = {
    "points": Case(points, "cupy", lambda n: {"p": _drawn(16 * n, 8), "out": np.zeros(16 * n, np.float32)},
                   Layouts(axes=("p",), padding=("p",))),
    "columns": Case(columns, "cupy", lambda n: {"m": _drawn(n, 1024), "out": np.zeros(n, np.float32)},
                    Layouts(axes=("m",), padding=("m",))),
    "fields": Case(fields, "cupy", lambda n: {
        "at": np.random.default_rng(2).integers(0, 16 * n, 16 * n).astype(np.int32),
        "x": _drawn(16 * n), "y": _drawn(16 * n), "z": _drawn(16 * n), "out": np.zeros(16 * n, np.float32)},
        Layouts(together=(("x", "y", "z"),))),
    "neighbours": Case(neighbours, "cupy", _graph, NODES),
    "stencil": Case(stencil, "cupy", _box, Layouts(axes=("a",), padding=("a",))),
    "walk": Case(walk, "numba", _box, Layouts(axes=("a",), padding=("a",))),
}  # fmt: skip


def on_device(array: Any, library: str) -> Any:
    if library == "cupy":
        return import_module("cupy").asarray(array)
    return import_module("numba.cuda").to_device(array)


def tuned(name: str, device: str, size: int) -> dict[str, Any]:
    case = CASES[name]
    arrays = case.arrays(size)
    given = (
        arrays if device == "cpu" else {key: on_device(value, case.needs) for key, value in arrays.items()}
    )
    with tempfile.TemporaryDirectory() as folder:
        found = autotune.tune(
            case.function, {"threads": [THREADS]}, given, layouts=case.layouts, out=folder, progress=False
        )
    decision = found.sweep.decision
    winner = decision.winner
    pays = decision.break_even
    best = {key: value for key, value in winner.configuration.items() if key != "threads"}
    return {
        "kernel": name, "library": case.needs, "layout": ", ".join(f"{k}={v}" for k, v in best.items()),
        "ms": round(winner.time_ms, 5), "gain": round(found.sweep.best.speedup, 3),
        "transform_ms": round(winner.once_ms, 3), "break_even": pays.launches if pays else 0,
        "tried": len(found.sweep.trials), "excluded": len(found.excluded),
    }  # fmt: skip


def tables() -> dict[str, str]:
    """What docs/guides/from-cupy.md has (pages.py)."""
    frame = read_frame(RESULTS / "callables-layouts-h200.csv")
    made = [
        "| kernel | layout found | ms | gain | storing it once, ms | pays after calls |",
        "|---|---|---|---|---|---|",
    ]
    for row in frame.to_dict("records"):
        made.append(
            f"| {row['kernel']} | `{row['layout']}` | {row['ms']:.4g} | {row['gain']:.2f} x "
            f"| {row['transform_ms']:.0f} | {row['break_even']:,.0f} |"
        )
    return {"h200": "\n".join(made)}


def main(argv: list[str] | None = None) -> int:
    parser = arguments(__doc__, "callables-layouts.csv")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--scale", type=float, default=1.0, help="of the arrays")
    parser.add_argument("--kernels", default=",".join(CASES), help="which, separated by commas")
    asked = parser.parse_args(argv)
    if asked.check:
        for peer in ("cupy", "numba"):
            print(f"{peer}: {'installed' if find_spec(peer) else 'not installed'}")
        print(f"cuda: {is_there('cuda')}")
        return 0
    rows = []
    for name in asked.kernels.split(","):
        if asked.device == "cuda" and not find_spec(CASES[name].needs):
            print(f"{name}: left out, {CASES[name].needs} is not installed")
            continue
        try:
            rows.append(tuned(name, asked.device, max(1024, int(asked.scale * (1 << 18)))))
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        except AutotuneError as problem:
            print(f"{name}: {problem}")
    if rows:
        write_rows(asked.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
