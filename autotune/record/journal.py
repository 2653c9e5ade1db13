"""Optuna's journal in one file, written so that nothing that a process can suffer damages it, with a checksum in each
line that tells what a disk or a person damaged.

Optuna's own file backend leaves half a line where a process was killed or a disk was full, on which the next line is
then written, and raises for a line that is damaged. Its locks stay for half a minute behind a process that was killed,
and one that was stopped for longer than that releases the lock of another.
"""

import fcntl
import json
import logging
import os
import re
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.storages.journal import BaseJournalBackend, JournalStorage

from autotune.errors import StoreError
from autotune.processes import has_ended, process_name

_log = logging.getLogger("autotune")

_CHECKSUM = re.compile(rb',"crc32":"([0-9a-f]{8})"}\n')  # the end of a line
_BEGINS_STUDY = re.compile(rb'(?<!\\)"(?:study_name|directions)":')
_GRACE_S = 30.0  # how long a lock is left to a process of another host that does not give it back


class LinkLock:
    """A symbolic link next to the file, which names its holder: a file system that hosts share makes it once too. A
    holder of this host that has ended loses it at once, one of another host after ``grace_s``. A process that was
    stopped for longer sees by ``is_held`` that another has the lock."""

    def __init__(self, path: Path, grace_s: float) -> None:
        self._path, self._grace_s = path, grace_s
        self._link = path.with_name(f"{path.name}.lock")
        self._mine = ""

    def __enter__(self) -> Self:
        self._mine, seen, since, pause_s = process_name(), "", 0.0, 0.0005
        while True:
            with suppress(FileExistsError):
                self._link.symlink_to(self._mine)
                return self
            if (holder := self._holder()) != seen:
                seen, since = holder, time.monotonic()
            elif holder and (has_ended(holder) or time.monotonic() - since > self._grace_s):
                self._take_away(holder)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)

    def __exit__(self, *_: object) -> None:
        if self.is_held():
            self._link.unlink(missing_ok=True)

    def is_held(self) -> bool:
        return self._holder() == self._mine

    def _holder(self) -> str:
        try:
            return str(self._link.readlink())
        except FileNotFoundError:
            return ""

    def _take_away(self, holder: str) -> None:
        """Only one process at a time does it, where the file system has locks; another one may have the lock by now."""
        file = os.open(self._path, os.O_RDWR)
        try:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._holder() == holder:
                self._link.unlink(missing_ok=True)
        finally:
            os.close(file)


