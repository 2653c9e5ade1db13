"""The stencil example's best configuration beside its control, plain.cu, cupy and torch, in one run, as a CSV.

    autotune sweep ./examples/stencil --device cuda --workload cube
    python examples/stencil/compare.py --workload cube --out stencil.csv

Needs a GPU, PyCUDA and cupy; torch is left out where it is not installed. Lattices lie on the device for all of them,
every result is compared with the float64 reference before it is timed, and rounds are interleaved. torch computes in
float32 proper (no TF32).
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import family as families
from autotune import workload as workloads
from autotune.backends.cuda import CudaBackend
from autotune.cache import Cache, default_root
from autotune.compiler import CompileFailure, compile_batch
from autotune.errors import AutotuneError
from autotune.family import Family
from autotune.measure import median, spread
from autotune.policyfile import file_name, read
from autotune.reference import expected_outputs
from autotune.resident import Resident
from autotune.space import Configuration
from autotune.variant import Variant, batch
from autotune.verify import Verifier
from autotune.workload import Inputs

FOLDER = Path(__file__).parent
BLOCK_X, BLOCK_Y = 32, 8
# Its name, what is timed, and from what that returns the result on the host.
Contender = tuple[str, Callable[[], Any], Callable[[Any], NDArray[np.float32]]]


def plain(inputs: Inputs) -> Contender:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    kernel = cupy.RawKernel((FOLDER / "plain.cu").read_text(), "stencil", options=("-std=c++17",))
    field = cupy.asarray(inputs.arrays["field"])
    result = cupy.empty_like(field)
    planes, rows, columns = field.shape
    grid = (-(-columns // BLOCK_X), -(-rows // BLOCK_Y), planes)
    sizes = (np.int32(planes), np.int32(rows), np.int32(columns))
    given = (field, result, *sizes, *(np.float32(inputs.scalars[name]) for name in ("centre", "side")))
    return "plain.cu", lambda: kernel(grid, (BLOCK_X, BLOCK_Y), given), lambda _: cupy.asnumpy(result)


def libraries(inputs: Inputs) -> Iterator[Contender]:
    """A convolution with 3 x 3 x 3 weights, by cupy and by torch."""
    cupy, ndimage = import_module("cupy"), import_module("cupyx.scipy.ndimage")
    weights = np.zeros((3, 3, 3), np.float32)
    weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = inputs.scalars["side"]
    weights[1, 1, 1] = inputs.scalars["centre"]
    field, stencil = cupy.asarray(inputs.arrays["field"]), cupy.asarray(weights)
    yield (
        f"cupyx.scipy.ndimage.convolve {cupy.__version__}",
        lambda: ndimage.convolve(field, stencil, mode="constant"),
        cupy.asnumpy,
    )
    if find_spec("torch") is None:
        print("torch is not installed and left out")
        return
    torch = import_module("torch")
    torch.backends.cudnn.allow_tf32 = False
    batched, filters = (
        torch.from_numpy(array).cuda()[None, None] for array in (inputs.arrays["field"], weights)
    )
    yield (
        f"torch.nn.functional.conv3d {torch.__version__}",
        lambda: torch.nn.functional.conv3d(batched, filters, padding=1),
        lambda result: result[0, 0].cpu().numpy(),
    )


def tuned(
    backend: CudaBackend,
    family: Family,
    inputs: Inputs,
    expected: Mapping[str, NDArray[Any]],
    chosen: Mapping[str, Configuration],
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Our configurations by name, each verified."""
    resident, verifier = Resident(backend, inputs), Verifier(backend, family, expected)
    for name, configuration in chosen.items():
        variant = Variant(family, configuration, tuple(inputs.options.items()))
        (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(default_root()))
        if isinstance(compiled, CompileFailure):
            raise SystemExit(f"{name} ({configuration.id}) does not compile: {compiled}")
        execution = resident.execution(variant, backend.load(compiled))
        reason, _ = verifier.run(execution, cold=True)
        if reason:
            raise SystemExit(f"{name} ({configuration.id}) is wrong: {reason}")
        yield f"autotune {name}: {configuration.id}", execution.run


def compare(
    backend: CudaBackend, family: Family, name: str, data: Path, policies: Path, rounds: int
) -> list[Any]:
    """A row for each contender on the workload ``name``."""
    entries = read(policies / file_name(family.name, backend.device.slug)).entries
    if name not in entries:
        raise SystemExit(
            f"no winner for workload {name}: autotune sweep {FOLDER} --workload {name} --device cuda"
        )
    workload = workloads.load(family, name)
    inputs = workloads.prepare(family, workload, data)
    expected, _ = expected_outputs(family, inputs, default_root())
    chosen = {"control": family.space.control, "best": Configuration(entries[name].configuration)}
    plans = dict(tuned(backend, family, inputs, expected, chosen))
    best = list(plans)[-1]
    for what, plan, result in (plain(inputs), *libraries(inputs)):
        if not np.allclose(result(plan()), expected["result"], rtol=1e-5, atol=2e-6):
            raise SystemExit(f"{what} gives another result than the reference")
        plans[what] = plan
    times: dict[str, list[float]] = {what: [] for what in plans}
    for _ in range(rounds):
        for what, plan in plans.items():
            times[what] += backend.sample(plan, 3, workload.cold)
    rows = []
    for what, taken in times.items():
        ms = median(taken)
        row = {
            "workload": name, **inputs.sizes, "what": what,
            "median_ms": f"{ms:.5g}", "spread": f"{spread(taken):.2g}", "samples": len(taken),
            "times_the_best": f"{ms / median(times[best]):.3f}",
            "points_per_s": f"{inputs.arrays['field'].size / ms * 1e3:.4g}", "device": backend.device.name,
        }  # fmt: skip
        rows.append(row)
        print("  ".join(str(value) for value in row.values()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", action="append", help="again for more; default: cube")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("stencil.csv"))
    given = parser.parse_args()
    family = families.load(str(FOLDER))
    if find_spec("cupy") is None:
        raise SystemExit("compare.py needs cupy: pip install cupy-cuda12x, or the one for your CUDA version")
    rows: list[Any] = []
    with CudaBackend(0) as backend:
        for name in given.workload or ["cube"]:
            rows += compare(backend, family, name, given.data, given.policies, given.rounds)
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    try:
        main()
    except AutotuneError as problem:  # no GPU, no policy file: its message says what to do
        raise SystemExit(f"compare.py: {problem}") from problem
