"""FASTA and FASTQ to codes: what is accepted, and every refusal."""

import gzip
import lzma
import os
import re
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from mummergpu_helpers import fastx, reads_of, sequences, text_of, write

from autotune.errors import WorkloadError


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(WorkloadError) as caught:
        sequences.read_blocks(path, 10**9, **options)
    return str(caught.value)


# ---- what is accepted


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b">a one\nACGT\nTTGA\n>b\nC\n", [("a one", "ACGTTTGA"), ("b", "C")]),
        (b">a one\r\nACGT\r\nTTGA\r\n>b\r\nC\r\n", [("a one", "ACGTTTGA"), ("b", "C")]),
        (b">a\nACGT\n>b\nC", [("a", "ACGT"), ("b", "C")]),
        (b">a\nacgtACGT\n", [("a", "ACGTACGT")]),
        (b">a\nACGT  \t\nTT GA \n\n\n>b\n\nC\n\n", [("a", "ACGTTTGA"), ("b", "C")]),
        (b">a\nACNRYKMBDHVUXacgt-.*\n", [("a", "AC...........ACGT...")]),
        (b">a\nMVLSPADKTN\n", [("a", ".....A..T.")]),
        (b">\nAC\n> b c\nGT\n", [("", "AC"), (" b c", "GT")]),
        (b">a>b @c\nAC@+\n", [("a>b @c", "AC..")]),
        (">Ä\u2028x\nAC\n".encode(), [("Ä\u2028x", "AC")]),
        (b">\xff\nAC\n", [("\udcff", "AC")]),
        (b">a\nNNNN\n", [("a", "....")]),
        (b"@a one\nACGT\n+\nIIII\n@b\nC\n+b\n@\n", [("a one", "ACGT"), ("b", "C")]),
        (b"@a one\r\nACGT\r\n+\r\nIIII\r\n@b\r\nC\r\n+b\r\n>\r\n", [("a one", "ACGT"), ("b", "C")]),
        (b"@a\nacgn\n+\n@@>+", [("a", "ACG.")]),
        (b"@a\nACGT \n+ \nIIII\t \n\n\n \n\n\n", [("a", "ACGT")]),
    ],
)
@pytest.mark.parametrize("piece", [1, 2, 5, 1 << 21])
def test_accepted(tmp_path: Path, content: bytes, expected: list[tuple[str, str]], piece: int) -> None:
    with patch.object(fastx, "_PIECE_BYTES", piece):
        assert reads_of(write(tmp_path / "reads", content)) == expected


@pytest.mark.parametrize(
    "compress",
    [
        gzip.compress,
        lzma.compress,
        lambda data: gzip.compress(data[:7]) + gzip.compress(b"") + gzip.compress(data[7:]),
        lambda data: lzma.compress(data[:7]) + lzma.compress(data[7:]),
        lambda data: gzip.compress(data) + bytes(512),
    ],
    ids=["gzip", "xz", "gzip in members", "xz in streams", "gzip padded"],
)
def test_compression_is_told_by_content(tmp_path: Path, compress: Any) -> None:
    path = write(tmp_path / "plain.fa", compress(b">a\nACGT\n>b\nCC\n"))
    assert reads_of(path) == [("a", "ACGT"), ("b", "CC")]


def test_reference(tmp_path: Path) -> None:
    path = write(tmp_path / "ref", b">one first\nACG\nT\n> two\nNN\n>three\tlast\ngatt\n")
    reference = sequences.read_reference(path)
    assert reference.names == ["one", "", "three"]
    assert text_of(reference.codes) == "ACGT....GATT."
    assert reference.codes.dtype == np.uint8 and reference.starts.dtype == np.int64
    assert reference.starts.tolist() == [0, 5, 8]
    assert reference.lengths.tolist() == [4, 2, 4]


def test_reference_over_many_pieces(tmp_path: Path) -> None:
    path = write(tmp_path / "ref", b">a\n" + b"ACGTACGTAC\n" * 100 + b">b\nGG\n")
    with patch.object(fastx, "_PIECE_BYTES", 32):
        reference = sequences.read_reference(path)
    assert text_of(reference.codes) == "ACGTACGTAC" * 100 + ".GG."
    assert reference.starts.tolist() == [0, 1001]


