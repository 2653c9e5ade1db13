"""The spectrum by autotune, torch and cupy, in one run. Sorted: our tuned configuration; prefix differences and
torch.sort; the same with cupy's sort, where cupy is there. As pairs of mass and count: our tuned configuration; torch's
Fourier transforms in double precision, rounded.

    python benchmarks/cyclospectrum_peers.py --policies policies --out benchmarks/results/cyclospectrum-peers.csv

Needs a CUDA device, PyCUDA and torch. All results are compared before anything is timed; masses are on the device for
all; caches are flushed before each call; rounds are interleaved; the median and its 95 % interval are kept.
``--device cpu`` leaves the peers out, and shows that the script works.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cyclospectrum_exact import inputs_of
from harness import arguments, check
from result_files import write_rows

from autotune.declaration import load_family
from autotune.dispatch import TunedKernel, load
from autotune.measure import spread

FAMILY = load_family("cyclospectrum")
_ROUNDS = 9


def differences(masses: Any) -> Any:
    """0, the total, and every difference of prefix sums, as int32 (n (n - 1) + 2), not sorted."""
    torch = import_module("torch")
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
    torch = import_module("torch")
    on_device = torch.from_numpy(masses).cuda()
    plans: dict[str, Callable[[], Any]] = {
        "torch prefix differences + torch.sort": lambda: torch.sort(differences(on_device)).values
    }
    if find_spec("cupy") is None:
        return plans
    cupy = import_module("cupy")

    def by_cupy() -> Any:
        keys = cupy.from_dlpack(differences(on_device))
        keys.sort()
        return keys

    plans["torch prefix differences + cupy sort in place"] = by_cupy
    return plans


def paired_by_torch(masses: np.ndarray[Any, Any], total: int) -> Callable[[], Any]:
    """The pairs by an autocorrelation of the places of the prefix sums, from transforms of a power of two."""
    torch = import_module("torch")
    on_device = torch.from_numpy(masses).cuda()
    n = on_device.numel()

    def plan() -> Any:
        places = torch.cumsum(on_device, 0) - on_device
        field = torch.zeros(1 << (2 * total).bit_length(), dtype=torch.float64, device="cuda")
        field.index_add_(0, places, torch.ones(n, dtype=torch.float64, device="cuda"))
        spectrum = torch.fft.rfft(field)
        apart = torch.fft.irfft(torch.view_as_complex(_power(torch, spectrum)), n=field.numel())
        counts = torch.round(apart[: total + 1]).to(torch.int32)
        counts[1:total] = counts[1:total] + counts[1:total].flip(0)
        counts[0] = counts[total] = (counts[0] - n) // 2 + 1
        found = torch.nonzero(counts).flatten()
        return torch.stack((found.to(torch.int32), counts[found]), 1)

    return plan


def _power(torch: Any, spectrum: Any) -> Any:
    power = torch.zeros(*spectrum.shape, 2, dtype=torch.float64, device="cuda")
    power[..., 0] = spectrum.real**2 + spectrum.imag**2
    return power


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "cyclospectrum-peers.csv")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--policies", type=Path, default=None)
    parser.add_argument("--sizes", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--pairs", type=int, nargs="*", default=[65536, 1000000], help="residues")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    given = parser.parse_args(words)
    if given.check:
        every = [inputs_of(size, "sorted") for size in given.sizes]
        every += [inputs_of(size, "pairs") for size in given.pairs]
        return check(FAMILY, every, [FAMILY.space.control], peers=("torch", "cupy"), device=given.device)
    rows: list[dict[str, Any]] = []
    with load("cyclospectrum", given.device, given.policies) as kernel:
        for output, sizes in (("list", given.sizes), ("pairs", given.pairs)):
            for residues in sizes:
                rows += compared(kernel, residues, output, given.rounds)
    write_rows(given.out, rows)
    return 0


def compared(kernel: TunedKernel, residues: int, output: str, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each way to make the spectrum of ``residues`` residues."""
    inputs = inputs_of(residues, "pairs" if output == "pairs" else "sorted")
    prepared = kernel.prepare(inputs)
    backend = prepared.execution.backend  # timed with the tuner's own sampling
    with backend.current():
        prepared.execution.run()
        words = backend.download(prepared.execution.placed["spectrum"]).view(np.int32)
        plans: dict[str, Callable[[], Any]] = {"autotune": prepared.execution.run}
        equal = {"autotune": True}
        if kernel.kind == "cuda":
            torch = import_module("torch")
            ours = torch.from_numpy(words[: inputs.sizes["outputs"]]).cuda()
            if output == "pairs":
                masses, total = inputs.arrays["residues"], int(inputs.scalars["total"])
                plans["torch transforms in float64, rounded"] = paired_by_torch(masses, total)
                ours = ours.view(-1, 2)
                ours = ours[ours[:, 1] > 0]
            else:
                plans |= peers(inputs.arrays["residues"])
            for name, plan in plans.items():
                if name != "autotune":
                    equal[name] = bool(torch.equal(torch.as_tensor(plan(), device="cuda"), ours))
            del ours
        times: dict[str, list[float]] = {name: [] for name in plans}
        for _ in range(rounds):
            for name, plan in plans.items():
                times[name] += backend.sample(plan, 1, True)
    mine = median(times["autotune"])
    rows = [
        {
            "residues": residues, "output": output, "what": name, "ms": f"{median(taken):.4f}",
            "spread": f"{spread(taken):.4f}", "samples": len(taken), "times_ours": f"{median(taken) / mine:.2f}",
            "equal": equal[name],
        }
        for name, taken in times.items()
    ]  # fmt: skip
    for row in rows:
        print(f"{residues} {output} {row['what']}: {row['ms']} ms, {row['times_ours']} x ours, "
              f"{'equal' if row['equal'] else 'NOT EQUAL'}")  # fmt: skip
    print(prepared.variant.configuration.id)
    prepared.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
