"""The tuned kernel beside the plain one, cupy and torch, in one run.

    autotune sweep ./examples/lattice_boltzmann --workload square-2048 --device cuda
    python examples/lattice_boltzmann/compare.py --workload square-2048 --out compare-lattice_boltzmann.csv

Needs a GPU, PyCUDA and cupy; torch is left out, with a word, where it is not installed. All results are compared with
the float64 reference first; how the times are taken is said in comparison.py. All hold the populations as float32.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import Inputs, load_family

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare, plain_way  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK = 128


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is: one array for all directions, one after the other."""
    cupy = import_module("cupy")
    before = cupy.asarray(inputs.arrays["populations"])
    after = cupy.empty_like(before)
    _, rows, columns = before.shape
    given = (before, after, np.uint32(rows), np.uint32(columns), np.float32(inputs.scalars["omega"]))
    return plain_way(FOLDER, "lattice_boltzmann", (-(-columns // BLOCK), rows), (BLOCK,), given, after)


def by_cupy(inputs: Inputs) -> Way:
    """plain.cu's arithmetic as cupy's ElementwiseKernel, whose loop over the cells is cupy's."""
    cupy = import_module("cupy")
    text = (FOLDER / "plain.cu").read_text()
    body = text[text.index("{\n") + 2 : text.rindex("}")]
    its_own = body[body.index("  const unsigned cells") : body.index("  const unsigned from_x")]
    cells = "const unsigned cells = rows * columns, x = i % columns, y = i / columns;\n"
    kernel = cupy.ElementwiseKernel(
        "raw float32 before, uint32 rows, uint32 columns, float32 omega",
        "raw float32 after",
        body.replace(its_own, cells),
        "elementwise",
    )
    before = cupy.asarray(inputs.arrays["populations"])
    after = cupy.empty_like(before)
    _, rows, columns = before.shape
    omega = np.float32(inputs.scalars["omega"])
    return Way(
        lambda: kernel(before, np.uint32(rows), np.uint32(columns), omega, after, size=rows * columns),
        lambda: cupy.asnumpy(after),
        cupy.__version__,
    )


def by_torch(inputs: Inputs) -> Way:
    """Rolled arrays and their sums, as one writes it in torch."""
    torch = import_module("torch")
    flow: Any = load_family(str(FOLDER)).module
    ways = list(zip(flow.RIGHT.tolist(), flow.DOWN.tolist(), flow.WEIGHT.tolist(), strict=True))
    before, omega = torch.from_numpy(inputs.arrays["populations"]).cuda(), float(inputs.scalars["omega"])

    def step() -> Any:
        moved = [torch.roll(before[i], (down, right), (0, 1)) for i, (right, down, _) in enumerate(ways)]
        density = sum(moved)
        share = 1 / (1 + density)
        u = sum(right * each for (right, _, _), each in zip(ways, moved, strict=True) if right) * share
        v = sum(down * each for (_, down, _), each in zip(ways, moved, strict=True) if down) * share
        relaxed = []
        for (right, down, weight), each in zip(ways, moved, strict=True):
            along = 3 * (right * u + down * v)
            change = along + 0.5 * along * along - 1.5 * (u * u + v * v)
            relaxed.append(each + omega * (weight * (density + change + density * change) - each))
        return torch.stack(relaxed)

    return Way(step, lambda: step().cpu().numpy(), torch.__version__)


if __name__ == "__main__":
    compare(
        __doc__,
        FOLDER,
        {"plain.cu": plain, "cupy ElementwiseKernel": by_cupy, "torch roll": by_torch},
        allowed=1e-5,
    )
