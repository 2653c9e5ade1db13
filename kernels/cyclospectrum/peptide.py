"""Masses of a peptide's residues: from letters or numbers, and what masses are allowed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

__all__ = ["LARGEST", "MASSES", "MOST_PAIRED", "MOST_RESIDUES", "Masses", "checked_masses", "masses_of"]

# Integer masses of the residues, in daltons (the table of the bioinformatics courses the post comes from; leucine and
# isoleucine weigh the same, and so do lysine and glutamine).
MASSES: Mapping[str, int] = MappingProxyType(
    {
        "G": 57, "A": 71, "S": 87, "P": 97, "V": 99, "T": 101, "C": 103, "I": 113, "L": 113, "N": 114,
        "D": 115, "K": 128, "Q": 128, "E": 129, "M": 131, "H": 137, "F": 147, "R": 156, "Y": 163, "W": 186,
    }
)  # fmt: skip
MOST_RESIDUES = 46_341  # n (n - 1) + 2 < 2^31
MOST_PAIRED = 1 << 20  # of pairs, whose counts are at most n where no mass is 0
LARGEST = 2**31 - 1

Masses = NDArray[np.int32]


def checked_masses(masses: Any, most: int = MOST_RESIDUES) -> Masses:
    """``masses`` as int32, one dimension. None is negative or fractional, their sum is at most 2^31 - 1, and there are
    at most ``most``: 46,341 for a list, 1,048,576 for pairs, so that neither a sum nor an index nor a count passes 32
    bits. Zero is allowed, above 46,341 residues it is not. Raises WorkloadError."""
    given = np.asarray(masses)
    if given.ndim != 1:
        raise WorkloadError(f"masses: {given.ndim} dimensions given, 1 needed")
    if not given.size:
        return np.zeros(0, np.int32)
    if given.dtype.kind not in "iuf":
        raise WorkloadError(f"masses: dtype {given.dtype} given, whole numbers needed")
    if given.dtype.kind == "f" and not (np.isfinite(given).all() and np.array_equal(given, np.floor(given))):
        raise WorkloadError(
            "masses: fractional or NaN values given, whole numbers needed; scale them first (for autotune run: "
            "-i decimals=5 keeps five decimals)"
        )
    if given.size > most:
        raise WorkloadError(
            f"{given.size:,} residues: at most {most:,}; a longer "
            + (
                "list has more values than a 32-bit index reaches (as pairs, 1,048,576: output=pairs)"
                if most == MOST_RESIDUES
                else "ring is not explored"
            )
        )
    if given.min() < 0:
        raise WorkloadError(f"mass {given.min()} is negative: a mass is at least 0")
    if given.size > MOST_RESIDUES and given.min() == 0:
        raise WorkloadError(
            f"a mass of 0 among {given.size:,} residues: above {MOST_RESIDUES:,} each is at least 1, or a count could "
            "pass 32 bits"
        )
    total = sum(int(mass) for mass in given)
    if total > LARGEST:
        raise WorkloadError(
            f"the masses add up to {total:,}: at most {LARGEST:,}, or a sum would pass 32 bits"
        )
    return np.ascontiguousarray(given, np.int32)


def masses_of(letters: str) -> Masses:
    """One-letter codes of the twenty amino acids, in either case -> their masses. Raises WorkloadError."""
    if found := sorted(set(letters.upper()) - MASSES.keys()):
        raise WorkloadError(
            f"residue {found[0]!r} has no mass here: the twenty amino acids are {''.join(MASSES)}; give others by "
            "their masses (for autotune run: -i masses=57,71,…)"
        )
    return np.array([MASSES[letter] for letter in letters.upper()], np.int32)