IN_WINDOWS = (
    b">one first\r\nACGTACGTAC\r\nGT\r\n\r\n>two\nNNAC GT\n>three and a longer header\nacgtacgtacgtacgtacgtac"
)


@pytest.mark.parametrize("window", range(1, len(IN_WINDOWS) + 2))
def test_a_reference_in_windows(tmp_path: Path, window: int) -> None:
    """Wherever a window of the file ends: in a header, at a line's end, within a line, within a record."""
    for end in (b"", b"\n", b"\n\n"):
        path = write(tmp_path / "ref", IN_WINDOWS + end)
        with (
            patch.object(fastx, "_LONG_WINDOW_BYTES", window),
            patch.object(fastx.texts, "_BYTES_AT_ONCE", 7),
        ):
            reference = sequences.read_reference(path)
        assert text_of(reference.codes) == "ACGTACGTACGT...ACGT." + "ACGT" * 5 + "AC."
        assert reference.names == ["one", "two", "three"]
        assert reference.starts.tolist() == [0, 13, 20] and reference.lengths.tolist() == [12, 6, 22]


@pytest.mark.parametrize("window", range(1, 30))
def test_what_is_no_sequence_is_found_in_every_window(tmp_path: Path, window: int) -> None:
    """A '>' within a line begins no record, though a window may begin with it."""
    for byte in b">\x00":
        path = write(tmp_path / "ref", b">a b\nACGT\n>c d\nACG%cGTACGTACGT\nAC\n>e\nAC\n" % byte)
        with (
            patch.object(fastx, "_LONG_WINDOW_BYTES", window),
            patch.object(fastx.texts, "_BYTES_AT_ONCE", 3),
            pytest.raises(
                WorkloadError, match=r"record 2 \('c'\) has, after 3 bases, a byte that is not sequence"
            ),
        ):
            sequences.read_reference(path)


@pytest.mark.parametrize(("is_plain", "memory", "says"), [
    (True, 14, ""),
    (True, 11, "more than 11 bases, and to read one takes 1 byte of this host's"),
    (False, 24, ""),
    (False, 23, "more than 11 bases, and to read one takes 2 bytes of this host's"),
])  # fmt: skip
def test_a_reference_that_memory_has_no_room_for(
    tmp_path: Path, is_plain: bool, memory: int, says: str
) -> None:
    content = b">a\nACGTACGT\n>b\nACGT\n"
    path = write(tmp_path / "ref", content if is_plain else gzip.compress(content))
    with patch.object(sequences, "host_memory", lambda: memory):
        if not says:
            assert text_of(sequences.read_reference(path).codes) == "ACGTACGT.ACGT."
            return
        with pytest.raises(WorkloadError, match=says):
            sequences.read_reference(path)


def test_a_reference_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "ref", b">a\nACGTACGT\n>b\nACGT\n")
    read = fastx.texts.read_at

    def cut_short(file: int, begin: int, room: Any, threads: int) -> int:
        os.truncate(path, 9)
        return read(file, begin, room, threads)

    with patch.object(fastx, "_LONG_WINDOW_BYTES", 4), patch.object(fastx.texts, "read_at", cut_short):
        assert text_of(sequences.read_reference(path).codes) == "ACGTAC."


@pytest.mark.parametrize("codes", [[4], [4, 4, 3], [0, 4, 4], [4] * 7])
def test_whether_there_is_a_base(codes: list[int]) -> None:
    for piece in (1, 2, 8):
        with patch.object(fastx, "_PIECE_BYTES", piece):
            assert fastx.has_base(np.array(codes, np.uint8)) == (min(codes) < 4)


