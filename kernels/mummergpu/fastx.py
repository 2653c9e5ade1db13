"""FASTA and FASTQ, plain, gzip or xz: text to checked records, a few MB at a time.

Accepted: lower case, Windows line ends, blanks inside or after FASTA lines, no final line end, empty lines
between FASTA lines and at the end of a FASTQ file. FASTQ has four lines to a record, as instruments write it.
Every step works on a whole piece of text; none looks at one character at a time.
"""

import contextlib
import gzip
import io
import itertools
import lzma
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.errors import WorkloadError

__all__ = ["OTHER", "ReadBlock", "first_word", "join", "offsets_of", "records"]

# Matches nothing, and stands between and after reference records.
OTHER = 4

_BLANK = 5
_NOT_TEXT = 6
_NEWLINE, _FASTA, _FASTQ, _PLUS = b"\n>@+"

# Large enough to make calls cheap, small enough for the arrays of a step to stay near the core.
_PIECE_BYTES = 1 << 21
# Even one base to a Windows line, with a long header, takes fewer bytes for a read than this allows for.
_BYTES_PER_BASE = 4
_HEADER_BYTES = 1 << 20


def _code_of_byte() -> bytes:
    codes = np.full(256, _NOT_TEXT, np.uint8)
    codes[33:127] = OTHER
    # A '>' inside a line is what is left of two files joined without a line end between them.
    codes[_FASTA] = _NOT_TEXT
    codes[list(b" \t\n\v\f\r")] = _BLANK
    for letters in (b"ACGT", b"acgt"):
        codes[list(letters)] = range(4)
    return codes.tobytes()


_CODE_OF_BYTE = _code_of_byte()


@dataclass(frozen=True, eq=False)
class ReadBlock:
    """Whole reads: read i is `codes[offsets[i]:offsets[i + 1]]`; its header line is without '>' or '@'."""

    headers: list[str]
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def first_word(header: str) -> str:
    """The name in a header line: up to the first ASCII blank, of which there may be some before it, too."""
    words = header.encode("utf-8", "surrogateescape").split(maxsplit=1)
    return words[0].decode("utf-8", "surrogateescape") if words else ""


# ---- bytes of a file


def _pieces(path: Path) -> Generator[bytes]:
    """The decompressed content of `path`, a few MB at a time; at least one piece, none of them empty.

    Reads one piece ahead, so that what is wrong with a short file shows before any of it is used.
    """
    try:
        with _open(path) as stream:
            piece = stream.read(_PIECE_BYTES)
            if not piece:
                raise WorkloadError(f"{path} is empty, and at least one record is needed. Copy it again.")
            while piece:
                following = stream.read(_PIECE_BYTES)
                yield piece
                piece = following
    except EOFError as error:
        raise WorkloadError(
            f"{path} is cut short: its compressed data has no end. Copy it again, whole."
        ) from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise WorkloadError(
            f"{path} is damaged: {error}. Only plain, gzip or xz data is read. Copy it again."
        ) from error
    except OSError as error:
        raise WorkloadError(
            f"cannot read {path}: {error.strerror or error}. Give the path of a FASTA or FASTQ file."
        ) from error


@contextlib.contextmanager
def _open(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile | lzma.LZMAFile]:
    with path.open("rb") as plain:
        magic = plain.read(6)
        plain.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.open(plain) as unzipped:
                yield unzipped
        elif magic == b"\xfd7zXZ\x00":
            with lzma.open(plain) as unpacked:
                yield unpacked
        else:
            yield plain


# ---- records of a text


def records(path: Path, max_length: int) -> Iterator[ReadBlock]:
    """Checked records of `path`, as many at a time as a piece of text holds."""
    done = 0
    with contextlib.closing(_pieces(path)) as pieces:
        first = next(pieces)
        if first[0] not in (_FASTA, _FASTQ):
            raise WorkloadError(
                f"{path} is neither FASTA nor FASTQ: it starts with bytes [{first[:4].hex(' ')}], and only '>' or "
                "'@' is allowed (before that, gzip or xz compression). Convert or decompress it, or remove what is "
                "before its first record."
            )
        split = _fasta if first[0] == _FASTA else _fastq
        for part in split(path, itertools.chain([first], pieces), max_length):
            _check(path, part, done, max_length)
            done += len(part.headers)
            yield part


def _fasta(path: Path, pieces: Iterator[bytes], max_length: int) -> Iterator[ReadBlock]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        # A header right at the start of a piece is not seen: its record comes with the one before.
        cut = piece.rfind(b"\n>") + 1
        if cut:
            yield _fasta_part(b"".join((*held, piece[:cut])))
            held, size = [], 0
        held.append(piece[cut:])
        size += len(held[-1])
        _check_size(path, held[0], size, max_length)
    yield _fasta_part(b"".join((*held, b"\n")))


def _fasta_part(text: bytes) -> ReadBlock:
    letters = np.frombuffer(text, np.uint8)
    codes = np.frombuffer(text.translate(_CODE_OF_BYTE), np.uint8)
    blanks = np.flatnonzero(codes == _BLANK)
    line_ends = blanks[letters[blanks] == _NEWLINE]
    line_starts = np.concatenate(([0], line_ends[:-1] + 1))
    is_header = letters[line_starts] == _FASTA
    heads, bodies = line_starts[is_header], line_ends[is_header]
    ends = np.append(heads[1:], len(text))
    lengths = ends - bodies - (np.searchsorted(blanks, ends) - np.searchsorted(blanks, bodies))
    sequence = _cut(codes, bodies, ends)
    return ReadBlock(_headers(letters, heads, bodies), sequence[sequence != _BLANK], offsets_of(lengths))


