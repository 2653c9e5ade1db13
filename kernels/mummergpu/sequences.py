"""References and reads as codes (A, C, G, T = 0..3, anything else 4), from FASTA and FASTQ, plain, gzip or xz."""

import itertools
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from .fastx import OTHER, ReadBlock, has_base, join, name_of, plain_fasta, records, require
from .text import cores, turned

__all__ = [
    "MAX_READ_LENGTH",
    "OTHER",
    "ReadBlock",
    "Reference",
    "followed",
    "host_memory",
    "read_blocks",
    "read_reference",
    "require",
    "reverse_complement",
]

MAX_READ_LENGTH = 2**16 - 1

# Of the host's memory for a base of a reference while it is read: of plain FASTA, whose bases are put in their place at
# once; and of any other file, for its parts, and for these put together.
_PLAIN_BYTES, _OTHER_BYTES = 1, 2

# A part of more records is put in its place without a loop over them.
_FEW_RECORDS = 1 << 12


@dataclass(frozen=True, eq=False)
class Reference:
    """Records one after another, each followed by one OTHER. `names` are those in the headers (fastx.name_of),
    `codes` uint8, `starts` the position in `codes` of each record's first base, `lengths` in bases."""

    names: list[str]
    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def read_reference(path: Path) -> Reference:
    """All records of `path`.

    Raises WorkloadError: no such file, empty, neither FASTA nor FASTQ, damaged or cut short, a record without
    sequence, no A, C, G or T at all.
    """
    memory = host_memory()

    def fits(each: int, bases: int) -> None:
        if bases * each > memory:
            raise WorkloadError(
                f"{path} has more than {memory // each:,} bases, and to read one takes {each} byte{'s' * (each > 1)} "
                f"of this host's {memory / 1e9:.1f} GB. Split it, or take a host with more memory."
            )

    try:
        whole = plain_fasta(path, partial(fits, _PLAIN_BYTES))
        if whole is None:
            whole = _separated(list(_bounded(path, partial(fits, _OTHER_BYTES))))
    except MemoryError:
        raise WorkloadError(
            f"{path} does not fit into this host's memory; a few MB of gzip or xz can hold gigabytes. Give a smaller "
            "reference."
        ) from None
    lengths = np.diff(whole.offsets) - 1
    if not lengths.all():
        record = int(np.argmin(lengths))
        raise WorkloadError(
            f"{path} record {record + 1} ({name_of(whole.headers[record])!r}) has no sequence; a record of a "
            "reference needs at least 1 base. Remove it."
        )
    if not has_base(whole.codes):
        raise WorkloadError(
            f"{path} has none of A, C, G and T in its {int(lengths.sum())} bases; a reference needs at least one. "
            "Give the path of a DNA sequence that is not masked."
        )
    names = [name_of(header) for header in whole.headers]
    return Reference(names, whole.codes, whole.offsets[:-1], lengths)


def _separated(parts: list[ReadBlock]) -> ReadBlock:
    """Records one after another, each followed by one OTHER."""
    joined = join([ReadBlock(part.headers, np.empty(0, np.uint8), part.offsets) for part in parts])
    offsets = joined.offsets + np.arange(len(joined.offsets))
    codes = np.full(int(offsets[-1]), OTHER, np.uint8)
    at = 0
    for part in parts:
        if len(part.headers) > _FEW_RECORDS:
            there = np.insert(part.codes, part.offsets[1:], np.uint8(OTHER))
            codes[at : at + len(there)] = there
        else:
            for record, (begin, end) in enumerate(itertools.pairwise((at + part.offsets).tolist())):
                codes[begin + record : end + record] = part.codes[begin - at : end - at]
        at += len(part.codes) + len(part.headers)
    return ReadBlock(joined.headers, codes, offsets)


def _bounded(path: Path, fits: Callable[[int], None]) -> Iterator[ReadBlock]:
    bases = 0
    for block in records(path, sys.maxsize):
        bases += len(block.codes)
        fits(bases)
        yield block


def host_memory() -> int:
    """In bytes, whoever uses it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_blocks(
    path: Path, bases_per_block: int, max_read_length: int = MAX_READ_LENGTH
) -> Generator[ReadBlock, None, None]:
    """The reads of `path` in order, in blocks of at most `bases_per_block` bases and, but for the last one, at least
    half as many; a longer read is a block.

    The first block is read by the call itself, so that a file that is unusable from its start is refused
    there; what is wrong further on can only be seen on the way.
    Raises WorkloadError: no such file, empty, neither FASTA nor FASTQ, damaged or cut short, a read of
    more than `max_read_length` bases, a quality line of another length than its sequence.
    """
    blocks = _blocks(records(path, max_read_length), bases_per_block)
    return followed([next(blocks)], blocks)


def followed(
    first: Iterable[ReadBlock], rest: Generator[ReadBlock, None, None]
) -> Generator[ReadBlock, None, None]:
    """One after the other; to close it closes ``rest``, with its file and its threads."""
    with closing(rest):
        yield from first
        yield from rest


def reverse_complement(codes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Each read `codes[offsets[i]:offsets[i + 1]]` reversed and complemented in its place; OTHER stays OTHER."""
    return turned(codes, offsets, cores())


# ---- blocks of records


def _blocks(
    parts: Generator[ReadBlock, None, None], bases_per_block: int
) -> Generator[ReadBlock, None, None]:
    held: list[ReadBlock] = []
    bases = 0
    with closing(parts):
        for part in parts:
            first = 0
            while first < len(part.headers):
                room = part.offsets[first] + bases_per_block - bases
                last = int(np.searchsorted(part.offsets, room, side="right")) - 1
                if last <= first and not held:
                    last = first + 1
                if last > first:
                    held.append(part.part(first, last))
                    bases += int(held[-1].offsets[-1])
                    first = last
                if first < len(part.headers) or 2 * bases > bases_per_block:
                    yield join(held)
                    held, bases = [], 0
    if held:
        yield join(held)
