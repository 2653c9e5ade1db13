"""FASTA and FASTQ, plain, gzip or xz: text to checked records, a few MB at a time.

Accepted: lower case, Windows line ends, blanks inside or after FASTA lines, no final line end, empty lines
between FASTA lines and at the end of a FASTQ file, a byte order mark and empty lines in front, records without
sequence, pipes. FASTQ has four lines to a record, as instruments write it.
A plain file is read and made codes of in windows, each by all threads; else the calling thread reads, decompresses
and cuts the text at records, and others make codes of it. See text.py.
"""

import contextlib
import gzip
import io
import itertools
import lzma
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from . import text as texts

__all__ = [
    "OTHER",
    "ReadBlock",
    "has_base",
    "join",
    "name_of",
    "offsets_of",
    "plain_fasta",
    "records",
    "require",
]

# Matches nothing, and stands between and after reference records.
OTHER = 4

_BLANK = 5
_NOT_TEXT = 6
_NEWLINE, _FASTA, _FASTQ = b"\n>@"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Large enough to make calls cheap, small enough for what a thread works on to stay near its core.
_PIECE_BYTES = 1 << 21
# More of them would wait for the text.
_MOST_THREADS = 8
# Of a plain file so much is read at a time, but for its last records.
_WINDOW_BYTES = 1 << 25
_LEAST_WINDOW = 1 << 20
# Of a reference, of which nothing is used before it is whole: threads are started less often.
_LONG_WINDOW_BYTES = 1 << 27
# Even one base to a Windows line, with a long header, takes fewer bytes for a read than this allows for.
_BYTES_PER_BASE = 4
_HEADER_BYTES = 1 << 20
_MAGIC_BYTES = 6


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

_Part = Callable[[], texts.Parsed]


@dataclass(frozen=True, eq=False)
class ReadBlock:
    """Whole reads: read i is `codes[offsets[i]:offsets[i + 1]]`; its header line is without '>' or '@'."""

    headers: Sequence[str]
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def part(self, first: int, last: int) -> "ReadBlock":
        """The reads first to last, in the same memory."""
        begin, end = self.offsets[first], self.offsets[last]
        return ReadBlock(
            self.headers[first:last], self.codes[begin:end], self.offsets[first : last + 1] - begin
        )


def has_base(codes: NDArray[np.uint8]) -> bool:
    """Whether one of ``codes`` is not OTHER."""
    pieces = range(0, len(codes), _PIECE_BYTES)  # the first one tells, most often
    return any(int(codes[begin : begin + _PIECE_BYTES].min()) < OTHER for begin in pieces)


def name_of(header: str) -> str:
    """The name in a header line, as mummer has it: up to the first ASCII blank, empty where a blank comes first."""
    return re.split(r"[ \t-\r]", header, maxsplit=1)[0]


# ---- bytes of a file


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """What goes wrong with the bytes of ``path`` in the block is a WorkloadError that says what to do."""
    try:
        yield
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


def require(path: Path) -> None:
    """Raise WorkloadError where nothing can be found at ``path``; a pipe is not opened."""
    with _told(path):
        path.stat()


def _pieces(path: Path, stream: io.BufferedIOBase) -> Generator[bytes]:
    """The rest of a stream, a few MB at a time; none of them empty.

    Reads one piece ahead, so that what is wrong with a short file shows before any of it is used.
    """
    with _told(path):
        piece = stream.read(_PIECE_BYTES)
        while piece:
            following = stream.read(_PIECE_BYTES)
            yield piece
            piece = following


@contextlib.contextmanager
def _open(path: Path) -> Iterator[io.BufferedIOBase]:
    with path.open("rb") as plain:
        magic = plain.read(_MAGIC_BYTES)
        if plain.seekable():
            plain.seek(0)
        else:
            plain = io.BufferedReader(_Whole(magic, plain))  # noqa: PLW2901
        if magic.startswith(b"\x1f\x8b"):
            with gzip.open(plain) as unzipped:
                yield unzipped
        elif magic == b"\xfd7zXZ\x00":
            with lzma.open(plain) as unpacked:
                yield unpacked
        else:
            yield plain


