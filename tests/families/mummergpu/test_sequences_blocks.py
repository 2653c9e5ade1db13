"""Reads in blocks, and round trips through random FASTA and FASTQ files."""

import gc
import gzip
import itertools
import lzma
import re
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mummergpu_helpers import fastx, reads_of, sequences, text_of, write

from autotune.errors import WorkloadError

FASTA = b"".join(b">read%d\nACGTTGCAACGTTGCA\n" % number for number in range(50))

# ---- blocks


def test_blocks(tmp_path: Path) -> None:
    """As full as the next read lets them be, or at least half: what is there is not held back."""
    lengths = [3, 2, 1, 9, 4, 1, 5, 1]
    path = write(tmp_path / "reads", b"".join(b">%d\n%s\n" % (n, b"A" * n) for n in lengths))
    for piece in (1, 20, 1 << 21):
        with patch.object(fastx, "_PIECE_BYTES", piece):
            blocks = [np.diff(block.offsets).tolist() for block in sequences.read_blocks(path, 5)]
            headers = [header for block in sequences.read_blocks(path, 5) for header in block.headers]
        assert [length for block in blocks for length in block] == lengths
        assert headers == [str(length) for length in lengths]
        assert all(len(block) == 1 or sum(block) <= 5 for block in blocks)
        assert all(2 * sum(a) > 5 or sum(a) + b[0] > 5 for a, b in itertools.pairwise(blocks))


def test_a_file_is_not_in_memory_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "reads", b"".join(b">r%d\n%s\n" % (n, b"ACGTTGCA" * 12) for n in range(100_000)))
    with patch.multiple(fastx, _PIECE_BYTES=1 << 16, _WINDOW_BYTES=1 << 18, _LEAST_WINDOW=1 << 16):
        tracemalloc.start()
        try:
            bases = sum(len(block.codes) for block in sequences.read_blocks(path, 1 << 16))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert bases == 9_600_000 and peak < 3_000_000


def test_files_are_closed(tmp_path: Path) -> None:
    # A file that is left open is a ResourceWarning, which is an error here.
    path = write(tmp_path / "reads", gzip.compress(FASTA))
    for taken in range(3):
        blocks = sequences.read_blocks(path, 1)
        for _ in range(taken):
            next(blocks)
        del blocks
        gc.collect()
    damaged = write(tmp_path / "damaged", FASTA + b">a\nA\x00\n>b\n")
    with patch.object(fastx, "_PIECE_BYTES", 64):
        blocks = sequences.read_blocks(damaged, 1)
        with pytest.raises(WorkloadError, match=r"record 51 \('a'\) has, after 1 bases"):
            list(blocks)
    del blocks
    gc.collect()


# ---- random files

LETTERS = "ACGTacgtNnRrXx*-.1"
records_of_a_file = st.lists(
    st.tuples(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12),
        st.text(LETTERS, min_size=1, max_size=30),
    ),
    min_size=1,
    max_size=8,
)


def as_fasta(draw: st.DataObject, records: list[tuple[str, str]], end: str) -> str:
    lines = []
    for header, sequence in records:
        width = draw.draw(st.integers(1, 31))
        lines.append(">" + header)
        lines += [
            sequence[start : start + width] + draw.draw(st.sampled_from(["", "", " ", "\t ", end]))
            for start in range(0, len(sequence), width)
        ]
    return end.join(lines)


def as_fastq(draw: st.DataObject, records: list[tuple[str, str]], end: str) -> str:
    lines = []
    for header, sequence in records:
        quality = draw.draw(
            st.text(
                st.characters(min_codepoint=33, max_codepoint=126),
                min_size=len(sequence),
                max_size=len(sequence),
            )
        )
        again = draw.draw(st.sampled_from(["", header]))
        lines += ["@" + header, sequence, "+" + again, quality + draw.draw(st.sampled_from(["", " "]))]
    return end.join(lines)


@given(
    st.data(),
    records_of_a_file,
    st.sampled_from([as_fasta, as_fastq]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([bytes, gzip.compress, lambda data: lzma.compress(data, preset=0)]),
    st.integers(1, 80),
    st.sampled_from([1, 2, 3, 7, 50, 1 << 21]),
    st.sampled_from([1, 2, 5, 30, 1 << 20]),
)
def test_round_trip(
    draw: st.DataObject,
    records: list[tuple[str, str]],
    form: Any,
    end: str,
    compress: Any,
    bases_per_block: int,
    piece: int,
    of_thread: int,
) -> None:
    text = form(draw, records, end) + draw.draw(st.sampled_from(["", end, end + end]))
    coded = [(header, re.sub("[^ACGT]", ".", sequence.upper())) for header, sequence in records]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(
            fastx, _PIECE_BYTES=piece, _WINDOW_BYTES=2 * piece, _LEAST_WINDOW=piece, _LONG_WINDOW_BYTES=piece
        ),
        patch.object(fastx.texts, "_BYTES_AT_ONCE", of_thread),
    ):
        path = write(Path(folder) / "file", compress(text.encode()))
        assert reads_of(path, bases_per_block) == coded
        sizes = [(len(b.headers), len(b.codes)) for b in sequences.read_blocks(path, bases_per_block)]
        assert all(reads == 1 or bases <= bases_per_block for reads, bases in sizes)
        if any(set(sequence) - {"."} for _, sequence in coded):
            reference = sequences.read_reference(path)
            assert text_of(reference.codes) == "".join(sequence + "." for _, sequence in coded)
            assert reference.names == [re.split(r"[ \t-\r]", header, maxsplit=1)[0] for header, _ in records]
            assert [
                text_of(reference.codes[start : start + length])
                for start, length in zip(reference.starts, reference.lengths, strict=True)
            ] == [sequence for _, sequence in coded]


@given(st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=9), st.integers(1, 3))
def test_reverse_complement(reads: list[list[int]], threads: int) -> None:
    codes = np.array([code for read in reads for code in read], np.uint8)
    offsets = np.cumsum([0, *map(len, reads)], dtype=np.int64)
    before = codes.copy()
    with patch.object(sequences, "cores", lambda: threads):
        turned = sequences.reverse_complement(codes, offsets)
    expected = [3 - code if code < 4 else 4 for read in reads for code in reversed(read)]
    assert turned.tolist() == expected and turned.dtype == np.uint8
    assert np.array_equal(codes, before)
