"""About how large files are, before they are read: by their sizes and how they begin. Results do not depend on it."""

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Sizes", "expected"]

_HEAD_BYTES = 1 << 16


class Sizes(NamedTuple):
    """Letters of all records, and how many records there are."""

    letters: int
    records: int


def expected(path: Path) -> Sizes | None:
    """The sizes of a plain file of FASTA or FASTQ; None for anything else, which is not opened if it is no file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head, size = file.read(_HEAD_BYTES), os.fstat(file.fileno()).st_size
    except OSError:
        return None
    lines = head.splitlines()
    if head.startswith(b">"):
        letters = [len(line) for line in lines if not line.startswith(b">")]
        records = len(lines) - len(letters)
    elif head.startswith(b"@"):
        letters = [len(line) for line in lines[1::4]]
        records = len(letters)
    else:
        return None
    share = size / len(head)
    return Sizes(int(sum(letters) * share), max(1, int(records * share)))
