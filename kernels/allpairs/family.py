"""Inputs and reference of the all-pairs distance family."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, find_data

from . import plink

_ATTRIBUTES, _ROWS = 4096, 1024


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, NDArray[Any]]:
    """``bed: FILE`` (PLINK, individuals are instances, SNPs attributes), or generated: ``instances``, ``attributes``,
    ``seed`` and ``missing_rate`` give uniform values 0..2 with that share of 3 (missing)."""
    if "bed" in parameters:
        return {"genotypes": plink.read_bed(find_data(str(parameters["bed"]), root))}
    return {
        "genotypes": generate(parameters, lambda random, sizes: random.integers(0, 3, sizes, dtype=np.int32))
    }


def generate(
    parameters: Mapping[str, Any], draw: Callable[[np.random.Generator, list[int]], NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Generate genotypes: ``draw`` gives complete ones of the sizes ``instances`` and ``attributes``, and the share
    ``missing_rate`` of them is then missing. Raises WorkloadError for parameters that do not make an input."""
    unknown = parameters.keys() - {"instances", "attributes", "seed", "missing_rate"}
    if unknown or not {"instances", "attributes"} <= parameters.keys():
        raise WorkloadError(
            f"parameters {sorted(parameters)} do not make an input: give bed: FILE, or instances and attributes "
            "(with seed, missing_rate)"
        )
    sizes = [parameters[name] for name in ("instances", "attributes")]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise WorkloadError(f"instances and attributes must be whole numbers of at least 1, found {sizes}")
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    genotypes = draw(generator, sizes)
    rate = float(parameters.get("missing_rate", 0.0))
    if rate:
        genotypes[generator.random(sizes) < rate] = plink.MISSING
    return genotypes


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small inputs around the sizes of words, blocks and tiles, with missing values."""
    rate = parameters.get("missing_rate", 0.05)
    for instances, attributes in ((1, 1), (17, 31), (67, 257), (129, 33)):
        yield {"instances": instances, "attributes": attributes, "seed": attributes, "missing_rate": rate}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """D by matrix products of 0/1 indicators: equal pairs of a value are counted by ``one_hot @ one_hot.T``.

    Shares nothing with the kernels. Exact: float32 sums of ones are integers below 2**24.
    """
    genotypes = arrays["genotypes"]
    instances, attributes = genotypes.shape
    masked = options["missing"] == "masked"
    values = range(3 if masked else 4)
    total = np.zeros((instances, instances), np.int32)
    for start in range(0, attributes, _ATTRIBUTES):  # so that sums stay below 2**24 and temporaries small
        part = genotypes[:, start : start + _ATTRIBUTES]
        one_hot = np.concatenate([part == value for value in values], axis=1).astype(np.float32)
        known = (part != plink.MISSING).astype(np.float32)
        for row in range(0, instances, _ROWS):
            rows = slice(row, row + _ROWS)
            compared = known[rows] @ known.T if masked else np.float32(part.shape[1])
            total[rows] += (compared - one_hot[rows] @ one_hot.T).astype(np.int32)
    return {"distance": total}


def read(_name: str, text: str) -> Any:
    """``-i genotypes=FILE``: a PLINK .bed or a .npy array."""
    path = Path(text)
    if path.suffix == ".bed" or plink.looks_like_bed(path):
        return plink.read_bed(path)
    return None
