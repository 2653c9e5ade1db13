"""The tuned kernel beside the plain one, cupy and torch, in one run.

    autotune sweep ./examples/lookup --workload large --device cuda
    python examples/lookup/compare.py --workload large --out compare-lookup.csv

Needs a GPU, PyCUDA and cupy; torch is left out, with a word, where it is not installed. All results are compared with
numpy.searchsorted's first, exactly; how the times are taken is said in comparison.py. The libraries get what they are
made for: keys of a type they can search in, and the values by their own gather.
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
NONE = np.uint32(0xFFFFFFFF)


def plain(inputs: Inputs) -> Way:
    """plain.cu as it is."""
    cupy = import_module("cupy")
    keys, values, queries = (cupy.asarray(inputs.arrays[name]) for name in ("keys", "values", "queries"))
    found = cupy.empty_like(queries)
    grid = (-(-queries.size // BLOCK),)
    given = (keys, values, np.uint32(keys.size), queries, found, np.uint32(queries.size))
    return plain_way(FOLDER, "lookup", grid, (BLOCK,), given, found)


def by_cupy(inputs: Inputs) -> Way:
    """A binary search, then a gather from the values with one more for what is past the end."""
    cupy = import_module("cupy")
    keys, queries = cupy.asarray(inputs.arrays["keys"]), cupy.asarray(inputs.arrays["queries"])
    values = cupy.asarray(np.append(inputs.arrays["values"], NONE))

    def search() -> Any:
        return cupy.take(values, cupy.searchsorted(keys, queries))

    return Way(search, lambda: cupy.asnumpy(search()), cupy.__version__)


def by_torch(inputs: Inputs) -> Way:
    """The same in torch."""
    torch = import_module("torch")

    def signed(array: NDArray[np.uint32]) -> Any:  # torch cannot search in uint32; this keeps the order
        return torch.from_numpy((array ^ np.uint32(1 << 31)).view(np.int32)).cuda()

    keys, queries = signed(inputs.arrays["keys"]), signed(inputs.arrays["queries"])
    values = torch.from_numpy(np.append(inputs.arrays["values"], NONE).view(np.int32)).cuda()

    def search() -> Any:
        return torch.index_select(values, 0, torch.searchsorted(keys, queries, out_int32=True))

    return Way(search, lambda: search().cpu().numpy().view(np.uint32), torch.__version__)


if __name__ == "__main__":
    ways = {
        "plain.cu": plain,
        "cupy searchsorted, take": by_cupy,
        "torch searchsorted, index_select": by_torch,
    }
    compare(__doc__, FOLDER, ways, allowed=0)
