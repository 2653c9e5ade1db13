"""The tuned kernel beside the plain one and torch, in one run.

    autotune sweep ./examples/hash_grid --workload scattered --device cuda
    python examples/hash_grid/compare.py --workload scattered --out compare-hash_grid.csv

Needs a GPU, PyCUDA and cupy; torch is left out, with a word, where it is not installed. All results are compared with
family.py's sum in float64 first, and their largest difference is in the table; how the times are taken is said in
comparison.py. The tuned kernel is there in single precision, and as a program gets it that allows a larger error. torch
gathers the features of all corners of a level and sums them up, in single and in half precision.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import Inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare, numbers, plain_way  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK = 256


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    points, table = (cupy.asarray(numbers(inputs.arrays[name])) for name in ("points", "table"))
    scale, resolution = (cupy.asarray(inputs.arrays[name]) for name in ("scale", "resolution"))
    count, (levels, entries) = len(points), table.shape[:2]
    out = cupy.empty((count, levels, 2), np.float32)
    given = (points, table, scale, resolution, np.uint32(count), np.uint32(levels), np.uint32(entries), out)
    return plain_way(FOLDER, "hash_grid", (-(-count // BLOCK),), (BLOCK,), given, out)


def by_torch(half: bool) -> Any:
    """Level by level: the corners' entries by whole-number arithmetic, a gather, a weighted sum."""

    def make(inputs: Inputs) -> Way:
        torch = import_module("torch")
        kind = torch.float16 if half else torch.float32
        points = torch.from_numpy(numbers(inputs.arrays["points"])).cuda()
        table = torch.from_numpy(numbers(inputs.arrays["table"])).cuda().to(kind)
        corners = torch.tensor([[k & 1, k >> 1 & 1, k >> 2] for k in range(8)], device="cuda")
        primes = torch.tensor([1, 2654435761, 805459861], device="cuda")
        levels = [
            (features, float(scale), int(side))
            for features, scale, side in zip(
                table, inputs.arrays["scale"], inputs.arrays["resolution"], strict=True
            )
        ]

        def level(features: Any, scale: float, side: int) -> Any:
            place = points * scale + 0.5
            cell = place.floor()
            inside = (place - cell)[:, None]
            at = cell.long()[:, None] + corners
            if side**3 <= len(features):
                entry = at[..., 0] + side * (at[..., 1] + side * at[..., 2])
            else:
                hashed = at * primes
                entry = (hashed[..., 0] ^ hashed[..., 1] ^ hashed[..., 2]) & (len(features) - 1)
            weight = torch.where(corners == 1, inside, 1 - inside).prod(-1).to(kind)
            return (features[entry] * weight[..., None]).sum(1)

        def encode() -> Any:
            return torch.stack([level(*one) for one in levels], 1)

        return Way(encode, lambda: encode().float().cpu().numpy(), torch.__version__)

    return make


if __name__ == "__main__":
    ways = {"plain.cu": plain, "torch, float32": by_torch(False), "torch, float16": by_torch(True)}
    compare(__doc__, FOLDER, ways, allowed=0.02, bounds=(1e-3, 1e-2))
