"""Text to codes in threads: headers as bytes, letters in sixteens, and faults in the order of the file."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mummergpu_helpers import _load, fastx, reads_of, sequences, text_of, write

from autotune.compile.host_library import library
from autotune.errors import CompilerError, WorkloadError

text = _load("text")


@pytest.fixture
def other_compiler() -> Iterator[None]:
    """What another test compiled is not used, nor is what this one compiles."""
    library.cache_clear()
    yield
    library.cache_clear()


# ---- headers


LINES = ["a one", "", "ä\u2028", "\udcff", "e"]


@given(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, 2, -1]), st.slices(5))
def test_headers_are_a_sequence_of_text(first: int, last: int, step: int, places: slice) -> None:
    headers = text.Headers.of(LINES)
    assert len(headers) == 5 and list(headers) == LINES
    assert headers == LINES and headers == text.Headers.of(LINES) and headers != LINES[1:]
    assert headers[first:last:step] == LINES[first:last:step]
    assert headers[places] == LINES[places]
    # A part of a part, and parts joined.
    assert headers[1:][first:last] == LINES[1:][first:last]
    assert text.Headers.joined([headers[last:], headers[:first]]) == LINES[last:] + LINES[:first]


def test_one_header() -> None:
    headers = text.Headers.of(LINES)
    assert headers[0] == "a one" and headers[-2] == "\udcff" and headers[np.int64(2)] == LINES[2]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            headers[outside]
    assert text.Headers.of(headers) is headers
    assert np.shares_memory(headers[1:3].letters, headers.letters)


# ---- codes


CODES = {ord(letter): code for letters in ("ACGT", "acgt") for code, letter in enumerate(letters)}


@pytest.mark.parametrize("length", [1, 15, 16, 17, 33])
def test_every_byte_at_every_place(length: int) -> None:
    """A letter that is none of A, C, G and T may stand anywhere among sixteen that are looked at together."""
    bases = np.random.default_rng(length).choice(list(b"ACGTacgt"), length).astype(np.uint8).tobytes()
    for place in range(length):
        for byte in sorted({*range(256)} - {ord("\n")}):
            line = bases[:place] + bytes([byte]) + bases[place + 1 :]
            is_blank, is_sequence = byte in b" \t\v\f\r", 33 <= byte < 127 and byte != ord(">")
            codes = [CODES.get(letter, 4) for letter in line]
            codes[place] = CODES.get(byte, 4 if is_sequence else 5 if is_blank else 6)
            fastq = text.parse_fastq(b"@h\n" + line + b"\n+\n" + line + b"\n", 1, fastx._CODE_OF_BYTE)
            kept = length - (is_blank and place == length - 1)
            assert fastq.codes.tolist() == codes[:kept] and fastq.offsets.tolist() == [0, kept]
            assert fastq.is_spoilt == (max(codes[:kept], default=0) > 4)
            if byte == ord(">") and not place:
                continue  # a header
            fasta = text.parse_fasta(b">h\n" + line + b"\n", fastx._CODE_OF_BYTE)
            assert fasta.codes.tolist() == [code for code in codes if code != 5]
            assert fasta.is_spoilt == (6 in codes)
            assert fasta.headers == fastq.headers == ["h"]


GUARD, MARK = 64, 0xA5
BLANK_LINE_ENDS = [
    b"\n",
    b"\r\n",
    b"  \n",
    b"\t\n",
    b" " * 12 + b"\n",
    b" " * 16 + b"\r\n",
    b"\n\n",
    b"\n\t\r\n",
]


@pytest.mark.parametrize("end", BLANK_LINE_ENDS)
@pytest.mark.parametrize("width", [1, 14, 15, 16, 31, 95, 111, 127])
def test_nothing_is_written_behind_an_array(width: int, end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks leave fewer codes than there are bytes of text; what is behind them is the next piece's, or another's."""
    guarded, empty = [], np.empty

    def with_guard(shape: int | tuple[int, ...], dtype: type) -> np.ndarray:
        made = empty(int(np.prod(shape)) * np.dtype(dtype).itemsize + GUARD, np.uint8)
        made[-GUARD:] = MARK
        guarded.append(made)
        return made[:-GUARD].view(dtype).reshape(shape)

    bases = np.random.default_rng(width).choice(list(b"ACGTacgtN"), 6 * width).astype(np.uint8).tobytes()
    lines = [bases[at : at + width] + end for at in range(0, len(bases), width)]
    records = [b">", *lines[:3]], [b">b c", *lines[3:5], b"AC GT" + end, lines[5]]
    whole = b"".join(head + end + b"".join(lines) for head, *lines in records)
    expected = [CODES.get(letter, 4) for letter in bases[: 5 * width] + b"ACGT" + bases[5 * width :]]
    monkeypatch.setattr(text.np, "empty", with_guard)
    parsed = text.parse_fasta(whole, fastx._CODE_OF_BYTE)
    assert parsed.codes.tolist() == expected and parsed.offsets.tolist() == [0, 3 * width, 6 * width + 4]
    assert len(guarded) == 3 and all((made[-GUARD:] == MARK).all() for made in guarded)


