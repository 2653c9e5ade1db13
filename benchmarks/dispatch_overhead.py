"""The host's time for a call through the dispatcher: warm and compared with a bare launch, cold, and for the import.

    python benchmarks/dispatch_overhead.py [--device cuda] [--out dispatch-overhead.csv]

The kernel takes 2 us, so that calls are never held up by the device. Warm times are microseconds a call without
waiting for the device, except where the row says that the result comes to the host; each is the median of the rounds,
in which all ways take turns. The bare launch is PyCUDA's prepared call of the same function with the same arguments.
Cold times are of new processes with a filled compile cache.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from harness import arguments, check, python_path
from result_files import write_rows

import autotune
from autotune.declaration import bind, load_family

FAMILY = """\
schema: 1
family: doubler
source: doubler.cu
data:
  x: {role: input, type: float32, shape: [n]}
  y: {role: output, type: float32, shape: [n]}
kernels:
  doubler: {arguments: [x, y], grid: ["ceil_div(n, block_size)"], block: [block_size]}
policies:
  block_size: {values: [128, 256], default: 128}
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) doubler(typename Policy::x x, typename Policy::y y) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < x.extent(0)) y.store(2 * x.load(i), i);
}
"""
COUNT = 1024
COLD = """
import json, sys, time
import warnings
warnings.simplefilter("ignore")
begin = time.perf_counter()
import autotune
package = time.perf_counter()
import numpy, yaml
libraries = time.perf_counter()
import autotune.dispatch
dispatcher = time.perf_counter()
x = numpy.ones(1024, numpy.float32)
if sys.argv[2] == "cuda":
    import pycuda.driver as driver
    driver.init()
    context = driver.Device(0).retain_primary_context()
    context.push()
    driver.Context.pop()
ready = time.perf_counter()
kernel = autotune.load(sys.argv[1], device=sys.argv[2])
loaded = time.perf_counter()
kernel(x)
called = time.perf_counter()
kernel(x)
again = time.perf_counter()
print(json.dumps({
    "import autotune": package - begin, "import numpy, yaml": libraries - package,
    "import of the dispatcher": dispatcher - libraries,
    "driver and context": ready - dispatcher, "load": loaded - ready, "first call": called - loaded,
    "second call": again - called,
}))
"""


def rounds(
    ways: dict[str, Callable[[], Any]], finish: Callable[[], None], calls: int, times: int
) -> dict[str, list[float]]:
    """Microseconds a call by way, one figure a round."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(times + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            for _ in range(calls):
                way()
            taken = time.perf_counter() - begin
            finish()
            if turn:  # the first round warms up
                found[name].append(taken / calls * 1e6)
    return found


def gpu_ways(folder: Path, opened: ExitStack) -> tuple[dict[str, Callable[[], Any]], Callable[[], None]]:
    """The bare launch first. Ways of libraries that are not here are left out."""
    kernel = opened.enter_context(autotune.load(folder, device="cuda"))
    x = np.ones(COUNT, np.float32)
    prepared = opened.enter_context(kernel.prepare(x))
    execution = prepared.execution
    backend = execution.backend
    (launch,) = execution.launches
    module: Any = launch.module
    function = module.functions["doubler"]
    function.prepare([f"{len(argument)}s" for argument in launch.arguments])
    grid, block, arguments = launch.geometry.grid, launch.geometry.block, launch.arguments
    opened.enter_context(backend.current())

    ways: dict[str, Callable[[], Any]] = {
        "bare PyCUDA prepared launch": lambda: function.prepared_call(grid, block, *arguments),
        "backend.launch": lambda: backend.launch(module, "doubler", launch.geometry, arguments),
        "numpy to numpy (result on the host)": lambda: kernel(x),
        "prepared, result on the host": prepared,
    }
    if find_spec("torch"):
        torch = import_module("torch")
        a, b = torch.ones(COUNT, device="cuda"), torch.zeros(COUNT, device="cuda")
        held = opened.enter_context(kernel.prepare(a))
        side = torch.cuda.Stream()
        ways["torch, prepared, out="] = lambda: held(out=b)
        ways["torch, prepared"] = held
        other = opened.enter_context(autotune.load(folder, device="cuda"))
        ways["torch, out="] = lambda: other(a, out=b)
        third = opened.enter_context(autotune.load(folder, device="cuda"))
        ways["torch"] = lambda: third(a)
        fourth = opened.enter_context(kernel.prepare(a))
        ways["torch, prepared, out=, another stream"] = lambda: fourth(out=b, stream=side)
        ways["torch itself: torch.mul(a, 2, out=b)"] = lambda: torch.mul(a, 2, out=b)
    if find_spec("cupy"):
        cupy = import_module("cupy")
        c, d = cupy.ones(COUNT, cupy.float32), cupy.zeros(COUNT, cupy.float32)
        kept = opened.enter_context(kernel.prepare(c))
        ways["cupy, prepared, out="] = lambda: kept(out=d)
        ways["cupy, prepared"] = kept
        fifth = opened.enter_context(autotune.load(folder, device="cuda"))
        ways["cupy, out="] = lambda: fifth(c, out=d)
        ways["cupy itself: cupy.multiply(c, 2, out=d)"] = lambda: cupy.multiply(c, 2, out=d)
    return ways, backend.synchronize


