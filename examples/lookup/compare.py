"""The lookup example's best configuration beside its control, plain.cu, cupy and torch, in one run, as a CSV.

    autotune sweep ./examples/lookup --device cuda --workload large
    python examples/lookup/compare.py --workload large --out lookup.csv

Needs a GPU, PyCUDA and cupy; torch is left out where it is not installed. Tables lie on the device for all of them,
every result is compared with numpy.searchsorted's exactly before it is timed, and rounds are interleaved. The libraries
get what they are made for: keys of a type they can search in, and the values by their own gather.
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
BLOCK = 256
NONE = np.uint32(0xFFFFFFFF)
Arrays = Mapping[str, NDArray[Any]]
# Its name, what is timed, and from what that returns the result on the host.
Contender = tuple[str, Callable[[], Any], Callable[[Any], NDArray[np.uint32]]]


def plain(arrays: Arrays) -> Contender:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    kernel = cupy.RawKernel((FOLDER / "plain.cu").read_text(), "lookup", options=("-std=c++17",))
    keys, values, queries = (cupy.asarray(arrays[name]) for name in ("keys", "values", "queries"))
    found = cupy.empty_like(queries)
    blocks = -(-queries.size // BLOCK)
    given = (keys, values, np.uint32(keys.size), queries, found, np.uint32(queries.size))
    return "plain.cu", lambda: kernel((blocks,), (BLOCK,), given), lambda _: cupy.asnumpy(found)


def libraries(arrays: Arrays) -> Iterator[Contender]:
    """cupy and torch: a binary search, then a gather from the values with one more for what is past the end."""
    cupy = import_module("cupy")
    values = np.append(arrays["values"], NONE)
    keys, queries, extended = (
        cupy.asarray(arrays["keys"]),
        cupy.asarray(arrays["queries"]),
        cupy.asarray(values),
    )
    yield (
        f"cupy {cupy.__version__}: searchsorted, take",
        lambda: cupy.take(extended, cupy.searchsorted(keys, queries)),
        cupy.asnumpy,
    )
    if find_spec("torch") is None:
        print("torch is not installed and left out")
        return
    torch = import_module("torch")

    def signed(array: NDArray[np.uint32]) -> Any:  # torch cannot search in uint32; this keeps the order
        return torch.from_numpy((array ^ np.uint32(1 << 31)).view(np.int32)).cuda()

    torch_keys, torch_queries = signed(arrays["keys"]), signed(arrays["queries"])
    torch_values = torch.from_numpy(values.view(np.int32)).cuda()

    def search() -> Any:
        places = torch.searchsorted(torch_keys, torch_queries, out_int32=True)
        return torch.index_select(torch_values, 0, places)

    yield (
        f"torch {torch.__version__}: searchsorted, index_select",
        search,
        lambda found: found.cpu().numpy().view(np.uint32),
    )


def tuned(
    backend: CudaBackend,
    family: Family,
    inputs: Inputs,
    expected: Arrays,
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
    for what, plan, result in (plain(inputs.arrays), *libraries(inputs.arrays)):
        if not np.array_equal(result(plan()), expected["found"]):
            raise SystemExit(f"{what} gives another result than numpy.searchsorted")
        plans[what] = plan
    times: dict[str, list[float]] = {what: [] for what in plans}
    for _ in range(rounds):
        for what, plan in plans.items():
            times[what] += backend.sample(plan, 3, workload.cold)
    rows = []
    for what, taken in times.items():
        ms = median(taken)
        row = {
            "workload": name, "entries": inputs.sizes["slot"], "queries": inputs.sizes["query"], "what": what,
            "median_ms": f"{ms:.5g}", "spread": f"{spread(taken):.2g}", "samples": len(taken),
            "times_the_best": f"{ms / median(times[best]):.3f}",
            "searches_per_s": f"{inputs.sizes['query'] / ms * 1e3:.4g}", "device": backend.device.name,
        }  # fmt: skip
        rows.append(row)
        print("  ".join(str(value) for value in row.values()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", action="append", help="again for more; default: large")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("lookup.csv"))
    given = parser.parse_args()
    family = families.load(str(FOLDER))
    if find_spec("cupy") is None:
        raise SystemExit("compare.py needs cupy: pip install cupy-cuda12x, or the one for your CUDA version")
    rows: list[Any] = []
    with CudaBackend(0) as backend:
        for name in given.workload or ["large"]:
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
