"""Masses of a peptide's residues: from letters, numbers or a FASTA file, and what masses are allowed."""

import gzip
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, UsageError, WorkloadError

__all__ = ["LARGEST", "MASSES", "MOST_RESIDUES", "checked_masses", "masses_of", "parsed_masses", "read_fasta"]

# Integer masses of the residues, in daltons (the table of the bioinformatics courses the post comes from; leucine and
# isoleucine weigh the same, and so do lysine and glutamine).
MASSES: Mapping[str, int] = MappingProxyType(
    {
        "G": 57, "A": 71, "S": 87, "P": 97, "V": 99, "T": 101, "C": 103, "I": 113, "L": 113, "N": 114,
        "D": 115, "K": 128, "Q": 128, "E": 129, "M": 131, "H": 137, "F": 147, "R": 156, "Y": 163, "W": 186,
    }
)  # fmt: skip
MOST_RESIDUES = 46_341  # n (n - 1) + 2 < 2^31
LARGEST = 2**31 - 1

Masses = NDArray[np.int32]


def checked_masses(masses: Any) -> Masses:
    """``masses`` as int32, one dimension. None is negative or fractional, their sum is at most 2^31 - 1, and there are
    at most 46,341, so that neither a sum nor an index passes 32 bits. Zero is allowed. Raises WorkloadError."""
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
    if given.size > MOST_RESIDUES:
        raise WorkloadError(
            f"{given.size:,} residues: at most {MOST_RESIDUES:,}; a longer list has more values than a 32-bit index "
            "reaches"
        )
    if given.min() < 0:
        raise WorkloadError(f"mass {given.min()} is negative: a mass is at least 0")
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


def parsed_masses(text: str, decimals: int) -> Masses:
    """Numbers parted by commas or spaces -> whole masses in units of 10^-``decimals``. An empty text is no mass at
    all. Raises WorkloadError."""
    scaled = []
    for number, word in enumerate(re.split(r"\s*,\s*|\s+", text.strip()) if text.strip() else [], start=1):
        if not word:
            raise WorkloadError(
                f"masses={text}: mass {number} is missing; give a number on either side of each comma"
            )
        try:
            mass = Decimal(word).scaleb(decimals)
            whole = mass.is_finite() and mass == mass.to_integral_value()
        except InvalidOperation:
            raise WorkloadError(f"mass {word!r} is not a number") from None
        if not whole:
            raise WorkloadError(
                f"mass {word} has more than {decimals} decimals: only whole numbers are added up; -i decimals=N keeps N"
            )
        if not 0 <= mass <= LARGEST:
            raise WorkloadError(f"mass {word} is outside 0..{LARGEST:,} (in units of 10^-{decimals})")
        scaled.append(int(mass))
    return checked_masses(np.array(scaled, np.int64))


def read_fasta(path: Path, record: str = "") -> str:
    """The letters of the record of that name (the first word of its header), or of the only one; plain or gzip.
    Raises WorkloadError, UsageError, UnknownName."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("ascii")
    except (OSError, EOFError, UnicodeDecodeError) as problem:
        raise WorkloadError(f"cannot read {path}: {problem}; it is a FASTA file, plain or gzip") from None
    found: dict[str, list[str]] = {}
    name: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(">"):
            name = (line[1:].split() or [""])[0]
            if name in found:
                raise WorkloadError(f"{path} line {number}: record {name!r} is there twice; rename one")
            found[name] = []
        elif line.strip():
            if name is None:
                raise WorkloadError(
                    f"{path} line {number} stands before the first header, a line that begins with >"
                )
            found[name].append("".join(line.split()).removesuffix("*"))
    if not found:
        raise WorkloadError(f"{path} holds no record: a FASTA record begins with a line >NAME")
    if record and record not in found:
        raise UnknownName("record", record, found, str(path))
    if not record and len(found) > 1:
        some = ", ".join(list(found)[:5])
        raise UsageError(f"{path} holds {len(found)} records: name one with -i record=NAME ({some} …)")
    return "".join(found[record or next(iter(found))])