class _Whole(io.RawIOBase):
    """A stream that cannot be wound back, with what was read of it in front again."""

    def __init__(self, head: bytes, rest: io.BufferedReader) -> None:
        super().__init__()
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if not self._head:
            return self._rest.readinto1(room)
        taken = self._head[: len(room)]
        room[: len(taken)] = taken
        self._head = self._head[len(taken) :]
        return len(taken)


# ---- records of a text


def records(path: Path, max_length: int) -> Generator[ReadBlock, None, None]:
    """Checked records of `path`, as many at a time as a piece of text holds."""
    done = 0
    with contextlib.ExitStack() as opened, contextlib.closing(_parts(path, max_length, opened)) as parts:
        for part in parts:
            _check(path, part, done, max_length)
            done += len(part.headers)
            yield ReadBlock(part.headers, part.codes, part.offsets)


def _parts(path: Path, max_length: int, opened: contextlib.ExitStack) -> Generator[texts.Parsed, None, None]:
    """The windows of a plain file, then the pieces of the rest; of any other stream the pieces alone. The file is
    closed with ``opened``."""
    with _told(path):
        stream = opened.enter_context(_open(path))
    pieces = opened.enter_context(contextlib.closing(_pieces(path, stream)))
    first, skipped = _begun(path, pieces)
    if first[0] not in (_FASTA, _FASTQ):
        raise WorkloadError(
            f"{path} is neither FASTA nor FASTQ: it starts with bytes [{first[:4].hex(' ')}], and only '>' or "
            "'@' is allowed (before that, gzip or xz compression). Convert or decompress it, or remove what is "
            "before its first record."
        )
    is_fasta = first[0] == _FASTA
    done = 0
    rest: Iterator[bytes] = itertools.chain([first], pieces)
    if isinstance(stream, io.BufferedReader) and stream.seekable() and len(first) >= _PIECE_BYTES // 2:
        for part, end in _windows(path, stream.fileno(), skipped, is_fasta, max_length):
            yield part
            done += len(part.headers)
            skipped = end
        stream.seek(skipped)
        rest = _pieces(path, stream)
    split = _fasta if is_fasta else _fastq
    with contextlib.closing(_made(split(path, rest, max_length, done))) as made:
        yield from made


def plain_fasta(path: Path, fits: Callable[[int], None]) -> ReadBlock | None:
    """All records of a plain file of FASTA, each followed by one OTHER, which is counted neither as theirs nor as the
    next one's: record i begins at offsets[i]. ``fits`` is called with the number of codes so far, and may raise.
    Returns None for any other file: ``records`` reads it."""
    with contextlib.ExitStack() as opened:
        with _told(path):
            if not path.is_file():
                return None
            stream = opened.enter_context(_open(path))
        if not isinstance(stream, io.BufferedReader):
            return None
        first, begin = _begun(path, opened.enter_context(contextlib.closing(_pieces(path, stream))))
        if first[0] != _FASTA:
            return None
        return _whole_fasta(path, stream.fileno(), begin, fits)


def _whole_fasta(path: Path, file: int, begin: int, fits: Callable[[int], None]) -> ReadBlock:
    """Of the file from ``begin`` on. A window may end within a record, and then the next one begins within it."""
    size, threads, window = os.fstat(file).st_size, texts.cores(), _LONG_WINDOW_BYTES
    room = np.empty(0, np.uint8)
    # No smaller than what there is to read: a header has a '>' where its record has a separator in front.
    codes = np.empty(size - begin + 1, np.uint8)
    headers: list[texts.Headers] = []
    starts: list[NDArray[np.int64]] = []
    done, is_within = 0, False
    while begin < size:
        length = min(window, size - begin)
        if length >= len(room):
            room = np.empty(length + 1, np.uint8)
        with _told(path):
            read = texts.read_at(file, begin, room[:length], threads)
        if read < length:  # the file was cut short meanwhile
            size, length = begin + read, read
        if begin + length < size:
            cut = texts.cut_fasta(room[:length], threads)
            if not cut:  # a header that is longer
                window *= 2
                continue
        else:
            cut = length + 1
            room[length] = _NEWLINE
        part = texts.parse_fasta_into(codes[done:], room[:cut], _CODE_OF_BYTE, is_within, threads)
        headers.append(texts.Headers.of(part.headers))
        starts.append(done + part.offsets[:-1])
        if part.is_spoilt:
            joined = np.concatenate(starts)
            position = done + int(np.argmax(part.codes > OTHER))
            record = int(np.searchsorted(joined, position, side="right")) - 1
            name = name_of(texts.Headers.joined(headers)[record])
            raise _spoilt(path, f"{record + 1} ({name!r})", position - int(joined[record]))
        done += len(part.codes)
        fits(done)
        begin, is_within = begin + cut, bool(room[cut - 1] != _NEWLINE)
    codes[done] = OTHER
    offsets = np.append(np.concatenate(starts), done + 1)
    return ReadBlock(texts.Headers.joined(headers), codes[1 : done + 1], offsets - 1)


