"""All-pairs distance beside torch, in one run: our tuned configuration, the primer's rungs, torch.cdist(p=0), and
the strongest general formulation, torch._int_mm on a rank-2 int8 encoding.

    python benchmarks/allpairs_peers.py --policies policies --data DATA --out benchmarks/results/allpairs-peers.csv

Needs a CUDA device, PyCUDA and torch. Every result is compared with ours exactly before it is timed; rounds are
interleaved; inputs are resident on the device for all; the median and the 95 % interval are kept.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotune.compile import Cache, CompileFailure, Variant, batch, compile_batch, default_root
from autotune.declaration import Configuration, load_family, load_workload, prepare
from autotune.device import CudaBackend, Resident
from autotune.files import bundled
from autotune.measure import Verifier, expected_outputs, median, spread
from autotune.policy import file_name
from autotune.policy import read_policy_file as read


def rank_2(genotypes: np.ndarray[Any, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """U, W int8 (N, 2A): u_a . w_b is 2 when a == b, else -1, so D = (2A - U W^T) / 3 exactly (values 0..2)."""
    u = np.array([(2, -1), (-1, 2), (-1, -1)], np.int8)[genotypes].reshape(len(genotypes), -1)
    w = np.array([(1, 0), (0, 1), (-1, -1)], np.int8)[genotypes].reshape(len(genotypes), -1)
    pad = [(0, -len(u) % 32), (0, -u.shape[1] % 32)]
    return tuple(torch.from_numpy(np.pad(m, pad)).cuda() for m in (u, w))  # type: ignore[return-value]


def torch_plans(genotypes: np.ndarray[Any, Any]) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Name -> (what is timed, how its result becomes D)."""
    n, attributes = genotypes.shape
    values = torch.from_numpy(genotypes.astype(np.float32)).cuda()
    plans: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "torch.cdist(p=0)": (lambda: torch.cdist(values, values, p=0), lambda d: d.round().int())
    }
    if genotypes.max() <= 2:
        u, w = rank_2(genotypes)
        wt = w.t()

        def product() -> torch.Tensor:
            return torch._int_mm(u, wt)  # noqa: SLF001 - torch has no public name for it

        def distance() -> torch.Tensor:
            return product().neg_().add_(2 * attributes).floor_divide_(3)[:n, :n]

        plans["torch._int_mm rank-2 + epilogue"] = (distance, lambda d: d)
        plans["torch._int_mm rank-2, product alone"] = (
            product, lambda p: ((2 * attributes - p) // 3)[:n, :n]
        )  # fmt: skip
    return plans


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policies", type=Path, default=Path("policies"))
    parser.add_argument("--data", type=Path, default=bundled("workloads") / "data")
    parser.add_argument("--out", type=Path, default=Path("allpairs-peers.csv"))
    parser.add_argument("--workload", action="append")
    arguments = parser.parse_args()
    family = load_family("allpairs")
    rows = []
    with CudaBackend(0) as backend:
        policies = read(arguments.policies / file_name(family.name, backend.device.slug))
        for name in arguments.workload or ("primer", "hapmap3", "wide"):
            workload = load_workload(family, name)
            inputs = prepare(family, workload, arguments.data)
            chosen = {"autotune: tuned": Configuration(policies.entries[name].configuration)}
            for rung in ("naive", "coalesced", "char", "register", "shared"):
                chosen[f"autotune: {rung}"] = family.space.configuration(rung)
            expected, _ = expected_outputs(family, inputs, default_root())
            rows += compare(backend, family, workload.name, inputs, chosen, expected)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def compare(
    backend: CudaBackend, family: Any, workload: str, inputs: Any, chosen: Any, expected: Any
) -> list[Any]:
    resident = Resident(backend, inputs, most=len(chosen) + 1)
    verifier = Verifier(backend, family, expected)
    plans: dict[str, Callable[[], Any]] = {}
    for name, configuration in chosen.items():
        variant = Variant.of(family, configuration, inputs.options)
        (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(default_root()))
        assert not isinstance(compiled, CompileFailure), compiled
        execution = resident.execution(variant, backend.load(compiled))
        reason, _ = verifier.run(execution, cold=True)
        assert not reason, f"{name}: {reason}"
        plans[name] = execution.run
    want = torch.from_numpy(expected["distance"]).cuda()
    for name, (plan, finish) in torch_plans(inputs.arrays["genotypes"]).items():
        assert torch.equal(finish(plan()), want), f"{name} differs"
        plans[name] = plan
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in plans}
    quick = {name: backend.sample(plan, 1, True)[0] for name, plan in plans.items()}
    for _ in range(15):
        for name, plan in plans.items():
            times[name] += backend.sample(plan, 3 if quick[name] < 50 else 1, True)
    best = median(times["autotune: tuned"])
    compares = inputs.sizes["instances"] ** 2 * inputs.sizes["attributes"]
    rows = []
    for name, values in times.items():
        ms = median(values)
        row = {
            "workload": workload, "instances": inputs.sizes["instances"], "attributes": inputs.sizes["attributes"],
            "what": name, "median_ms": round(ms, 6), "spread_relative": round(spread(values), 5),
            "samples": len(values),
            "times_the_tuned": round(ms / best, 3), "compares_per_s": f"{compares / ms * 1e3:.4g}",
            "device": backend.device.name, "driver": backend.describe()["driver"],
            "clock_mhz": backend.describe().get("clock_mhz", ""), "torch": torch.__version__,
        }  # fmt: skip
        rows.append(row)
        print(
            f"{workload:10} {name:38} {ms:12.5f} ms  {ms / best:9.2f} x tuned  {row['compares_per_s']} compares/s"
        )
    verifier.close()
    resident.close()
    return rows


if __name__ == "__main__":
    main()
