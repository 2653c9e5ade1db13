"""The tuned kernel beside the plain one, torch and numba, in one run.

    autotune sweep ./examples/nbody --workload plummer-64k --device cuda
    python examples/nbody/compare.py --workload plummer-64k --out compare-nbody.csv

Needs a GPU, PyCUDA and cupy; torch and numba are left out, with a word, where they are not installed. All results are
compared with the float64 sum first; how the times are taken is said in comparison.py.
"""

import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Inputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where comparison.py lies
from comparison import Way, compare, plain_way  # type: ignore[import-not-found,unused-ignore]

FOLDER = Path(__file__).resolve().parent
BLOCK = 256


def columns(inputs: Inputs, names: tuple[str, ...]) -> NDArray[np.float32]:
    """These fields of the bodies side by side: (bodies, fields)."""
    return np.stack([inputs.arrays["bodies"][name] for name in names], axis=1)


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    bodies = cupy.asarray(columns(inputs, ("x", "y", "z", "mass")))
    count = len(bodies)
    out = cupy.empty((count, 3), np.float32)
    grid, given = (
        (-(-count // BLOCK),),
        (bodies, out, np.int32(count), np.float32(inputs.scalars["softening"])),
    )
    return plain_way(FOLDER, "nbody", grid, (BLOCK,), given, out)


def by_torch(inputs: Inputs) -> Way:
    """Array operations, 2,048 bodies at a time, as one writes it in torch; compiled by torch.compile."""
    torch = import_module("torch")
    place = torch.from_numpy(columns(inputs, ("x", "y", "z"))).cuda()
    mass = torch.from_numpy(np.ascontiguousarray(inputs.arrays["bodies"]["mass"])).cuda()
    softening = inputs.scalars["softening"]
    out = torch.empty_like(place)

    def pulled(rows: Any, place: Any, mass: Any) -> Any:
        apart = place[None, :, :] - rows[:, None, :]
        inverse = torch.rsqrt((apart * apart).sum(-1) + softening**2)
        return ((mass * inverse * inverse * inverse)[:, :, None] * apart).sum(1)

    compiled = torch.compile(pulled)

    def call() -> None:
        for first in range(0, len(place), 2048):
            out[first : first + 2048] = compiled(place[first : first + 2048], place, mass)

    return Way(call, lambda: out.cpu().numpy(), torch.__version__)


def by_numba(inputs: Inputs) -> Way:
    """plain.cu in Python."""
    numba, cuda = import_module("numba"), import_module("numba.cuda")
    count = len(inputs.arrays["bodies"])
    given = cuda.to_device(columns(inputs, ("x", "y", "z", "mass")))
    out = cuda.device_array((count, 3), np.float32)
    softening2 = np.float32(inputs.scalars["softening"]) ** 2

    @cuda.jit(fastmath=True)  # type: ignore[untyped-decorator,unused-ignore]
    def kernel(bodies: Any, out: Any, softening2: Any) -> None:
        i = cuda.grid(1)
        if i >= bodies.shape[0]:
            return
        x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
        ax = ay = az = np.float32(0)
        for j in range(bodies.shape[0]):
            dx, dy, dz = bodies[j, 0] - x, bodies[j, 1] - y, bodies[j, 2] - z
            square = dx * dx + dy * dy + dz * dz + softening2
            pull = bodies[j, 3] / (square * math.sqrt(square))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

    launched = kernel[-(-count // BLOCK), BLOCK]
    return Way(lambda: launched(given, out, softening2), out.copy_to_host, numba.__version__)


if __name__ == "__main__":
    ways = {"plain.cu": plain, "torch.compile": by_torch, "numba.cuda": by_numba}
    compare(__doc__, FOLDER, ways, allowed=1e-4)
