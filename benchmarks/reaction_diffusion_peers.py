"""This project's step and how people write it: numpy, numba, CuPy (arrays, and a kernel of its own), PyTorch (eager,
and compiled). Every one is checked against the float64 reference.

    python benchmarks/reaction_diffusion_peers.py --grid 1024 --seconds 3 --out peers.csv

One step is c' = own c + d ((N + S) + (W + E)) with no-flux walls on an N x N lattice. A formulation is warmed up, then
doubled in its number of steps until it takes a quarter of --seconds; the best of three such runs counts, from the first
launch to the end of the last. What is not installed, or needs a GPU that is not there, is said and left out.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments
from numpy.typing import NDArray
from result_files import write_rows

DIFFUSION, BLEACHING = 0.025, 0.002
Floats = NDArray[np.float32]
Advance = Callable[[Any, int], Any]  # (c, steps) -> c


@dataclass(frozen=True)
class Peer:
    """``put`` brings an array to where ``advance`` wants it, ``get`` brings it back; ``wait`` ends when all is done."""

    name: str
    put: Callable[[Floats], Any]
    advance: Advance
    get: Callable[[Any], Floats]
    wait: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Row:
    peer: str
    grid: int
    steps: int
    seconds: float
    updates_per_second: float
    relative_error: float


def owns(n: int) -> Floats:
    """1 - 4 d - k dt B for a Gaussian beam of 10 points on the middle."""
    x = np.arange(n) - (n - 1) / 2
    factor = np.exp(-2 * (x / 10) ** 2)
    return (1 - 4 * DIFFUSION - BLEACHING * np.outer(factor, factor)).astype(np.float32)


def reference(c: Floats, own: Floats, steps: int) -> NDArray[np.float64]:
    field, factor = c.astype(np.float64), own.astype(np.float64)
    for _ in range(steps):
        field = factor * field + DIFFUSION * shifted_sum(np, np.pad(field, 1, mode="edge"))
    return field


def shifted_sum(_library: Any, padded: Any) -> Any:
    return (padded[:-2, 1:-1] + padded[2:, 1:-1]) + (padded[1:-1, :-2] + padded[1:-1, 2:])


def numpy_peer(own: Floats) -> Peer:
    d = np.float32(DIFFUSION)

    def advance(c: Floats, steps: int) -> Floats:
        for _ in range(steps):
            c = own * c + d * shifted_sum(np, np.pad(c, 1, mode="edge"))
        return c

    return Peer("numpy", lambda c: c, advance, lambda c: c)


def numba_peer(own: Floats) -> Peer:
    import numba

    @numba.njit(parallel=True, fastmath=False)  # type: ignore[untyped-decorator,unused-ignore]
    def step(c: Any, to: Any, own: Any, d: Any) -> None:
        rows, columns = c.shape
        for y in numba.prange(rows):
            up, down = max(y - 1, 0), min(y + 1, rows - 1)
            for x in range(1, columns - 1):
                to[y, x] = own[y, x] * c[y, x] + d * ((c[up, x] + c[down, x]) + (c[y, x - 1] + c[y, x + 1]))
            for x in (0, columns - 1):
                left, right = max(x - 1, 0), min(x + 1, columns - 1)
                to[y, x] = own[y, x] * c[y, x] + d * ((c[up, x] + c[down, x]) + (c[y, left] + c[y, right]))

    def advance(c: Floats, steps: int) -> Floats:
        to, d = np.empty_like(c), np.float32(DIFFUSION)
        for _ in range(steps):
            step(c, to, own, d)
            c, to = to, c
        return c

    return Peer("numba, parallel", np.copy, advance, lambda c: c)


def cupy_arrays(own: Floats) -> Peer:
    import cupy

    factor, d = cupy.asarray(own), cupy.float32(DIFFUSION)

    def advance(c: Any, steps: int) -> Any:
        for _ in range(steps):
            c = factor * c + d * shifted_sum(cupy, cupy.pad(c, 1, mode="edge"))
        return c

    return Peer("CuPy, arrays", cupy.asarray, advance, cupy.asnumpy, cupy.cuda.Device().synchronize)


CUPY_STEP = """
extern "C" __global__ void step(const float* c, float* to, const float* own, float d, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  const int i = y * n + x;
  const float here = c[i], north = c[y ? i - n : i], south = c[y < n - 1 ? i + n : i];
  const float west = c[x ? i - 1 : i], east = c[x < n - 1 ? i + 1 : i];
  to[i] = own[i] * here + d * ((north + south) + (west + east));
}
"""


def cupy_kernel(own: Floats) -> Peer:
    import cupy

    n, step = len(own), cupy.RawKernel(CUPY_STEP, "step")
    factor, grid = cupy.asarray(own), (-(-n // 32), -(-n // 8))

    def advance(c: Any, steps: int) -> Any:
        to = cupy.empty_like(c)
        for _ in range(steps):
            step(grid, (32, 8), (c, to, factor, np.float32(DIFFUSION), np.int32(n)))
            c, to = to, c
        return c

    return Peer(
        "CuPy, a CUDA kernel a step", cupy.array, advance, cupy.asnumpy, cupy.cuda.Device().synchronize
    )


def torch_peer(own: Floats, *, compiled: bool) -> Peer:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no GPU here")
    factor = torch.from_numpy(own).cuda()

    def step(c: Any) -> Any:
        padded = torch.nn.functional.pad(c[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        return factor * c + DIFFUSION * shifted_sum(torch, padded)

    made: Any = torch.compile(step) if compiled else step

    def advance(c: Any, steps: int) -> Any:
        for _ in range(steps):
            c = made(c)
        return c

    name = "PyTorch, compiled" if compiled else "PyTorch, eager"
    return Peer(
        name, lambda c: torch.from_numpy(c).cuda(), advance, lambda c: c.cpu().numpy(), torch.cuda.synchronize
    )


PEERS: dict[str, Callable[[Floats], Peer]] = {
    "numpy": numpy_peer,
    "numba": numba_peer,
    "cupy": cupy_arrays,
    "cupy-kernel": cupy_kernel,
    "torch": lambda own: torch_peer(own, compiled=False),
    "torch-compiled": lambda own: torch_peer(own, compiled=True),
}


def measure(peer: Peer, n: int, own: Floats, seconds: float) -> Row:
    initial = np.random.default_rng(0).random((n, n), np.float32)
    exact = reference(initial, own, 4)
    found = peer.get(peer.advance(peer.put(initial), 4))
    error = float(np.abs(found - exact).max() / np.abs(exact).max())

    def timed(steps: int) -> float:
        c = peer.put(initial)
        peer.wait()
        begin = time.perf_counter()
        peer.advance(c, steps)
        peer.wait()
        return time.perf_counter() - begin

    steps = 4
    while (taken := timed(steps)) < seconds / 8:
        steps *= 2
    taken = min(taken, timed(steps), timed(steps))
    return Row(peer.name, n, steps, taken, n * n * steps / taken, error)


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--grid", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each formulation, about")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, with commas")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(words)
    if chosen.check:  # each formulation on a field of 8 x 8
        chosen.grid, chosen.seconds = 8, 0.0
    own, rows = owns(chosen.grid), []
    for name in chosen.peers.split(","):
        if name not in PEERS:
            parser.error(f"unknown formulation {name!r}; allowed: {', '.join(PEERS)}")
        try:
            peer = PEERS[name](own)
        except Exception as problem:  # noqa: BLE001  # a library may fail in its own ways where there is no GPU
            print(f"{name}: left out: {type(problem).__name__}: {problem}")
            continue
        row = measure(peer, chosen.grid, own, chosen.seconds)
        if row.relative_error > 1e-5:
            print(f"{name}: wrong by {row.relative_error:.1e}")
            return 1
        rows.append(row)
        print(f"{row.updates_per_second:.3e} updates/s  {row.steps} steps  {row.peer}", flush=True)
    if chosen.out and rows:
        write_rows(chosen.out, [asdict(row) for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
