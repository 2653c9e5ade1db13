"""The tuned kernel beside the plain one, cuSPARSE and torch, in one run.

    autotune sweep ./examples/spmv --workload stencil-96 --device cuda
    python examples/spmv/compare.py --workload stencil-96 --out compare-spmv.csv

Needs a GPU, PyCUDA and cupy, whose sparse matrices are multiplied by cuSPARSE; torch is left out, with a word, where it
is not installed. All results are compared with scipy's in float64 first; how the times are taken is said in
comparison.py.
"""

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


def parts(inputs: Inputs) -> tuple[NDArray[Any], ...]:
    """CSR as libraries have it: values, columns, offsets; and x."""
    entries, offsets = inputs.arrays["csr_entries"], inputs.arrays["csr_offsets"]
    values = np.ascontiguousarray(entries["value"])
    return values, entries["column"].astype(np.int32), offsets.astype(np.int32), inputs.arrays["x"]


def shape(inputs: Inputs) -> tuple[int, int]:
    return inputs.sizes["row"], inputs.sizes["column"]


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    values, columns, offsets, x = map(cupy.asarray, parts(inputs))
    rows = inputs.sizes["row"]
    out = cupy.empty(rows, np.float32)
    grid, given = (-(-rows // BLOCK),), (offsets, columns, values, x, out, np.int32(rows))
    return plain_way(FOLDER, "spmv", grid, (BLOCK,), given, out)


def by_cusparse(inputs: Inputs) -> Way:
    """cusparseSpMV itself, into an array that is there; its buffer is allocated by CuPy's pool."""
    cupy, cusparse, sparse = map(import_module, ("cupy", "cupyx.cusparse", "cupyx.scipy.sparse"))
    values, columns, offsets, x = map(cupy.asarray, parts(inputs))
    matrix = sparse.csr_matrix((values, columns, offsets), shape=shape(inputs))
    out = cupy.zeros(inputs.sizes["row"], np.float32)
    return Way(lambda: cusparse.spmv(matrix, x, y=out), lambda: cupy.asnumpy(out), cupy.__version__)


def by_cupy(inputs: Inputs) -> Way:
    """A @ x: what CuPy makes of it, the allocation of y included."""
    cupy, sparse = import_module("cupy"), import_module("cupyx.scipy.sparse")
    values, columns, offsets, x = map(cupy.asarray, parts(inputs))
    matrix = sparse.csr_matrix((values, columns, offsets), shape=shape(inputs))
    return Way(lambda: matrix @ x, lambda: cupy.asnumpy(matrix @ x), cupy.__version__)


def by_torch(inputs: Inputs) -> Way:
    """A @ x of torch's sparse tensors, the allocation of y included."""
    torch = import_module("torch")
    values, columns, offsets, x = (torch.from_numpy(part).cuda() for part in parts(inputs))
    matrix = torch.sparse_csr_tensor(offsets, columns, values, size=shape(inputs))
    return Way(lambda: matrix @ x, lambda: (matrix @ x).cpu().numpy(), torch.__version__)


if __name__ == "__main__":
    ways = {"plain.cu": plain, "cusparseSpMV": by_cusparse, "cupy A @ x": by_cupy, "torch A @ x": by_torch}
    compare(__doc__, FOLDER, ways, allowed=1e-5)