def _fastq(path: Path, pieces: Iterator[bytes], max_length: int) -> Iterator[ReadBlock]:
    done = 0
    text = b""
    for piece in pieces:
        text += piece
        # Empty lines at the end of what has come so far may be the end of the file: they wait.
        line_ends = np.flatnonzero(np.frombuffer(text.rstrip(), np.uint8) == _NEWLINE)
        line_ends = line_ends[: len(line_ends) // 4 * 4]
        if len(line_ends):
            yield _fastq_part(path, text, line_ends, done)
            done += len(line_ends) // 4
            text = text[line_ends[-1] + 1 :]
        _check_size(path, text, len(text), max_length)
    if text.strip():
        text += b"" if text[-1] == _NEWLINE else b"\n"
        line_ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)[:4]
        if len(line_ends) < 4:
            raise WorkloadError(
                f"{path} record {done + 1} ({_name(text)!r}) is cut short: it has {len(line_ends)} lines, and a FASTQ "
                "record has 4. Copy the file again, whole."
            )
        yield _fastq_part(path, text, line_ends, done)


def _fastq_part(path: Path, text: bytes, line_ends: NDArray[np.int64], done: int) -> ReadBlock:
    letters = np.frombuffer(text, np.uint8)
    codes = np.frombuffer(text.translate(_CODE_OF_BYTE), np.uint8)
    starts = np.concatenate(([0], line_ends[:-1] + 1))
    bad_header, bad_plus = letters[starts[0::4]] != _FASTQ, letters[starts[2::4]] != _PLUS
    wrong = np.flatnonzero(bad_header | bad_plus)
    if len(wrong):
        record = int(wrong[0])
        line, mark = (1, "@") if bad_header[record] else (3, "+")
        found = chr(letters[starts[4 * record + line - 1]])
        raise WorkloadError(
            f"{path} record {done + record + 1}, line {line} of its 4, starts with {found!r}; a FASTQ record has "
            f"{mark!r} there. Write sequence and qualities on one line each, and no empty lines."
        )
    ends = line_ends.copy()
    while (trailing := (ends > starts) & (codes[ends - 1] == _BLANK)).any():
        ends[trailing] -= 1
    lengths = ends - starts
    wrong = np.flatnonzero(lengths[1::4] != lengths[3::4])
    if len(wrong):
        record = int(wrong[0])
        raise WorkloadError(
            f"{path} record {done + record + 1} ({_name(text[starts[4 * record] :])!r}) has {lengths[4 * record + 1]} "
            f"bases and {lengths[4 * record + 3]} qualities; a FASTQ record has as many of one as of the other. "
            "Copy the file again, or remove that record."
        )
    headers = _headers(letters, starts[0::4], line_ends[0::4])
    return ReadBlock(headers, _cut(codes, starts[1::4], ends[1::4]), offsets_of(lengths[1::4]))


def _cut(values: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """values[starts[0]:ends[0]], values[starts[1]:ends[1]] … in one array; the slices ascend."""
    runs = np.empty(2 * len(starts), np.int64)
    runs[0] = starts[0]
    runs[2::2] = starts[1:] - ends[:-1]
    runs[1::2] = ends - starts
    chosen = np.repeat(np.resize([False, True], len(runs)), runs)
    result: NDArray[np.uint8] = values[: len(chosen)][chosen]
    return result


def _headers(
    letters: NDArray[np.uint8], starts: NDArray[np.int64], line_ends: NDArray[np.int64]
) -> list[str]:
    lines = _cut(letters, starts + 1, line_ends + 1).tobytes().replace(b"\r\n", b"\n")
    # Not every header is UTF-8; whatever its bytes are, they are written back as they were.
    return lines.decode("utf-8", "surrogateescape").split("\n")[:-1]


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths)))


def _name(text: bytes) -> str:
    return first_word(text[1:_HEADER_BYTES].split(b"\n", 1)[0].decode("utf-8", "surrogateescape"))


def _check_size(path: Path, text: bytes, size: int, max_length: int) -> None:
    """Refuses, before it fills the memory, a record that cannot be a read."""
    if size > _BYTES_PER_BASE * max_length + _HEADER_BYTES:
        raise _too_long(path, f"({_name(text)!r})", f"over {size // _BYTES_PER_BASE}", max_length)


def _too_long(path: Path, which: str, bases: str, max_length: int) -> WorkloadError:
    return WorkloadError(
        f"{path} record {which} has {bases} bases; a read may have {max_length}. Remove or split it (is this file "
        "the reference?)."
    )


def _check(path: Path, part: ReadBlock, done: int, max_length: int) -> None:
    def which(record: int) -> str:
        return f"{done + record + 1} ({first_word(part.headers[record])!r})"

    lengths = np.diff(part.offsets)
    if not lengths.all():
        raise WorkloadError(
            f"{path} record {which(int(np.argmin(lengths)))} has no sequence; at least 1 base is needed. Remove it."
        )
    if int(lengths.max()) > max_length:
        record = int(np.argmax(lengths > max_length))
        raise _too_long(path, which(record), str(lengths[record]), max_length)
    if int(part.codes.max()) > OTHER:
        position = int(np.argmax(part.codes > OTHER))
        record = int(np.searchsorted(part.offsets, position, side="right")) - 1
        raise WorkloadError(
            f"{path} record {which(record)} has, after {position - part.offsets[record]} bases, a byte that is not "
            "sequence; letters and the signs * - . are. Copy the file again if it was damaged; where files were "
            "joined, put a line end between them."
        )


def join(parts: list[ReadBlock]) -> ReadBlock:
    if len(parts) == 1:
        return parts[0]
    return ReadBlock(
        headers=[header for part in parts for header in part.headers],
        codes=np.concatenate([part.codes for part in parts]),
        offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
    )
