"""All-pairs distance, compared with torch and CUTLASS in one run: our tuned configuration, the primer's rungs,
torch.cdist(p=0), torch._int_mm on an int8 encoding, and CUTLASS products whose epilogue gives the distance.

    python benchmarks/allpairs_peers.py --policies policies --data DATA --cutlass cutlass.so --out peers.csv

Needs a CUDA device, PyCUDA and torch; allpairs_cutlass.cu says how nvcc makes the library of --cutlass, which may be
given several times, for several shapes of tiles: its rows have the library's name. Every result is compared with ours
exactly before it is timed, and one that differs is left out; rounds are interleaved; inputs are resident on the device
for all, encoded as each of them wants; the median and the 95 % interval are kept. Where a GPU has no policy file,
--tuned-on names the one whose entries are run. ``--device cpu`` leaves the peers out, and shows that the script works.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, bound, check, entry, inputs_of, variants_of
from result_files import write_rows

from autotune.compile import default_root
from autotune.declaration import Configuration, Inputs, load_family
from autotune.device import Backend, Resident, open_backend
from autotune.measure import Verifier, compute_expected, spread

FAMILY = load_family("allpairs")
RUNGS = ("naive", "coalesced", "char", "register", "shared")
TUNED = "autotune: tuned"
BANDS = 8  # of rows, where CUTLASS computes half of the pairs
ROWS, BITS = 32, 128  # what extents are padded to a multiple of


Peer = tuple[Callable[[], Any], Callable[[Any], Any]]  # what is timed, and how its result becomes D


def encode_as_products(genotypes: np.ndarray[Any, Any], rank: int) -> tuple[np.ndarray[Any, Any], ...]:
    """U, W int8 (N, rank A): u_a . w_b is rank when a == b, else -1, so D = (rank A - U W^T) / (rank + 1) exactly."""
    own = np.vstack([np.eye(rank), np.full(rank, -1)])
    other = np.vstack([(rank + 1) * np.eye(rank) - 1, np.full(rank, -1)])
    sides = (table.astype(np.int8)[genotypes].reshape(len(genotypes), -1) for table in (other, own))
    return tuple(_padded(side, ROWS) for side in sides)


def encode_as_bits(genotypes: np.ndarray[Any, Any], values: int) -> tuple[np.ndarray[Any, Any], ...]:
    """A, B (N, values A / 8) bytes, bits [a == v] and [b != v] of each value: D[i, j] = bits of A[i] & B[j]."""
    has = genotypes[:, :, None] == np.arange(values)
    sides = (side.reshape(len(genotypes), -1) for side in (has, ~has))
    return tuple(np.packbits(_padded(side, BITS), axis=1) for side in sides)


def _padded(side: np.ndarray[Any, Any], columns: int) -> np.ndarray[Any, Any]:
    return np.pad(side, [(0, -side.shape[0] % ROWS), (0, -side.shape[1] % columns)])


def on_device(sides: tuple[np.ndarray[Any, Any], ...]) -> tuple[Any, ...]:
    torch = import_module("torch")
    return tuple(torch.from_numpy(side).cuda() for side in sides)


def torch_plans(genotypes: np.ndarray[Any, Any]) -> dict[str, Peer]:
    torch = import_module("torch")
    n, attributes = genotypes.shape
    values = torch.from_numpy(genotypes.astype(np.float32)).cuda()
    rank = max(2, int(genotypes.max()))
    u, w = on_device(encode_as_products(genotypes, rank))
    wt = w.t()

    def product() -> Any:
        return torch._int_mm(u, wt)  # noqa: SLF001 - torch has no public name for it

    def distance() -> Any:
        return product().neg_().add_(rank * attributes).floor_divide_(rank + 1)[:n, :n]

    return {
        "torch.cdist(p=0)": (lambda: torch.cdist(values, values, p=0), lambda d: d.round().int()),
        f"torch._int_mm rank-{rank} + epilogue": (distance, lambda d: d),
        f"torch._int_mm rank-{rank}, product alone": (
            product, lambda p: ((rank * attributes - p) // (rank + 1))[:n, :n]
        ),
    }  # fmt: skip


def cutlass_plans(genotypes: np.ndarray[Any, Any], library: Path) -> dict[str, Peer]:
    torch = import_module("torch")
    made = ctypes.CDLL(str(library.resolve()))
    n, attributes = genotypes.shape
    rank = max(2, int(genotypes.max()))
    u, w = on_device(encode_as_products(genotypes, rank))
    a, b = on_device(encode_as_bits(genotypes, rank + 1))
    padded, depth, bits = len(u), u.shape[1], 8 * a.shape[1]
    d = torch.zeros((padded, padded), dtype=torch.int32, device="cuda")

    def call(function: Any, *given: Any) -> Peer:
        run = launcher(function, *given)
        return lambda: (run(), d)[1], lambda d: d[:n, :n]

    products = made.distances_of_products
    plans = {
        f"{library.stem}: int8, distance in the epilogue": call(
            products, u, w, d, padded, depth, rank, attributes, 1
        ),
        f"{library.stem}: bits, distance is the product": call(made.distances_of_bits, a, b, d, padded, bits),
    }
    if n > BANDS * 256:
        plans[f"{library.stem}: int8, the triangle in {BANDS} bands"] = call(
            products, u, w, d, padded, depth, rank, attributes, BANDS
        )
    return plans


def launcher(function: Any, *given: Any) -> Callable[[], None]:
    """A call of a library's function with tensors and numbers. It keeps the tensors: of a tensor that nobody has, torch
    gives the memory to the next."""
    words = [ctypes.c_int(g) if isinstance(g, int) else ctypes.c_void_p(g.data_ptr()) for g in given]

    def launch(_kept: tuple[Any, ...] = given) -> None:
        if status := function(*words, ctypes.c_void_p(0)):
            raise RuntimeError(f"CUTLASS says {status}")

    return launch


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "allpairs-peers.csv")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--configuration", help="in place of the policy file's choice")
    parser.add_argument("--tuned-on", help="the device whose entries are run; default: this one")
    parser.add_argument("--no-rungs", action="store_true", help="leave the primer's rungs out")
    parser.add_argument("--cutlass", type=Path, action="append", default=[], help="a library")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(words)
    workloads = given.workload or ("primer", "hapmap3", "wide")
    every = {name: inputs_of(FAMILY, name, given.data) for name in workloads}
    if given.check:
        for library in given.cutlass:
            print(f"{library}: {'here' if library.exists() else 'not here'}")
        texts = [*RUNGS, *([given.configuration] if given.configuration else [])]
        return check(FAMILY, every.values(), texts, peers=("torch",), device=given.device)
    rows = []
    with closing(open_backend(given.device)) as backend, backend.current():
        for name, inputs in every.items():
            tuned: Configuration | str = given.configuration or entry(
                FAMILY, given.policies, given.tuned_on or backend.device.slug, name
            )
            chosen: dict[str, Configuration | str] = {
                TUNED: tuned,
                **{f"autotune: {rung}": rung for rung in (() if given.no_rungs else RUNGS)},
            }
            rows += compare(backend, name, inputs, chosen, given.rounds, given.cutlass)
            write_rows(given.out, rows)
    return 0


def compare(
    backend: Backend,
    workload: str,
    inputs: Inputs,
    chosen: dict[str, Configuration | str],
    rounds: int,
    libraries: Sequence[Path],
) -> list[dict[str, Any]]:
    expected, _ = compute_expected(FAMILY, inputs, default_root())
    resident = Resident(backend, inputs, most=len(chosen) + 1)
    verifier = Verifier(backend, FAMILY, expected)
    plans: dict[str, Callable[[], Any]] = {}
    executions = bound(resident, variants_of(FAMILY, chosen.values(), inputs.options))
    for name, execution in zip(chosen, executions, strict=True):
        reason, _ = verifier.run(execution, cold=True)
        assert not reason, f"{name}: {reason}"
        plans[name] = execution.run
    version = ""
    if backend.device.kind == "cuda":
        torch = import_module("torch")
        version = torch.__version__
        want = torch.from_numpy(expected["distance"]).cuda()
        genotypes = inputs.arrays["genotypes"]
        peers = torch_plans(genotypes)
        for library in libraries:
            peers |= cutlass_plans(genotypes, library)
        for name, (plan, finish) in peers.items():
            try:
                equal = torch.equal(finish(plan()), want)
            except RuntimeError as problem:
                print(f"{name}: left out: {problem}")
                continue
            if not equal:
                print(f"{name}: left out: its distances differ from ours")
                continue
            plans[name] = plan
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in plans}
    quick = {name: backend.sample(plan, 1, True)[0] for name, plan in plans.items()}
    for _ in range(rounds):
        for name, plan in plans.items():
            times[name] += backend.sample(plan, 3 if quick[name] < 50 else 1, True)
    verifier.close()
    resident.close()
    about = backend.describe()
    return [_row(workload, inputs, name, values, median(times[TUNED]), {
        "device": backend.device.name, "driver": about.get("driver", ""),
        "clock_mhz": about.get("clock_mhz", ""), "torch": version, "configuration": str(chosen[TUNED]),
    }) for name, values in times.items()]  # fmt: skip


def _row(
    workload: str, inputs: Inputs, name: str, values: Sequence[float], best: float, about: dict[str, Any]
) -> dict[str, Any]:
    ms = median(values)
    compares = inputs.sizes["instances"] ** 2 * inputs.sizes["attributes"]
    row = {
        "workload": workload, "instances": inputs.sizes["instances"], "attributes": inputs.sizes["attributes"],
        "what": name, "median_ms": round(ms, 6), "spread_relative": round(spread(values), 5),
        "samples": len(values), "times_the_tuned": round(ms / best, 3),
        "compares_per_s": f"{compares / ms * 1e3:.4g}", **about,
    }  # fmt: skip
    print(
        f"{workload:10} {name:38} {ms:12.5f} ms  {ms / best:9.2f} x tuned  {row['compares_per_s']} compares/s"
    )
    return row


if __name__ == "__main__":
    sys.exit(main())
