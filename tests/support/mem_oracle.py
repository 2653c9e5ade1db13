"""Two independent sources of maximal exact matches: brute force for small inputs, and MUMmer 3 itself.

Bases are codes 0..3 (A, C, G, T); 4 is anything else and matches nothing, not even itself.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

OTHER = 4
# How MUMmer orders what follows a match: A, C, G, T, any other letter, end of a record, end of the reference.
_RECORD_END = 5
_REFERENCE_END = 6


class Mem(NamedTuple):
    """`length` bases from `start` of read `read` on equal those from `position` of the reference on; from 0."""

    read: int
    position: int
    start: int
    length: int


def brute_force(
    codes: NDArray[np.uint8], starts: Sequence[int], reads: Sequence[NDArray[np.uint8]], minimum: int
) -> list[Mem]:
    """All matches of at least `minimum` bases that cannot be prolonged to either side, in MUMmer's order: by read,
    start in the read, and then the rest of the reference from the match on.

    `codes` has an OTHER after every record; the records begin at `starts`.
    """
    order = _suffix_order(codes, starts)
    return [mem for number, read in enumerate(reads) for mem in _matches(codes, order, number, read, minimum)]


def reverse_complement(read: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.array([3 - code if code < OTHER else OTHER for code in read[::-1].tolist()], np.uint8)


def run_mummer(reference: Path, reads: Path, minimum: int, both_strands: bool = False) -> str:
    """What ``mummer -maxmatch -n -l minimum`` prints, with ``-b`` for both strands."""
    program = shutil.which("mummer")
    assert program is not None, "mark the test with pytest.mark.mummer"
    options = ["-maxmatch", "-n", "-l", str(minimum), *(["-b"] if both_strands else [])]
    done = subprocess.run(
        [program, *options, str(reference), str(reads)],
        capture_output=True,
        check=True,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return done.stdout


def _suffix_order(codes: NDArray[np.uint8], starts: Sequence[int]) -> NDArray[np.intp]:
    text = codes.copy()
    text[[start - 1 for start in starts if start]] = _RECORD_END
    text[-1] = _REFERENCE_END
    content = text.tobytes()
    return np.array(sorted(range(len(content)), key=lambda position: content[position:]), np.intp)


def _matches(
    codes: NDArray[np.uint8], order: NDArray[np.intp], number: int, read: NDArray[np.uint8], minimum: int
) -> list[Mem]:
    # lengths[i][p]: how many bases from i of the read on equal those from p of the reference on.
    lengths = np.zeros((len(read) + 1, len(codes) + 1), np.int64)
    for start in reversed(range(len(read))):
        equal = (codes == read[start]) & (codes != OTHER)
        lengths[start, :-1] = np.where(equal, lengths[start + 1, 1:] + 1, 0)
    found = []
    for start in range(len(read)):
        for position in order.tolist():
            length = int(lengths[start, position])
            # Where the bases before are equal, this is the rest of a longer match.
            longer = start > 0 and position > 0 and lengths[start - 1, position - 1] > 0
            if length >= minimum and not longer:
                found.append(Mem(number, position, start, length))
    return found