@pytest.mark.parametrize("end", BLANK_LINE_ENDS)
def test_many_threads_and_small_pieces_give_what_one_piece_does(end: bytes) -> None:
    draw = np.random.default_rng(1)
    bases = draw.choice(list(b"ACGT"), (400, 127)).astype(np.uint8)
    reads = [row.tobytes()[: draw.choice([15, 31, 95, 111, 127, 14, 0])] for row in bases]
    whole = b"".join(b">%d%s%s%s" % (number, end, read, end) for number, read in enumerate(reads))
    one = text.parse_fasta(whole, fastx._CODE_OF_BYTE)
    assert text_of(one.codes).encode() == b"".join(reads)
    for piece in (16, 48, 256):
        with patch.object(text, "_BYTES_AT_ONCE", piece):
            many = text.parse_fasta(whole, fastx._CODE_OF_BYTE, 8)
        assert np.array_equal(many.codes, one.codes) and np.array_equal(many.offsets, one.offsets)
        assert many.headers == one.headers


# ---- threads


@pytest.mark.parametrize("threads", [1, 4])
def test_a_header_without_an_end_waits_wherever_it_begins(threads: int) -> None:
    """It is looked for in pieces of a MB from the end of a text on."""
    size, piece = (3 << 20) + 5, 1 << 20
    letters = np.full(size, ord("A"), np.uint8)
    assert text.cut_fasta(letters, threads) == size
    for from_end in (1, 2, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 4):
        place = size - from_end
        letters[place - 1], letters[place] = ord("\n"), ord(">")
        assert text.cut_fasta(letters, threads) == place
        letters[place] = ord("A")  # a line of sequence
        assert text.cut_fasta(letters, threads) == size
        letters[place - 1 : place + 1] = list(b"A>")  # no line's begin
        assert text.cut_fasta(letters, threads) == size
        letters[place - 1 : place + 1] = ord("A")
    letters[0] = ord(">")
    assert text.cut_fasta(letters, threads) == 0


RECORDS = b"".join(b">read%d\n%s\n" % (number, b"ACGTN" * (number % 7 + 1)) for number in range(200))


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_records_stay_in_order(tmp_path: Path, threads: int) -> None:
    path = write(tmp_path / "reads", RECORDS)
    with (
        patch.object(fastx, "_PIECE_BYTES", 64),
        patch.object(fastx, "_MOST_THREADS", threads),
        patch.object(fastx.os, "sched_getaffinity", lambda _: range(8)),
    ):
        assert reads_of(path, 100) == [(f"read{number}", "ACGT." * (number % 7 + 1)) for number in range(200)]


@pytest.mark.parametrize(
    "compress", [bytes, lambda data: gzip.compress(data)[:-4]], ids=["plain", "cut short"]
)
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b">wrong\nACGT>GTT\n", r"record 101 \('wrong'\) has, after 4 bases, a byte"),
        (b">wrong\nA\x00\n", "after 1 bases, a byte"),
    ],
)
def test_what_is_wrong_first_is_told_first(
    tmp_path: Path, compress: object, record: bytes, message: str
) -> None:
    """All reads in front of it come out, whatever is wrong behind it."""
    assert callable(compress)
    good = b">good\nACGT\n" * 100
    path = write(tmp_path / "reads", compress(good + record + good + b">\n\x00\n" + good))
    with patch.object(fastx, "_PIECE_BYTES", 16), pytest.raises(WorkloadError, match=message):
        seen = 0
        for block in sequences.read_blocks(path, 4):
            seen += len(block.headers)
            assert seen <= 100
    assert seen >= 98  # the last ones are held until their block is full


def test_a_fault_in_a_record_of_fastq_is_told_in_its_turn(tmp_path: Path) -> None:
    records = [b"@%d\nACGT\n+\nIIII\n" % number for number in range(100)]
    records[40] = b"@forty\nACGT\n+\nIII\n"
    records[50] = b"@fifty\nACGT\n-\nIIII\n"
    path = write(tmp_path / "reads", b"".join(records)[:-6])
    for piece in (5, 40, 100):
        with patch.object(fastx, "_PIECE_BYTES", piece):
            with pytest.raises(WorkloadError, match=r"record 41 \('forty'\) has 4 bases and 3 qualities"):
                list(sequences.read_blocks(path, 4))
            write(tmp_path / "marks", b"".join([*records[:40], *records[41:]]))
            with pytest.raises(WorkloadError, match="record 50, line 3 of its 4, starts with '-'"):
                list(sequences.read_blocks(tmp_path / "marks", 4))


# ---- the compiler


@pytest.mark.zig
@pytest.mark.usefixtures("other_compiler")
def test_zig_compiles_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang c++")
    expected = [("a", "ACGT.ACGT"), ("b", "C")]
    assert reads_of(write(tmp_path / "reads", b">a\nACGTNACGT\n>b\nC\n")) == expected


@pytest.mark.usefixtures("other_compiler")
def test_a_compiler_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = write(tmp_path / "broken.cpp", b"#error no text today\n")
    monkeypatch.setattr(text, "_SOURCE", broken)
    with pytest.raises(CompilerError, match=r"(?s)does not compile broken\.cpp: .*no text today"):
        sequences.read_blocks(write(tmp_path / "reads", b">a\nAC\n"), 1)
