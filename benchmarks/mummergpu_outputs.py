"""How many matches an output in mummer's format has, and a checksum of them, at some 100 MB a second and core.

Tens of millions of matches are too many to sort: kernels/mummergpu/app/mums.py does that for small files.
"""

import hashlib
import mmap
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_PIECE = 16 << 20
_NAMED_WORDS = 4
_MATCH_WEIGHTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


class Found(NamedTuple):
    """How many matches, and the sum of a 64-bit hash of each: (read's name, position, start, length)."""

    matches: int
    checksum: int


def found_in(path: Path, pool: Executor | None = None) -> Found:
    """What a program wrote for a reference of one record. Raises ValueError: not such an output."""
    pieces = list(_pieces(path))
    parts = list((pool.map if pool and len(pieces) > 1 else map)(_found_in_piece, pieces))
    return Found(sum(part.matches for part in parts), sum(part.checksum for part in parts) % 2**64)


def found_in_text(text: bytes) -> Found:
    """The same of a text that begins with a header, or is empty. The order of reads and of their rows, blanks and
    headers without rows make no difference."""
    if not text:
        return Found(0, 0)
    if not text.startswith(b">"):
        raise ValueError(f"an output of matches begins with '>', found {text[:40]!r}")
    names, rows, bodies = [], [], []
    for read in text[1:].rstrip(b"\n").split(b"\n>"):
        header, _, body = read.partition(b"\n")
        if body:
            name = b" ".join(header.split()[:1])
            names.append(int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little"))
            rows.append(body.count(b"\n") + 1)
            bodies.append(body)
    content = _without_name(b"\n".join(bodies))
    if re.search(rb"[^0-9 \n]", content):
        raise ValueError("rows of three numbers are allowed here: give a reference of one record")
    numbers = np.fromstring(content, np.int64, sep=" ") if content else np.empty(0, np.int64)
    if numbers.size != 3 * sum(rows):
        raise ValueError(
            f"{sum(rows):,} rows of three numbers are {numbers.size:,} numbers: a row is cut short"
        )
    # Columns weigh differently, and names join what has been mixed: equal sums mean equal matches but by accident.
    values = (numbers.reshape(-1, 3).astype(np.uint64) * _MATCH_WEIGHTS).sum(axis=1, dtype=np.uint64)
    mixed = _mixed(_mixed(values) ^ np.repeat(np.array(names, np.uint64), rows))
    return Found(values.size, int(mixed.sum(dtype=np.uint64)))


def _without_name(content: bytes) -> bytes:
    """Return rows without the name of the reference's one record, if the program writes it before each; fail if there
    is another name."""
    words = content.partition(b"\n")[0].split()
    if len(words) != _NAMED_WORDS:
        return content
    return re.sub(rb"^[ \t]*%b[ \t]" % re.escape(words[0]), b"", content, flags=re.MULTILINE).replace(
        b"\t", b" "
    )


def _mixed(values: Any) -> Any:
    for shift, weight in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(weight)
    return values ^ (values >> np.uint64(31))


def _pieces(path: Path) -> Iterator[tuple[Path, int, int]]:
    size = path.stat().st_size
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        begin = 0
        while begin < size:
            end = text.find(b"\n>", min(begin + _PIECE, size)) + 1 or size
            yield path, begin, end
            begin = end


def _found_in_piece(piece: tuple[Path, int, int]) -> Found:
    path, begin, end = piece
    with path.open("rb") as file:
        file.seek(begin)
        return found_in_text(file.read(end - begin))