def _windows(
    path: Path, file: int, begin: int, is_fasta: bool, max_length: int
) -> Iterator[tuple[texts.Parsed, int]]:
    """The records of a file from the one at ``begin`` on, each window's with where they end; up to its last ones, which
    may lack a line end or have empty lines behind them. Windows grow where a record is longer."""
    done, size, threads, window = 0, os.fstat(file).st_size, texts.cores(), _WINDOW_BYTES
    room = np.empty(0, np.uint8)
    while (length := min(window, size - begin - _LEAST_WINDOW)) >= _LEAST_WINDOW:
        if length > len(room):
            room = np.empty(length, np.uint8)
        with _told(path):
            text = room[: texts.read_at(file, begin, room[:length], threads)]
        if is_fasta:
            cut = texts.last_fasta(text)
            part = texts.parse_fasta(text[:cut], _CODE_OF_BYTE, threads) if cut else None
        else:
            cut, records = texts.whole_fastq(text, threads)
            part = _fastq_part(path, text[:cut], records, done, threads) if cut else None
        if part is None:  # a record that is longer
            _check_size(path, text, len(text), max_length)
            if length < window:  # the last
                return
            window *= 2
            continue
        begin += cut
        done += len(part.headers)
        yield part, begin


def _begun(path: Path, pieces: Iterator[bytes]) -> tuple[bytes, int]:
    """The first piece from its first record on, and how many bytes are in front of that: editors put a byte order mark
    or empty lines there."""
    first, size = b"", 0
    for piece in pieces:
        first += piece
        size += len(piece)
        if len(first) >= len(_BYTE_ORDER_MARK) and (first := first.removeprefix(_BYTE_ORDER_MARK).lstrip()):
            break
    if not size:
        raise WorkloadError(f"{path} is empty, and at least one record is needed. Copy it again.")
    if not first.strip():
        raise WorkloadError(
            f"{path} holds nothing but blanks, and at least one record is needed. Copy it again."
        )
    return first, size - len(first)


