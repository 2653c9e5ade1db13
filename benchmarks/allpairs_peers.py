"""All-pairs distance beside torch, in one run: our tuned configuration, the primer's rungs, torch.cdist(p=0), and
the strongest general formulation, torch._int_mm on a rank-2 int8 encoding.

    python benchmarks/allpairs_peers.py --policies policies --data DATA --out benchmarks/results/allpairs-peers.csv

Needs a CUDA device, PyCUDA and torch. Every result is compared with ours exactly before it is timed; rounds are
interleaved; inputs are resident on the device for all; the median and the 95 % interval are kept. ``--device cpu``
leaves torch out, and shows that the script works.
"""

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


def rank_2(genotypes: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """U, W int8 (N, 2A): u_a . w_b is 2 when a == b, else -1, so D = (2A - U W^T) / 3 exactly (values 0..2)."""
    torch = import_module("torch")
    u = np.array([(2, -1), (-1, 2), (-1, -1)], np.int8)[genotypes].reshape(len(genotypes), -1)
    w = np.array([(1, 0), (0, 1), (-1, -1)], np.int8)[genotypes].reshape(len(genotypes), -1)
    pad = [(0, -len(u) % 32), (0, -u.shape[1] % 32)]
    return tuple(torch.from_numpy(np.pad(m, pad)).cuda() for m in (u, w))


def torch_plans(genotypes: np.ndarray[Any, Any]) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Name -> (what is timed, how its result becomes D)."""
    torch = import_module("torch")
    n, attributes = genotypes.shape
    values = torch.from_numpy(genotypes.astype(np.float32)).cuda()
    plans: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "torch.cdist(p=0)": (lambda: torch.cdist(values, values, p=0), lambda d: d.round().int())
    }
    if genotypes.max() <= 2:
        u, w = rank_2(genotypes)
        wt = w.t()

        def product() -> Any:
            return torch._int_mm(u, wt)  # noqa: SLF001 - torch has no public name for it

        def distance() -> Any:
            return product().neg_().add_(2 * attributes).floor_divide_(3)[:n, :n]

        plans["torch._int_mm rank-2 + epilogue"] = (distance, lambda d: d)
        plans["torch._int_mm rank-2, product alone"] = (
            product, lambda p: ((2 * attributes - p) // 3)[:n, :n]
        )  # fmt: skip
    return plans


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "allpairs-peers.csv")
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--configuration", help="in place of the policy file's choice")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(words)
    workloads = given.workload or ("primer", "hapmap3", "wide")
    every = {name: inputs_of(FAMILY, name, given.data) for name in workloads}
    if given.check:
        texts = [*RUNGS, *([given.configuration] if given.configuration else [])]
        return check(FAMILY, every.values(), texts, peers=("torch",), device=given.device)
    rows = []
    with closing(open_backend(given.device)) as backend, backend.current():
        for name, inputs in every.items():
            tuned: Configuration | str = given.configuration or entry(
                FAMILY, given.policies, backend.device.slug, name
            )
            chosen: dict[str, Configuration | str] = {
                TUNED: tuned,
                **{f"autotune: {rung}": rung for rung in RUNGS},
            }
            rows += compare(backend, name, inputs, chosen, given.rounds)
    write_rows(given.out, rows)
    return 0


def compare(
    backend: Backend, workload: str, inputs: Inputs, chosen: dict[str, Configuration | str], rounds: int
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
        for name, (plan, finish) in torch_plans(inputs.arrays["genotypes"]).items():
            assert torch.equal(finish(plan()), want), f"{name} differs"
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
        "clock_mhz": about.get("clock_mhz", ""), "torch": version,
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
