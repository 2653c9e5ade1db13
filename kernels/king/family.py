"""Inputs and reference of the kinship family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError, family_module, find_data

MISSING = 3
_COUNTS = np.dtype([(name, np.int32) for name in ("ibs0", "het_het", "het_hom", "hom_het", "missing")])
_VARIANTS = 4096  # at once, so that sums of ones in float32 stay below 2**24


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, NDArray[Any]]:
    """Read ``bed: FILE`` (PLINK), or generate ``instances`` people with ``attributes`` variants.

    Generated people are families: of each three the third is a child of the other two. A variant has a frequency
    between 0.05 and 0.5; ``seed`` and ``missing_rate`` are optional.
    """
    if "bed" in parameters:
        return {"genotypes": read_bed(find_data(str(parameters["bed"]), root))}
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
    frequency = generator.uniform(0.05, 0.5, sizes[1])
    alleles = generator.random((2, *sizes)) < frequency
    for child in range(2, sizes[0], 3):
        for parent in range(2):
            inherited = generator.integers(0, 2, sizes[1])
            alleles[parent, child] = alleles[inherited, child - 2 + parent, np.arange(sizes[1])]
    genotypes = alleles.sum(axis=0, dtype=np.int32)
    rate = float(parameters.get("missing_rate", 0.0))
    if rate:
        genotypes[generator.random(sizes) < rate] = MISSING
    return {"genotypes": genotypes}


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small inputs around the sizes of words, blocks and tiles, with missing calls."""
    rate = parameters.get("missing_rate", 0.05)
    for instances, attributes in ((1, 1), (17, 31), (67, 257), (129, 33)):
        yield {"instances": instances, "attributes": attributes, "seed": attributes, "missing_rate": rate}


def reference(arrays: Mapping[str, NDArray[Any]], options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Count by matrix products of 0/1 indicators, and divide in double precision.

    Shares nothing with the kernel. Source of the coefficient: Manichaikul and others 2010, equation 9, written as the
    sum of squared differences over the smaller number of heterozygous calls.
    """
    genotypes = arrays["genotypes"]
    people = len(genotypes)
    counts = np.zeros((people, people), _COUNTS)
    for start in range(0, genotypes.shape[1], _VARIANTS):
        part = genotypes[:, start : start + _VARIANTS]
        none, het, both, known = ((part == v).astype(np.float32) for v in (0, 1, 2, MISSING))
        known = 1 - known
        opposite = none @ both.T
        counts["ibs0"] += (opposite + opposite.T).astype(np.int32)
        counts["het_het"] += (het @ het.T).astype(np.int32)
        one = (het @ (none + both).T).astype(np.int32)
        counts["het_hom"] += one
        counts["hom_het"] += one.T
        counts["missing"] += part.shape[1] - (known @ known.T).astype(np.int32)
    squares = 4.0 * counts["ibs0"] + counts["het_hom"] + counts["hom_het"]
    heterozygous = counts["het_het"] + np.minimum(counts["het_hom"], counts["hom_het"])
    with np.errstate(divide="ignore", invalid="ignore"):
        kinship = (0.5 - squares / (4.0 * heterozygous)).astype(np.float32)
    return {
        "kinship": kinship,
        "counts": counts if options["output"] == "counts" else np.zeros((1, 1), _COUNTS),
    }


def read(_name: str, text: str) -> Any:
    """``-i genotypes=FILE``: a PLINK .bed or a .npy array."""
    path = Path(text)
    is_bed = path.suffix == ".bed" or family_module("allpairs", "plink").looks_like_bed(path)
    return read_bed(path) if is_bed else None


def read_bed(path: Path) -> Any:
    return family_module("allpairs", "plink").read_bed(path)