def _made(parts: Iterator[_Part]) -> Generator[texts.Parsed, None, None]:
    """What the parts give, in order and a few at a time, each in a thread."""
    texts.compiled()  # once, before the threads ask for it
    threads = min(_MOST_THREADS, texts.cores())
    begun: deque[Future[texts.Parsed]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for call in _submitted(pool, parts):
            begun.append(call)
            if len(begun) > threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def _submitted(pool: Executor, parts: Iterator[_Part]) -> Iterator[Future[texts.Parsed]]:
    """What is wrong with the text comes as a part of its own, so that what is in front of it comes out first."""
    try:
        for part in parts:
            yield pool.submit(part)
    except WorkloadError as error:
        failed: Future[texts.Parsed] = Future()
        failed.set_exception(error)
        yield failed


def _fasta(path: Path, pieces: Iterator[bytes], max_length: int, _done: int) -> Iterator[_Part]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        # A header right at the start of a piece is not seen: its record comes with the one before.
        cut = piece.rfind(b"\n>") + 1
        if cut:
            yield partial(_fasta_part, *held, memoryview(piece)[:cut])
            held, size = [], 0
        held.append(piece[cut:])
        size += len(held[-1])
        _check_size(path, held[0], size, max_length)
    yield partial(_fasta_part, *held, b"\n")


def _fasta_part(*pieces: bytes | memoryview) -> texts.Parsed:
    return texts.parse_fasta(b"".join(pieces), _CODE_OF_BYTE)


def _fastq(path: Path, pieces: Iterator[bytes], max_length: int, done: int) -> Iterator[_Part]:
    text = b""
    for piece in pieces:
        text += piece
        # Empty lines at the end of what has come so far may be the end of the file: they wait.
        end = len(text.rstrip())
        lines = int(np.count_nonzero(np.frombuffer(text, np.uint8, end) == _NEWLINE))
        if records := lines // 4:
            for _ in range(lines % 4 + 1):
                end = text.rfind(b"\n", 0, end)
            yield partial(_fastq_part, path, text, records, done)
            done += records
            text = text[end + 1 :]
        _check_size(path, text, len(text), max_length)
    if text.strip():
        text += b"" if text[-1] == _NEWLINE else b"\n"
        lines = text.count(b"\n")
        if lines < 4:
            raise WorkloadError(
                f"{path} record {done + 1} ({_name(text)!r}) is cut short: it has {lines} lines, and a FASTQ "
                "record has 4. Copy the file again, whole."
            )
        yield partial(_fastq_part, path, text, 1, done)


def _fastq_part(path: Path, text: texts.Text, records: int, done: int, threads: int = 1) -> texts.Parsed:
    part = texts.parse_fastq(text, records, _CODE_OF_BYTE, threads)
    if part.unmarked >= 0:
        header, _, plus, _ = _fastq_lines(text, part.unmarked)
        line, mark, wrong = (1, "@", header) if header[0] != _FASTQ else (3, "+", plus)
        raise WorkloadError(
            f"{path} record {done + part.unmarked + 1}, line {line} of its 4, starts with {chr(wrong[0])!r}; a FASTQ "
            f"record has {mark!r} there. Write sequence and qualities on one line each, and no empty lines."
        )
    if part.unequal >= 0:
        header, bases, _, qualities = _fastq_lines(text, part.unequal)
        raise WorkloadError(
            f"{path} record {done + part.unequal + 1} ({_name(header)!r}) has {len(bases.rstrip())} bases and "
            f"{len(qualities.rstrip())} qualities; a FASTQ record has as many of one as of the other. "
            "Copy the file again, or remove that record."
        )
    return part


def _fastq_lines(text: texts.Text, record: int) -> list[bytes]:
    """The four lines of a record, each with its end."""
    lines = bytes(text).split(b"\n", 4 * record + 4)
    return [line + b"\n" for line in lines[4 * record : 4 * record + 4]]


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths)))


def _name(text: texts.Text) -> str:
    line = bytes(text[1:_HEADER_BYTES]).split(b"\n", 1)[0]
    return name_of(line.decode("utf-8", "surrogateescape"))


def _check_size(path: Path, text: texts.Text, size: int, max_length: int) -> None:
    """Refuses, before it fills the memory, a record that cannot be a read."""
    if size > _BYTES_PER_BASE * max_length + _HEADER_BYTES:
        raise _too_long(path, f"({_name(text)!r})", f"over {size // _BYTES_PER_BASE}", max_length)


def _too_long(path: Path, which: str, bases: str, max_length: int) -> WorkloadError:
    return WorkloadError(
        f"{path} record {which} has {bases} bases; a read may have {max_length}. Remove or split it (is this file "
        "the reference?)."
    )


def _check(path: Path, part: texts.Parsed, done: int, max_length: int) -> None:
    def which(record: int) -> str:
        return f"{done + record + 1} ({name_of(part.headers[record])!r})"

    lengths = np.diff(part.offsets)
    if int(lengths.max()) > max_length:
        record = int(np.argmax(lengths > max_length))
        raise _too_long(path, which(record), str(lengths[record]), max_length)
    if part.is_spoilt:
        position = int(np.argmax(part.codes > OTHER))
        record = int(np.searchsorted(part.offsets, position, side="right")) - 1
        raise _spoilt(path, which(record), position - int(part.offsets[record]))


def _spoilt(path: Path, which: str, bases: int) -> WorkloadError:
    return WorkloadError(
        f"{path} record {which} has, after {bases} bases, a byte that is not sequence; letters and the signs * - . "
        "are. Copy the file again if it was damaged; where files were joined, put a line end between them."
    )


def join(parts: list[ReadBlock]) -> ReadBlock:
    if len(parts) == 1:
        return parts[0]
    return ReadBlock(
        headers=texts.Headers.joined([texts.Headers.of(part.headers) for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
    )
