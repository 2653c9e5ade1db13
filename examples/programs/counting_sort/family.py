"""Inputs and reference of the counting sort."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, Any]:
    """``items`` in ``cells``, by chance (``seed``)."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    items, cells = int(parameters["items"]), int(parameters["cells"])
    return {"cell_of": generator.integers(0, cells, items, dtype=np.uint32), "cells": cells}


def ragged(_parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of few items, and of chunks of cells that are not full."""
    for items, cells in ((1, 1), (300, 7), (257, 1025), (1000, 3001)):
        yield {"items": items, "cells": cells, "seed": items}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """numpy's stable sort."""
    counts = np.bincount(arrays["cell_of"], minlength=int(options["cells"]))
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return {"begins": begins, "order": np.argsort(arrays["cell_of"], kind="stable").astype(np.uint32)}
