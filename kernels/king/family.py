"""Inputs and reference of the kinship family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import family_module, find_data

_COUNTS = np.dtype([(name, np.int32) for name in ("ibs0", "het_het", "het_hom", "hom_het", "missing")])
_VARIANTS = 4096  # at once, so that sums of ones in float32 stay below 2**24


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, NDArray[Any]]:
    """Read ``bed: FILE`` (PLINK), or generate ``instances`` people with ``attributes`` variants.

    Generated people are families: of each three the third is a child of the other two. A variant has a frequency
    between 0.05 and 0.5; ``seed`` and ``missing_rate`` are optional.
    """
    if "bed" in parameters:
        return {"genotypes": _allpairs("plink").read_bed(find_data(str(parameters["bed"]), root))}
    return {"genotypes": _allpairs("family").generate(parameters, _draw_families)}


def _draw_families(generator: np.random.Generator, sizes: list[int]) -> NDArray[np.int32]:
    frequency = generator.uniform(0.05, 0.5, sizes[1])
    alleles = generator.random((2, *sizes)) < frequency
    for child in range(2, sizes[0], 3):
        for parent in range(2):
            inherited = generator.integers(0, 2, sizes[1])
            alleles[parent, child] = alleles[inherited, child - 2 + parent, np.arange(sizes[1])]
    genotypes: NDArray[np.int32] = alleles.sum(axis=0, dtype=np.int32)
    return genotypes


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small inputs: those of the family allpairs, whose inputs have the same form."""
    yield from _allpairs("family").ragged(parameters)


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
        none, het, both, known = (
            (part == v).astype(np.float32) for v in (0, 1, 2, _allpairs("plink").MISSING)
        )
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


def read(name: str, text: str) -> Any:
    """``-i genotypes=FILE``: a PLINK .bed or a .npy array."""
    return _allpairs("family").read(name, text)


def _allpairs(module: str) -> Any:
    return family_module("allpairs", module)
