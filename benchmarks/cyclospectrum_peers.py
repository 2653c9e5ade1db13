"""The sorted spectrum beside torch and cupy, in one run: our tuned configuration; prefix differences with torch.sort;
the same with cupy's sort, where cupy is there.

    python benchmarks/cyclospectrum_peers.py --policies policies --out benchmarks/results/cyclospectrum-peers.csv

Needs a CUDA device, PyCUDA and torch. All results are compared before anything is timed; masses are on the device for
all; caches are flushed before each call; rounds are interleaved; the median and its 95 % interval are kept.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotune.declaration import bind, load_family
from autotune.dispatch import load
from autotune.measure import median, spread

FAMILY = load_family("cyclospectrum")
_ROUNDS = 9


def differences(masses: torch.Tensor) -> torch.Tensor:
    """0, the total, and every difference of prefix sums, as int32 (n (n - 1) + 2), not sorted."""
    n = masses.numel()
    before = torch.zeros(2 * n + 1, dtype=torch.int32, device="cuda")
    before[1:] = torch.cumsum(torch.cat((masses, masses)), 0)
    windows = before[1:].unfold(0, n - 1, 1)[:n]  # [start, length - 1]
    spectrum = torch.empty(n * (n - 1) + 2, dtype=torch.int32, device="cuda")
    torch.sub(windows, before[:n, None], out=spectrum[:-2].view(n, n - 1))
    spectrum[-2] = 0
    spectrum[-1] = before[n]
    return spectrum


def peers(masses: np.ndarray[Any, Any]) -> dict[str, Callable[[], Any]]:
    on_device = torch.from_numpy(masses).cuda()
    plans: dict[str, Callable[[], Any]] = {
        "torch prefix differences + torch.sort": lambda: torch.sort(differences(on_device)).values
    }
    try:
        import cupy
    except ImportError:
        return plans

    def by_cupy() -> Any:
        keys = cupy.from_dlpack(differences(on_device))
        keys.sort()
        return keys

    plans["torch prefix differences + cupy sort in place"] = by_cupy
    return plans


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--policies", type=Path, default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    arguments = parser.parse_args()
    torch.cuda.init()
    with (
        load("cyclospectrum", "cuda", arguments.policies) as kernel,
        arguments.out.open("w", newline="") as file,
    ):
        backend: Any = kernel._backend  # noqa: SLF001 - timed with the tuner's own sampling
        rows = csv.writer(file)
        rows.writerow(["residues", "what", "ms", "spread", "samples", "times_ours", "equal"])
        for residues in arguments.sizes:
            made = FAMILY.module.inputs({"residues": residues, "seed": residues}, Path())  # type: ignore[union-attr]
            prepared = kernel.prepare(bind(FAMILY, made, {}, {}))
            prepared.execution.run()
            words = backend.download(prepared.execution.placed["spectrum"]).view(np.int32)
            ours = torch.from_numpy(words[: residues * (residues - 1) + 2]).cuda()
            plans: dict[str, Callable[[], Any]] = {
                "autotune": prepared.execution.run,
                **peers(made["residues"]),
            }
            equal = dict.fromkeys(plans, True)
            times: dict[str, list[float]] = {name: [] for name in plans}
            for name, plan in plans.items():
                if name != "autotune":
                    with backend.current():
                        equal[name] = bool((torch.as_tensor(plan(), device="cuda") == ours).all())
            del ours
            for _ in range(arguments.rounds):
                for name, plan in plans.items():
                    times[name] += backend.sample(plan, 1, True)
            mine = median(times["autotune"])
            for name, taken in times.items():
                ms = median(taken)
                rows.writerow(
                    [
                        residues,
                        name,
                        f"{ms:.4f}",
                        f"{spread(taken):.4f}",
                        len(taken),
                        f"{ms / mine:.2f}",
                        equal[name],
                    ]
                )
                print(
                    residues,
                    name,
                    f"{ms:.4f} ms",
                    f"{ms / mine:.2f} x ours",
                    "equal" if equal[name] else "NOT EQUAL",
                )
            print(prepared.variant.configuration.id)
            prepared.close()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
