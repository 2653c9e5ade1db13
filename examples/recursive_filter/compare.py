"""Times the tuned plan beside plain.cu and torch in one run, each result checked against the reference.

    python examples/recursive_filter/compare.py [--workload NAME] [--policies DIR] [--out FILE]

Needs a GPU, PyCUDA and cupy; torch where it is to be compared. It has no recursive filter: there, smoothing a line is a
product with a matrix, the same for all lines, made beforehand. See ../comparison.py for how times are taken.
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import Inputs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from comparison import PLAIN, Way, compare  # noqa: E402 - it lies beside the examples

ALLOWED = 1e-5  # largest difference from the reference, over the largest magnitude
THREADS = 128


def of(inputs: Inputs) -> tuple[np.float32, np.float32, int, int]:
    """The numbers of a call."""
    smooth, amount = np.float32(inputs.scalars["smooth"]), np.float32(inputs.scalars["amount"])
    return smooth, amount, int(inputs.scalars["passes"]), int(inputs.scalars["reach"])


def plain(inputs: Inputs) -> Way:
    cupy = import_module("cupy")
    source = (HERE / "plain.cu").read_text()
    columns, rows, sharpen = (
        cupy.RawKernel(source, name, ("--std=c++17",))
        for name in ("smooth_columns", "smooth_rows", "sharpen")
    )
    image = cupy.asarray(inputs.arrays["image"])
    frames, height, width = image.shape
    down, across, sharp = (cupy.empty_like(image) for _ in range(3))
    smooth, amount, passes, reach = of(inputs)
    sizes = (np.int32(frames), np.int32(height), np.int32(width), smooth, np.int32(passes))

    def blocks(threads: int) -> tuple[int]:
        return (-(-threads // THREADS),)

    def call() -> None:
        columns(blocks(frames * width), (THREADS,), (image, down, *sizes))
        rows(blocks(frames * height), (THREADS,), (down, across, *sizes))
        points = -(-width // 32), -(-height // 8), frames
        shape = np.int32(height), np.int32(width)
        sharpen(points, (32, 8), (image, across, sharp, *shape, amount, np.int32(reach)))

    return Way(call, lambda: cupy.asnumpy(sharp), cupy.__version__)


def torch_matrices(inputs: Inputs) -> Way:
    torch = import_module("torch")
    smooth, amount, passes, reach = of(inputs)
    image = torch.from_numpy(inputs.arrays["image"]).cuda()

    def matrix(length: int) -> NDArray[np.float32]:
        return smoothing(length, float(smooth), passes)

    down = torch.from_numpy(matrix(image.shape[1])).cuda()
    across = torch.from_numpy(np.ascontiguousarray(matrix(image.shape[2]).T)).cuda()
    found = torch.empty_like(image)

    def call() -> None:
        smoothed = torch.matmul(torch.matmul(down, image), across)
        if reach:
            around = torch.nn.functional.pad(smoothed, (reach,) * 4, mode="replicate")
            smoothed = torch.nn.functional.avg_pool2d(around, 2 * reach + 1, stride=1)
        torch.add(image, image - smoothed, alpha=float(amount), out=found)

    return Way(call, lambda: found.cpu().numpy(), torch.__version__)


def smoothing(length: int, share: float, passes: int) -> NDArray[np.float32]:
    """The matrix that smooths a line of so many values."""
    found = np.eye(length)
    for _ in range(passes):
        for line in (found, found[::-1]):
            for i in range(1, length):
                line[i] = line[i - 1] + share * (line[i] - line[i - 1])
    return found.astype(np.float32)


if __name__ == "__main__":
    compare(
        __doc__, HERE,
        {PLAIN: plain, "torch matmul": torch_matrices},
        ALLOWED,
    )  # fmt: skip