def cpu_ways(folder: Path, opened: ExitStack) -> tuple[dict[str, Callable[[], Any]], Callable[[], None]]:
    """A bare launch is a call of the compiled function through ctypes, on one thread."""
    from autotune.device.cpu.native import LaunchRequest

    kernel = opened.enter_context(autotune.load(folder, device="cpu"))
    x, out = np.ones(COUNT, np.float32), np.zeros(COUNT, np.float32)
    prepared = opened.enter_context(kernel.prepare(x))
    execution = prepared.execution
    execution.run()
    (launch,) = execution.launches
    backend: Any = execution.backend
    arguments = launch.arguments
    pointers = (ctypes.c_char_p * 2)(*arguments)
    sizes = (ctypes.c_ulonglong * 2)(*map(len, arguments))
    module: Any = launch.module
    request = LaunchRequest(
        backend._runtime,  # noqa: SLF001
        launch.geometry.grid, launch.geometry.block, backend.threads, 2, 0,
        ctypes.addressof(pointers), ctypes.addressof(sizes),
    )  # fmt: skip
    function = module.functions["doubler"]
    opened.callback(lambda: (pointers, sizes))
    return {
        "bare launch": lambda: function(request),
        "backend.launch": lambda: backend.launch(module, "doubler", launch.geometry, arguments),
        "prepared, out=": lambda: prepared(out=out),
        "prepared": prepared,
        "numpy, out=": lambda: kernel(x, out=out),
        "numpy": lambda: kernel(x),
    }, lambda: None


def cold(folder: Path, device: str, cache: Path, times: int) -> dict[str, list[float]]:
    """Milliseconds by step, one figure a process."""
    found: dict[str, list[float]] = {}
    environment = {**os.environ, "AUTOTUNE_CACHE": str(cache), "PYTHONPATH": python_path()}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for turn in range(times + 1):
        done = subprocess.run(
            [sys.executable, "-c", COLD, str(folder), device],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        if turn:  # the first fills the cache
            for name, seconds in json.loads(done.stdout).items():
                found.setdefault(name, []).append(seconds * 1e3)
    return found


def write_family(place: Path) -> Path:
    folder = place / "doubler"
    folder.mkdir()
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "doubler.cu").write_text(SOURCE)
    return folder


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "dispatch-overhead.csv")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--calls", type=int, default=1000, help="calls in a round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processes", type=int, default=5, help="new processes for the cold figures")
    asked = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place, ExitStack() as opened:
        opened.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # no policy file is wanted
        folder = write_family(Path(place))
        if asked.check:
            family = load_family(folder)
            inputs = bind(family, {"x": np.ones(COUNT, np.float32)}, {}, {})
            return check(
                family, [inputs], [family.space.control], peers=("torch", "cupy"), device=asked.device
            )
        cache = Path(place) / "cache"
        for name, times in cold(folder, asked.device, cache, asked.processes).items():
            rows.append(row(asked.device, "cold", name, "ms", times))
        ways, finish = (gpu_ways if asked.device == "cuda" else cpu_ways)(folder, opened)
        found = rounds(ways, finish, asked.calls, asked.rounds)
        bare = median(next(iter(found.values())))
        for name, times in found.items():
            over = round(median(times) - bare, 2)
            rows.append({**row(asked.device, "warm", name, "us", times), "over_bare": over})
    columns = ["device", "kind", "what", "unit", "median", "p95", "over_bare", "count"]
    write_rows(asked.out, rows, columns)
    for line in rows:
        beyond = f"   {line['over_bare']:+8.2f}" if "over_bare" in line else ""
        print(
            f"{line['device']}  {line['kind']}  {line['what']:42} {line['median']:9.2f} {line['unit']}{beyond}"
        )
    return 0


def row(device: str, kind: str, what: str, unit: str, times: list[float]) -> dict[str, Any]:
    return {
        "device": device, "kind": kind, "what": what, "unit": unit, "median": round(median(times), 3),
        "p95": round(quantiles(times, n=20)[-1], 3) if len(times) > 1 else "", "count": len(times),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