@pytest.mark.parametrize("piece", [1, 6, 1 << 21])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("front", [b"", b"\n", b" \r\n\n\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
@pytest.mark.parametrize("content", [b">a\nAC\n>b\nG\n", b"@a\nAC\n+\nII\n@b\nG\n+\nI\n"])
def test_what_editors_put_in_front(
    tmp_path: Path, content: bytes, front: bytes, compress: Any, piece: int
) -> None:
    path = write(tmp_path / "reads", compress(front + content))
    with patch.object(fastx, "_PIECE_BYTES", piece):
        assert reads_of(path) == [("a", "AC"), ("b", "G")]
        assert text_of(sequences.read_reference(path).codes) == "AC.G."


@pytest.mark.parametrize("content", [b"\n", b" \n\r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_nothing_but_blanks(tmp_path: Path, content: bytes) -> None:
    assert "holds nothing but blanks" in refusal(write(tmp_path / "reads", content))


EMPTY_RECORDS = [
    (b">a\nAC\n>b c\n>d\nGT\n", [("a", "AC"), ("b c", ""), ("d", "GT")], "record 2 ('b')"),
    (b">a\nAC\n>b c", [("a", "AC"), ("b c", "")], "record 2 ('b')"),
    (b">a\n \n\n>b\nAC\n", [("a", ""), ("b", "AC")], "record 1 ('a')"),
    (b">", [("", "")], "record 1 ('')"),
    (b"@a\n\n+\n\n", [("a", "")], "record 1 ('a')"),
    (b"@a\n\n+\n\n@b\nAC\n+\nII\n@c\n\n+\n\n\n\n", [("a", ""), ("b", "AC"), ("c", "")], "record 1 ('a')"),
]


@pytest.mark.parametrize("piece", [1, 6, 1 << 21])
@pytest.mark.parametrize(("content", "reads", "record"), EMPTY_RECORDS)
def test_a_read_may_be_empty_and_a_record_of_a_reference_not(
    tmp_path: Path, content: bytes, reads: list[tuple[str, str]], record: str, piece: int
) -> None:
    path = write(tmp_path / "reads", content)
    with patch.object(fastx, "_PIECE_BYTES", piece):
        for most in (1, 2, 100):
            assert reads_of(path, most) == reads
        with pytest.raises(
            WorkloadError, match=re.escape(f"{record} has no sequence; a record of a reference")
        ):
            sequences.read_reference(path)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("slow", [False, True])
def test_a_pipe(tmp_path: Path, compress: Any, slow: bool) -> None:
    """Also one whose first bytes come one by one."""
    path, content = tmp_path / "pipe", compress(FASTA)
    os.mkfifo(path)

    def put() -> None:
        with path.open("wb", buffering=0) as pipe:
            for byte in content[:8] if slow else b"":
                pipe.write(bytes([byte]))
                time.sleep(0.01)
            pipe.write(content[8 if slow else 0 :])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(put)
        assert len(reads_of(path)) == 50
        writing.result()


# ---- what is rejected


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nowhere.fa")
    assert "cannot read" in refusal(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", gzip.compress(b""), lzma.compress(b"")], ids=["plain", "gzip", "xz"]
)
def test_empty(tmp_path: Path, content: bytes) -> None:
    assert "reads is empty" in refusal(write(tmp_path / "reads", content))


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"ACGT\n", "[41 43 47 54]"),
        (b"\n\n;a\nAC\n", "[3b 61 0a 41]"),
        (b"\xef\xbb\xbfa\nAC\n", "[61 0a 41 43]"),
        (b"\xff\xfe>\0a\0", "[ff fe 3e 00]"),
        (b"BZh91AY&SY", "[42 5a 68 39]"),
        (b"\x00", "[00]"),
        (gzip.compress(gzip.compress(b">a\nAC\n", mtime=0), mtime=0), "[1f 8b 08 00]"),
    ],
)
def test_neither_fasta_nor_fastq(tmp_path: Path, content: bytes, shown: str) -> None:
    message = refusal(write(tmp_path / "reads", content))
    assert f"starts with bytes {shown}" in message and "'>' or '@'" in message


FASTA = b"".join(b">read%d\nACGTTGCAACGTTGCA\n" % number for number in range(50))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_cut_short_or_damaged(tmp_path: Path, compress: Any) -> None:
    whole = compress(FASTA)
    for length in (6, 10, len(whole) // 2, len(whole) - 1):
        assert "cut short" in refusal(write(tmp_path / "reads", whole[:length]))
    damaged = whole[:20] + bytes(byte ^ 255 for byte in whole[20:40]) + whole[40:]
    assert "damaged" in refusal(write(tmp_path / "reads", damaged))


def test_what_follows_gzip_data(tmp_path: Path) -> None:
    assert "damaged" in refusal(write(tmp_path / "reads", gzip.compress(FASTA) + b"more"))
    checksum = bytearray(gzip.compress(FASTA))
    checksum[-8] ^= 1
    assert "damaged" in refusal(write(tmp_path / "reads", bytes(checksum)))


def test_nothing_of_a_short_damaged_file_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "reads", gzip.compress(FASTA)[:-4])
    with pytest.raises(WorkloadError, match="cut short"):
        sequences.read_blocks(path, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b">a\nAC>b\nGT\n", "record 1 ('a') has, after 2 bases, a byte that is not sequence"),
        (b">a\nAC\n>b\nG\x00T\n", "record 2 ('b') has, after 1 bases, a byte that is not sequence"),
        (b">a\nAC\x80\n", "record 1 ('a') has, after 2 bases"),
        (b"@a\nAC GT\n+\nIIIII\n", "record 1 ('a') has, after 2 bases"),
        (b"@a\nAC\n+\nII\n@b c\nGT\n+\nI\n", "record 2 ('b') has 2 bases and 1 qualities"),
        (b"@a\nAC\n+\nII\n@b c\nGT\n+\nI", "record 2 ('b') has 2 bases and 1 qualities"),
        (b"@a\nAC\n+\n\n", "record 1 ('a') has 2 bases and 0 qualities"),
        (b"@a\nAC\n+\nII\n@b c\nGT\n+\n", "record 2 ('b') is cut short: it has 3 lines"),
        (b"@a\nAC\n+\nII\n@b c\nGT", "record 2 ('b') is cut short: it has 2 lines"),
        (b"@a", "record 1 ('a') is cut short: it has 1 lines"),
        (b"@a\nAC\nGT\n+\nII\nII\n", "record 1, line 3 of its 4, starts with 'G'"),
        (b"@a\nAC\n+\nII\n@b\nGT\nII\n@c\nGT\n+\nII\n", "record 2, line 3 of its 4, starts with 'I'"),
        (b"@a\nAC\n+\nII\n\n@b\nGT\n+\nII\n", "record 2, line 1 of its 4, starts with '\\n'"),
        (b"@a\nAC\n+\nII\n>b\nGT\nGT\n+\n", "record 2, line 1 of its 4, starts with '>'"),
    ],
)
@pytest.mark.parametrize("piece", [1, 6, 1 << 21])
def test_bad_records(tmp_path: Path, content: bytes, message: str, piece: int) -> None:
    path = write(tmp_path / "reads", content)
    with patch.object(fastx, "_PIECE_BYTES", piece):
        assert message in refusal(path)
        with pytest.raises(WorkloadError, match=re.escape(message)):
            sequences.read_reference(path)


