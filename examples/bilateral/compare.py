"""The tuned kernel beside the plain one and torch, in one run.

    autotune sweep ./examples/bilateral --workload 4k --device cuda
    python examples/bilateral/compare.py --workload 4k --out compare-bilateral.csv

Needs a GPU, PyCUDA and cupy; torch is left out, with a word, where it is not installed. All results are compared with
the float64 reference first: of the pixels, no more than one in a thousand may differ, each by rounding. How the times
are taken is said in comparison.py. torch has no bilateral filter: what it is given is the sum over windows of pixels as
one writes it in torch, once by its operators and once compiled by torch.compile.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import Inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK_X, BLOCK_Y = 32, 8


def plain(inputs: Inputs) -> Way:
    """plain.cu with the workload's radius."""
    cupy = import_module("cupy")
    text = (FOLDER / "plain.cu").read_text()
    told = text.replace("#define RADIUS 4", f"#define RADIUS {inputs.options['radius']}")
    kernel = cupy.RawKernel(told, "bilateral", options=("-std=c++17",))
    image, space, likeness = (cupy.asarray(inputs.arrays[name]) for name in ("image", "space", "range"))
    smooth = cupy.empty_like(image)
    height, width = image.shape
    grid = (-(-width // BLOCK_X), -(-height // BLOCK_Y))
    given = (image, space, likeness, smooth, np.int32(height), np.int32(width))
    return Way(
        lambda: kernel(grid, (BLOCK_X, BLOCK_Y), given), lambda: cupy.asnumpy(smooth), cupy.__version__
    )


def _in_torch(inputs: Inputs, compiled: bool) -> Way:
    torch = import_module("torch")
    image, space, likeness = (
        torch.from_numpy(inputs.arrays[name]).cuda() for name in ("image", "space", "range")
    )
    side = len(inputs.arrays["space"])

    def smooth(image: Any) -> Any:
        far = torch.nn.functional.pad(image.float()[None, None], (side // 2,) * 4, mode="replicate")[0, 0]
        pixel = far.int().unfold(0, side, 1).unfold(1, side, 1)  # height, width, side, side
        weight = space * likeness[abs(pixel - image.int()[:, :, None, None])]
        return ((weight * pixel).sum((2, 3)) / weight.sum((2, 3)) + 0.5).to(torch.uint8)

    call: Callable[[Any], Any] = torch.compile(smooth) if compiled else smooth
    return Way(lambda: call(image), lambda: call(image).cpu().numpy(), torch.__version__)


def by_torch(inputs: Inputs) -> Way:
    """Operator by operator."""
    return _in_torch(inputs, compiled=False)


def by_torch_compile(inputs: Inputs) -> Way:
    """Fused into one kernel of Triton's."""
    return _in_torch(inputs, compiled=True)


if __name__ == "__main__":
    ways = {"plain.cu": plain, "torch": by_torch, "torch.compile": by_torch_compile}
    compare(__doc__, FOLDER, ways, allowed=1e-3)
