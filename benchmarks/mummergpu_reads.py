"""Reads simulated from a reference, as a sequencer of today makes them: many, short, of both strands, few errors."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["READS", "write_reads"]

READS = 1_000_000
_LENGTH = 150
_SUBSTITUTIONS = 0.005
_SEED = 20261122
_READS_AT_ONCE = 100_000
_COMPLEMENT = bytes.maketrans(b"ACGTacgt", b"TGCAtgca")


def write_reads(reference: Path, target: Path, reads: int | None = None) -> tuple[int, int]:
    """Writes ``target``, a FASTA file of ``reads`` pieces of 150 bases of the first record of ``reference`` (plain
    FASTA), every other one of the other strand, half a percent of their bases changed; records and bases of it."""
    strand = np.frombuffer(b"".join(reference.read_bytes().split(b">")[1].split(b"\n")[1:]), np.uint8)
    strands = strand, np.frombuffer(strand.tobytes().translate(_COMPLEMENT)[::-1], np.uint8)
    generator = np.random.default_rng(_SEED)
    count = READS if reads is None else min(reads, READS)
    with target.open("wb") as file:
        for first in range(0, count, _READS_AT_ONCE):
            pieces = _pieces(generator, strands, min(_READS_AT_ONCE, count - first))
            file.writelines(b">r%d\n%b\n" % (first + n, piece.tobytes()) for n, piece in enumerate(pieces, 1))
    return count, count * _LENGTH


def _pieces(
    generator: np.random.Generator, strands: tuple[NDArray[np.uint8], ...], count: int
) -> NDArray[np.uint8]:
    """(count, _LENGTH) letters."""
    starts = generator.integers(0, len(strands[0]) - _LENGTH + 1, count)
    places = starts[:, None] + np.arange(_LENGTH)
    is_forward = (np.arange(count) % 2 == 0)[:, None]
    pieces: NDArray[np.uint8] = np.where(is_forward, strands[0][places], strands[1][places])
    changed = generator.random(pieces.shape) < _SUBSTITUTIONS
    letters = np.frombuffer(b"ACGT", np.uint8)
    pieces[changed] = letters[generator.integers(0, len(letters), int(changed.sum()))]
    return pieces
