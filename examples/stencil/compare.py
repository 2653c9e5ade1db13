"""The tuned kernel beside the plain one, cupy and torch, in one run.

    autotune sweep ./examples/stencil --workload cube --device cuda
    python examples/stencil/compare.py --workload cube --out compare-stencil.csv

Needs a GPU, PyCUDA and cupy; torch is left out, with a word, where it is not installed. All results are compared with
the float64 reference first; how the times are taken is said in comparison.py. torch computes in float32 proper (no
TF32).
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import Inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare, plain_way  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK_X, BLOCK_Y = 32, 8


def weights(inputs: Inputs) -> NDArray[np.float32]:
    """The stencil as the 3 x 3 x 3 filter of a convolution."""
    made = np.zeros((3, 3, 3), np.float32)
    made[1, 1, :] = made[1, :, 1] = made[:, 1, 1] = inputs.scalars["side"]
    made[1, 1, 1] = inputs.scalars["centre"]
    return made


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    field = cupy.asarray(inputs.arrays["field"])
    result = cupy.empty_like(field)
    planes, rows, columns = field.shape
    grid = (-(-columns // BLOCK_X), -(-rows // BLOCK_Y), planes)
    sizes = (np.int32(planes), np.int32(rows), np.int32(columns))
    given = (field, result, *sizes, *(np.float32(inputs.scalars[name]) for name in ("centre", "side")))
    return plain_way(FOLDER, "stencil", grid, (BLOCK_X, BLOCK_Y), given, result)


def by_cupy(inputs: Inputs) -> Way:
    """A general convolution."""
    cupy, ndimage = import_module("cupy"), import_module("cupyx.scipy.ndimage")
    field, filters = cupy.asarray(inputs.arrays["field"]), cupy.asarray(weights(inputs))
    result = cupy.empty_like(field)
    return Way(
        lambda: ndimage.convolve(field, filters, output=result, mode="constant"),
        lambda: cupy.asnumpy(result),
        cupy.__version__,
    )


def by_torch(inputs: Inputs) -> Way:
    """A general convolution, by cuDNN."""
    torch = import_module("torch")
    torch.backends.cudnn.allow_tf32 = False
    field, filters = (
        torch.from_numpy(array).cuda()[None, None] for array in (inputs.arrays["field"], weights(inputs))
    )
    return Way(
        lambda: torch.nn.functional.conv3d(field, filters, padding=1),
        lambda: torch.nn.functional.conv3d(field, filters, padding=1)[0, 0].cpu().numpy(),
        torch.__version__,
    )


if __name__ == "__main__":
    ways = {"plain.cu": plain, "cupyx ndimage.convolve": by_cupy, "torch conv3d": by_torch}
    compare(__doc__, FOLDER, ways, allowed=1e-5)