def test_rubbish(tmp_path: Path) -> None:
    rubbish = np.random.default_rng(3).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
    for first in (b">", b"@", b">a\n", b"@a\nACGT\n+\nIIII\n"):
        assert "reads record" in refusal(write(tmp_path / "reads", first + rubbish))


@pytest.mark.parametrize("content", [b">a\nNNNN\n>b\nnn\n", b">a\nFFLL\n"])
def test_reference_without_bases(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WorkloadError, match="none of A, C, G and T"):
        sequences.read_reference(write(tmp_path / "ref", content))


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_long_reads(tmp_path: Path, compress: Any) -> None:
    limit = sequences.MAX_READ_LENGTH
    longest = b">a\n" + b"A" * limit + b"\n"
    assert len(reads_of(write(tmp_path / "reads", compress(longest)))[0][1]) == limit
    message = refusal(write(tmp_path / "reads", compress(longest + b">b c\n" + b"A" * (limit + 1))))
    assert f"record 2 ('b') has {limit + 1} bases; a read may have {limit}" in message
    path = write(tmp_path / "reads", b"@q\nACGT\n+\nIIII\n")
    assert reads_of(path, max_read_length=4) == [("q", "ACGT")]
    assert "record 1 ('q') has 4 bases; a read may have 3" in refusal(path, max_read_length=3)


@pytest.mark.parametrize("start", [b">chromosome 1\n", b"@chromosome 1\n"])
def test_a_genome_given_as_reads_is_refused_early(tmp_path: Path, start: bytes) -> None:
    path = write(tmp_path / "reads", start + b"ACGT" * 5_000_000)
    tracemalloc.start()
    try:
        with patch.object(fastx, "_WINDOW_BYTES", 1 << 22):
            assert "record ('chromosome') has over" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
