"""Brute force and mums.py against MUMmer itself: the same text, byte for byte, in the same order."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mem_oracle import brute_force, reverse_complement, run_mummer
from mummergpu_helpers import mems_of, sequences, written

pytestmark = pytest.mark.mummer


def by_brute_force(reference: Any, block: Any, minimum: int, both_strands: bool) -> str:
    """MUMmer's output made of what brute force finds."""
    reads = [block.codes[a:b] for a, b in zip(block.offsets[:-1], block.offsets[1:], strict=True)]
    strands = [reads, [reverse_complement(read) for read in reads]] if both_strands else [reads]
    found = [brute_force(reference.codes, reference.starts.tolist(), strand, minimum) for strand in strands]
    return written(reference, block.headers, *map(mems_of, found))


def compare(folder: Path, reference: bytes, reads: bytes, minimum: int, both_strands: bool) -> str:
    """Byte for byte, order and all, for any number of records and strands. Returns the text."""
    reference_path, reads_path = folder / "reference.fa", folder / "reads.fa"
    reference_path.write_bytes(reference)
    reads_path.write_bytes(reads)
    (block,) = sequences.read_blocks(reads_path, 10**9)
    ours = by_brute_force(sequences.read_reference(reference_path), block, minimum, both_strands)
    assert ours == run_mummer(reference_path, reads_path, minimum, both_strands)
    return ours


SINGLE = b">r1 with words\nACGTACGTTTGACCA\n"
SEVERAL = SINGLE + b">r2\nGGACGTACC\n>a_longer_name and words\nTTTTACGT\n>r4\nNNNN\n"
READS = b">q1 some words\nACGTACG\n>q2\nAC\n>q3\ttab\nTTTGACCAnnACGT\n>q4\nTGGTCAAACG\n>q5\nNNNN\n"


@pytest.mark.parametrize("both_strands", [False, True])
@pytest.mark.parametrize("reference", [SINGLE, SEVERAL, SEVERAL.lower().replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("minimum", [1, 4, 20])
def test_mummer_prints_the_same(tmp_path: Path, reference: bytes, minimum: int, both_strands: bool) -> None:
    text = compare(tmp_path, reference, READS, minimum, both_strands)
    assert any(line.startswith(" ") for line in text.splitlines()) == (minimum < 20)


def test_letters_that_match_nothing(tmp_path: Path) -> None:
    # With -n, N matches no N; what follows a match decides the order: A, C, G, T, other, end of record, end.
    reference = b">r\nACNNACGNACRACTACNGAC-ACA\n"
    text = compare(tmp_path, reference, b">q\nACN\n>n\nNNNN\n>long\nACNNACGNACR\n>x\nA*C.A-C\n", 2, False)
    assert "> n\n> long" in text


@pytest.mark.parametrize("both_strands", [False, True])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n", b"\t\r\n"])
def test_headers_without_a_name(tmp_path: Path, end: bytes, both_strands: bool) -> None:
    """Where nothing, or a blank, comes first."""
    headers = [b"", b" y", b"\tx y", b"named", b"", b"", b"Reverse", b" Reverse", b"x\x0by", b"\x0bz"]
    reads = b"".join(b">" + header + end + b"ACGTTTGA" + end for header in headers)
    reference = b"> first one\nGGACGTACC\n>second\nACGTTTGACGT\n>\nTCAAACGT\n"
    for records in (SINGLE, b"> r x\n" + SINGLE[15:], reference):
        assert compare(tmp_path, records, reads, 4, both_strands).count("\n> ") >= len(headers) - 1


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Records, and reads that are random, pieces of the records or pieces with one letter changed."""
    letters = draw(st.sampled_from(["A", "AC", "ACGT", "ACGTN", "AN", "ACGTNRx*"]))
    records = draw(st.lists(st.text(letters, min_size=1, max_size=60), min_size=1, max_size=3))
    records[0] += "A"
    whole = "".join(records)
    random = st.text(letters, min_size=1, max_size=30)
    pieces = st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 40)).map(
        lambda place: whole[place[0] :][: place[1]]
    )
    changed = st.tuples(pieces, st.integers(0, 39), st.sampled_from(letters)).map(
        lambda change: change[0][: change[1]] + change[2] + change[0][change[1] + 1 :]
    )
    return records, draw(st.lists(st.one_of(random, pieces, changed), min_size=5, max_size=25))


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from([1, 2, 3, 5, 10, 50]), st.booleans())
def test_random_cases(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[list[str], list[str]], minimum: int, both: bool
) -> None:
    records, reads = case
    reference = "".join(f">r{'x' * number} words\n{text}\n" for number, text in enumerate(records))
    queries = "".join(f">q{number}\n{text}\n" for number, text in enumerate(reads))
    folder = tmp_path_factory.getbasetemp()
    compare(folder, reference.encode(), queries.encode(), minimum, both)
