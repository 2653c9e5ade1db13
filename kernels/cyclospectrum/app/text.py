"""A peptide as people write it: masses as numbers, residues in a FASTA file."""

import gzip
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from autotune.family import UnknownName, UsageError, WorkloadError

from ..peptide import LARGEST, MOST_PAIRED, Masses, checked_masses

__all__ = ["parsed_masses", "read_fasta"]


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
    return checked_masses(np.array(scaled, np.int64), MOST_PAIRED)


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
