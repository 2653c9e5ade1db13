"""The tuned kernel beside the plain one and cuSPARSE, in one run.

    autotune sweep ./examples/spmv --workload stencil-96 --device cuda
    python examples/spmv/compare.py --workload stencil-96 --out spmv.csv

Needs a CUDA device and CuPy, whose sparse matrices are multiplied by cuSPARSE. All results are compared with scipy's in
float64 first. Everything is on the device before; a time is of calls one after another between two events, caches warm,
in turns, the median of the rounds.
"""

import argparse
import csv
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
from autotune.paths import bundled

FOLDER = Path(__file__).parent
ROUNDS = 15


class Way(NamedTuple):
    """``call`` is timed; ``result`` is what it made, on the host, (rows,)."""

    call: Callable[[], Any]
    result: Callable[[], Any]
    configuration: str = ""


def tuned(inputs: Any, policies: Path | None, opened: ExitStack) -> Way:
    kernel = opened.enter_context(autotune.load(str(FOLDER), device="cuda", policies=policies))
    handle = opened.enter_context(kernel.prepare(**inputs.arrays, **inputs.scalars))
    out = cupy.empty(inputs.sizes["row"], cupy.float32)
    handle(out=out)
    print(f"autotune: {handle.match}: {handle.variant.configuration.id}")
    return Way(lambda: handle(out=out), lambda: cupy.asnumpy(out), handle.variant.configuration.id)


def parts(inputs: Any) -> tuple[Any, Any, Any, Any]:
    """CSR as libraries have it, on the device: values, columns, offsets; and x."""
    entries = inputs.arrays["csr_entries"]
    columns, offsets = (part.astype(np.int32) for part in (entries["column"], inputs.arrays["csr_offsets"]))
    values = np.ascontiguousarray(entries["value"])
    return tuple(cupy.asarray(part) for part in (values, columns, offsets, inputs.arrays["x"]))


def plain(inputs: Any) -> Way:
    values, columns, offsets, x = parts(inputs)
    kernel = cupy.RawKernel((FOLDER / "plain.cu").read_text(), "spmv")
    rows = inputs.sizes["row"]
    out = cupy.empty(rows, cupy.float32)
    grid, arguments = (-(-rows // 256),), (offsets, columns, values, x, out, np.int32(rows))
    return Way(lambda: kernel(grid, (256,), arguments), lambda: cupy.asnumpy(out))


def by_cusparse(inputs: Any) -> Way:
    """cusparseSpMV itself, into an array that is there, where CuPy has it; its buffer is allocated by CuPy's pool."""
    from cupyx import cusparse  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    from cupyx.scipy import sparse  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    values, columns, offsets, x = parts(inputs)
    matrix = sparse.csr_matrix(
        (values, columns, offsets), shape=(inputs.sizes["row"], inputs.sizes["column"])
    )
    out = cupy.zeros(inputs.sizes["row"], cupy.float32)
    return Way(lambda: cusparse.spmv(matrix, x, y=out), lambda: cupy.asnumpy(out))


def by_cupy(inputs: Any) -> Way:
    """A @ x: what CuPy makes of it, the allocation of y included."""
    from cupyx.scipy import sparse  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    values, columns, offsets, x = parts(inputs)
    matrix = sparse.csr_matrix(
        (values, columns, offsets), shape=(inputs.sizes["row"], inputs.sizes["column"])
    )
    return Way(lambda: matrix @ x, lambda: cupy.asnumpy(matrix @ x))


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
    parser.add_argument("--workload", default="stencil-96")
    parser.add_argument("--data", type=Path, default=bundled("workloads") / "data")
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--out", type=Path, default=Path("spmv.csv"))
    given = parser.parse_args()
    family = families.load(str(FOLDER))
    inputs = workloads.prepare(family, workloads.load(family, given.workload), given.data)
    assert family.module is not None
    expected = family.module.csr_of(inputs.arrays) @ inputs.arrays["x"].astype(np.float64)
    with ExitStack() as opened:
        makers: dict[str, Callable[[], Way]] = {
            "autotune": lambda: tuned(inputs, given.policies, opened),
            "plain.cu": lambda: plain(inputs),
            "cusparseSpMV": lambda: by_cusparse(inputs),
            "cupy A @ x": lambda: by_cupy(inputs),
        }
        ways: dict[str, Way] = {}
        errors: dict[str, float] = {}
        for name, make in makers.items():
            try:
                way = make()
                way.call()
                cupy.cuda.Device().synchronize()
                error = float(np.abs(way.result() - expected).max() / inputs.scalars["magnitude"])
            except Exception as problem:  # noqa: BLE001 - a library that does not work here is no reason to lose the rest
                print(f"{name} is left out: {type(problem).__name__}: {problem}")
                continue
            if error < 1e-5:
                ways[name], errors[name] = way, error
            else:
                print(f"{name} is left out: wrong by {error:.2g} of the largest row")
        once = {name: milliseconds(way.call, 1) for name, way in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                times[name].append(milliseconds(way.call, max(1, min(1000, int(20 / once[name])))))
    least = 8 * inputs.sizes["nonzero"] + 4 * (
        2 * inputs.sizes["row"] + 1 + inputs.sizes["column"]
    )  # family.yaml
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["workload", "rows", "nonzeros", "what", "median_ms", "lowest_ms", "highest_ms", "gb_per_s",
             "times_the_plain", "relative_error", "device", "configuration"]
        )  # fmt: skip
        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        for name, found in times.items():
            ms = median(found)
            rate, against = (
                least / ms / 1e6,
                f"{ms / median(times['plain.cu']):.3f}" if "plain.cu" in times else "",
            )
            row = [given.workload, inputs.sizes["row"], inputs.sizes["nonzero"], name, f"{ms:.6g}",
                   f"{min(found):.6g}", f"{max(found):.6g}", f"{rate:.4g}", against, f"{errors[name]:.2g}",
                   device, ways[name].configuration]  # fmt: skip
            writer.writerow(row)
            print(f"{name:14} {ms:10.5f} ms  {against:>6} x plain  {rate:7.1f} GB/s")


if __name__ == "__main__":
    main()
