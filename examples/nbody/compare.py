"""The tuned kernel beside the plain one, torch and numba, in one run.

    autotune sweep ./examples/nbody --workload plummer-64k --device cuda
    python examples/nbody/compare.py --workload plummer-64k --out nbody.csv

Needs a CUDA device and CuPy; torch and numba are left out, with a word, where they are not installed. All results are
compared with the float64 sum first. Everything is on the device before; a time is of calls one after another between
two events, caches warm, in turns, the median of the rounds.
"""

import argparse
import csv
import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import cupy  # type: ignore[import-not-found,unused-ignore]
import numpy as np

import autotune
from autotune import family as families
from autotune import workload as workloads
from autotune.cache import default_root
from autotune.reference import expected_outputs

FOLDER = Path(__file__).parent
ROUNDS = 15


class Way(NamedTuple):
    """``call`` is timed; ``result`` is what it made, on the host, (bodies, 3)."""

    call: Callable[[], Any]
    result: Callable[[], Any]
    configuration: str = ""


def tuned(bodies: Any, softening: float, policies: Path | None, opened: ExitStack) -> Way:
    kernel = opened.enter_context(autotune.load(str(FOLDER), device="cuda", policies=policies))
    handle = opened.enter_context(kernel.prepare(bodies, softening=softening))
    out = cupy.empty((len(bodies), 3), cupy.float32)
    handle(out=out)
    print(f"autotune: {handle.match}: {handle.variant.configuration.id}")
    return Way(lambda: handle(out=out), lambda: cupy.asnumpy(out), handle.variant.configuration.id)


def plain(bodies: Any, softening: float) -> Way:
    kernel = cupy.RawKernel((FOLDER / "plain.cu").read_text(), "nbody")
    given = cupy.asarray(np.stack([bodies[name] for name in ("x", "y", "z", "mass")], axis=1))
    out = cupy.empty((len(bodies), 3), cupy.float32)
    grid, arguments = (-(-len(bodies) // 256),), (given, out, np.int32(len(bodies)), np.float32(softening))
    return Way(lambda: kernel(grid, (256,), arguments), lambda: cupy.asnumpy(out))


def by_torch(bodies: Any, softening: float) -> Way:
    """Array operations, 2,048 bodies at a time, as one writes it in torch; compiled by torch.compile."""
    import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    place = torch.from_numpy(np.stack([bodies[name] for name in "xyz"], axis=1)).cuda()
    mass = torch.from_numpy(np.ascontiguousarray(bodies["mass"])).cuda()
    out = torch.empty_like(place)

    @torch.compile  # type: ignore[untyped-decorator,unused-ignore]
    def pulled(rows: Any, place: Any, mass: Any) -> Any:
        apart = place[None, :, :] - rows[:, None, :]
        inverse = torch.rsqrt((apart * apart).sum(-1) + softening**2)
        return ((mass * inverse * inverse * inverse)[:, :, None] * apart).sum(1)

    def call() -> None:
        for first in range(0, len(place), 2048):
            out[first : first + 2048] = pulled(place[first : first + 2048], place, mass)

    return Way(call, lambda: out.cpu().numpy())


def by_numba(bodies: Any, softening: float) -> Way:
    from numba import cuda  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    given = cuda.to_device(np.stack([bodies[name] for name in ("x", "y", "z", "mass")], axis=1))
    out = cuda.device_array((len(bodies), 3), np.float32)
    softening2 = np.float32(softening) ** 2

    @cuda.jit(fastmath=True)  # type: ignore[untyped-decorator,unused-ignore]
    def kernel(bodies: Any, out: Any, softening2: Any) -> None:
        i = cuda.grid(1)
        if i >= bodies.shape[0]:
            return
        x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
        ax = ay = az = np.float32(0)
        for j in range(bodies.shape[0]):
            dx, dy, dz = bodies[j, 0] - x, bodies[j, 1] - y, bodies[j, 2] - z
            square = dx * dx + dy * dy + dz * dz + softening2
            pull = bodies[j, 3] / (square * math.sqrt(square))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

    return Way(lambda: kernel[-(-len(bodies) // 256), 256](given, out, softening2), out.copy_to_host)


def milliseconds(call: Callable[[], Any], calls: int) -> float:
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / calls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="plummer-64k")
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--out", type=Path, default=Path("nbody.csv"))
    given = parser.parse_args()
    family = families.load(str(FOLDER))
    inputs = workloads.prepare(family, workloads.load(family, given.workload), Path())
    bodies, softening = inputs.arrays["bodies"], float(inputs.scalars["softening"])
    expected = expected_outputs(family, inputs, default_root())[0]["acceleration"]  # a sweep has kept it
    scale = np.linalg.norm(expected, axis=1).max()
    with ExitStack() as opened:
        makers: dict[str, Callable[[], Way]] = {
            "autotune": lambda: tuned(bodies, softening, given.policies, opened),
            "plain.cu": lambda: plain(bodies, softening),
            "torch.compile": lambda: by_torch(bodies, softening),
            "numba.cuda": lambda: by_numba(bodies, softening),
        }
        ways: dict[str, Way] = {}
        errors: dict[str, float] = {}
        for name, make in makers.items():
            try:
                way = make()
                way.call()
                cupy.cuda.Device().synchronize()
                error = float(np.abs(way.result() - expected).max() / scale)
            except Exception as problem:  # noqa: BLE001 - a library that does not work here is no reason to lose the rest
                print(f"{name} is left out: {type(problem).__name__}: {problem}")
                continue
            if error < 1e-4:
                ways[name], errors[name] = way, error
            else:
                print(f"{name} is left out: wrong by {error:.2g} of the largest acceleration")
        once = {name: milliseconds(way.call, 1) for name, way in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                times[name].append(milliseconds(way.call, max(1, min(100, int(20 / once[name])))))
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["workload", "bodies", "what", "median_ms", "lowest_ms", "highest_ms", "interactions_per_s",
             "times_the_plain", "relative_error", "device", "configuration"]
        )  # fmt: skip
        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        for name, found in times.items():
            ms = median(found)
            rate, against = (
                len(bodies) ** 2 / ms * 1e3,
                f"{ms / median(times['plain.cu']):.3f}" if "plain.cu" in times else "",
            )
            row = [given.workload, len(bodies), name, f"{ms:.6g}", f"{min(found):.6g}", f"{max(found):.6g}",
                   f"{rate:.4g}", against, f"{errors[name]:.2g}", device,
                   ways[name].configuration]  # fmt: skip
            writer.writerow(row)
            print(f"{name:14} {ms:10.4f} ms  {against:>6} x plain  {rate:.3g} interactions/s")


if __name__ == "__main__":
    main()