class JournalFile(BaseJournalBackend):
    """The operations of an Optuna storage, one JSON line each. Writers take turns by a ``LinkLock``. A line that is no
    record, or not as it was written, is left out and named in a warning; StoreError is raised where it began a study,
    since the trials behind it would be counted to another. Where it is the last one, and was not there when the file
    was opened, the rest of it may still be on its way from another host: it is read again."""

    def __init__(self, path: Path, *, is_lasting: bool = True, grace_s: float = _GRACE_S) -> None:
        self.path, self._lock, self._is_lasting = path, LinkLock(path, grace_s), is_lasting
        self.line, self._bytes = 0, 0  # read so far
        self._given = 0  # operations among those lines
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise StoreError(f"{path} is no file: move it away, or name another folder")
        if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            path.touch()
            with self._open_locked() as file:
                if message := self._cut_torn_line(file):
                    warnings.warn(message, stacklevel=4)
        self._settled = path.stat().st_size

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The operations from that number on."""
        if log_number_from != self._given:
            self.line, self._bytes, self._given = 0, 0, 0
        damaged = []
        lines = self._read_new_lines()
        for number, line in enumerate(lines, 1):
            operation = _operation(line)
            if operation is None and number == len(lines) and self._bytes >= self._settled:
                break
            self.line += 1
            self._bytes += len(line)
            if operation is None:
                if _BEGINS_STUDY.search(line):
                    raise self.make_error(f"line {self.line} is damaged, and it begins a study")
                damaged.append(self.line)
                continue
            self._given += 1
            if self._given > log_number_from:
                yield operation
        if damaged:
            self.warn_left_out(damaged)

    def warn_left_out(self, lines: list[int]) -> None:
        """Warn of lines that are not used."""
        shown = ", ".join(map(str, lines[:10])) + (" …" if len(lines) > 10 else "")
        what = f"lines {shown} are damaged and are" if len(lines) > 1 else f"line {shown} is damaged and is"
        warnings.warn(f"{self.path}: {what} left out, with the trials in them", stacklevel=2)

    def make_error(self, why: str) -> StoreError:
        """That nothing of the file can be used."""
        return StoreError(
            f"{self.path}: {why}; put back a copy of the file, or move it away, or name another --out"
        )

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """All of ``logs`` or none. Raises OSError when they cannot be written; the file is then as it was."""
        text = b"".join(map(line_of, logs))
        while not self._is_appended(text):
            _log.warning("%s: this process was stopped, and another took its turn to write", self.path)

    def _is_appended(self, text: bytes) -> bool:
        """False where another process has taken the lock."""
        with self._open_locked() as file:
            if not self._lock.is_held():
                return False
            if message := self._cut_torn_line(file):
                _log.warning(message)
            end = os.fstat(file).st_size
            try:
                rest = memoryview(text)
                while rest:
                    rest = rest[os.write(file, rest) :]
            except BaseException:
                os.ftruncate(file, end)
                raise
            if self._is_lasting:
                os.fsync(file)
        return True

    def _read_new_lines(self) -> list[bytes]:
        """The whole lines behind what was read."""
        with self.path.open("rb") as file:  # only a file that is opened is asked of a server
            if os.fstat(file.fileno()).st_size == self._bytes:
                return []
            file.seek(self._bytes)
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # torn; the next to write cuts it off
            del lines[-1]
        return lines

    @contextmanager
    def _open_locked(self) -> Iterator[int]:
        """The file under the lock; what was written is at the server when it is closed."""
        with self._lock:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND)
            try:
                yield file
            finally:
                os.close(file)

    def _cut_torn_line(self, file: int) -> str:
        """Cut off a last line that has no end: what kill -9, power loss or a full disk leave. The caller has the lock,
        so that nobody is in the middle of one. Returns what to say of it, or nothing."""
        size = os.fstat(file).st_size
        if not size or os.pread(file, 1, size - 1) == b"\n":
            return ""
        os.ftruncate(file, os.pread(file, size, 0).rfind(b"\n") + 1)
        return f"{self.path}: its last line was torn and is cut off; the trial in it is lost"


def line_of(content: Mapping[str, Any]) -> bytes:
    """As it is written: JSON with the checksum of what stands before it as its last member."""
    body = json.dumps(content, separators=(",", ":")).encode().removesuffix(b"}")
    return b'%s,"crc32":"%08x"}\n' % (body, zlib.crc32(body))


def _operation(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None for one that is no operation, or not as it was written."""
    found = _CHECKSUM.search(line, max(0, len(line) - 21))
    if not found or zlib.crc32(line[: found.start()]) != int(found[1], 16):
        return None
    try:
        operation = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return operation if isinstance(operation, dict) and {"op_code", "worker_id"} <= operation.keys() else None


class CheckedStorage(JournalStorage):
    """Optuna's storage over a journal file, with an answer for operations that cannot be carried out: anybody may write
    a line with the right checksum. Raises StoreError, OSError."""

    def __init__(self, journal: JournalFile) -> None:
        self._journal = journal
        super().__init__(journal)

    def _sync_with_backend(self) -> None:
        journal, replayed = self._journal, self._replay_result
        for operation in journal.read_logs(replayed.log_number_read):
            # A study's id is its position: where one is missing, trials would belong to another study.
            known = list(replayed._studies)  # noqa: SLF001 - Optuna has no question for it without an exception
            if "study_id" in operation and operation["study_id"] not in known:
                raise journal.make_error(
                    f"line {journal.line} is of a study that no line begins, so that one before it is damaged"
                )
            try:
                replayed.apply_logs([operation])
            except optuna.exceptions.OptunaError:  # of this process's own operation, for its caller
                raise
            except (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError):
                if operation.keys() & {"study_name", "directions"}:
                    why = f"line {journal.line} is damaged, and it begins a study"
                    raise journal.make_error(why) from None
                journal.warn_left_out([journal.line])
