"""A record in one file: Optuna's journal, written so that nothing a process can suffer damages it, with a checksum in
each line that tells what a disk or a person damaged; and claims that the kernel gives back when their process dies.

Optuna's own file backend leaves half a line where a process was killed or a disk was full, on which the next line
is then written, and its lock stays for half a minute behind a process that was killed.
"""

import fcntl
import hashlib
import logging
import os
import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import BaseJournalBackend, JournalStorage

from autotune.errors import StoreError
from autotune.record.lines import content_of, line_of

_log = logging.getLogger("autotune")

_BEGINS_STUDY = re.compile(rb'(?<!\\)"(?:study_name|directions)":')


class JournalFile(BaseJournalBackend):
    """The operations of an Optuna storage, one JSON line each. Writers take turns by the kernel's lock on the file,
    which ends with its process. A line that is no record, or not as it was written, is left out and named in a warning;
    StoreError is raised where it began a study, since the trials behind it would be counted to another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines, self._bytes = 0, 0  # read so far
        self._given = 0  # operations among those lines
        path.touch()
        with self._opened() as file:
            if message := self._cut_torn_line(file):
                warnings.warn(message, stacklevel=4)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The operations from that number on."""
        if log_number_from != self._given:
            self._lines, self._bytes, self._given = 0, 0, 0
        damaged = []
        for line in self._unread():
            self._lines += 1
            self._bytes += len(line)
            operation = _operation(line)
            if operation is None:
                if _BEGINS_STUDY.search(line):
                    raise self.unreadable(f"line {self._lines} is damaged, and it begins a study")
                damaged.append(self._lines)
                continue
            self._given += 1
            if self._given > log_number_from:
                yield operation
        if damaged:
            self.left_out(damaged)

    def left_out(self, lines: list[int]) -> None:
        """Warn of lines that are not used."""
        shown = ", ".join(map(str, lines[:10])) + (" …" if len(lines) > 10 else "")
        what = f"lines {shown} are damaged and are" if len(lines) > 1 else f"line {shown} is damaged and is"
        warnings.warn(f"{self.path}: {what} left out, with the trials in them", stacklevel=2)

    def unreadable(self, why: str) -> StoreError:
        """That nothing of the file can be used."""
        return StoreError(
            f"{self.path}: {why}; put back a copy of the file, or move it away, or name another --out"
        )

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._lines

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """All of ``logs`` or none. Raises OSError when they cannot be written; the file is then as it was."""
        text = b"".join(map(line_of, logs))
        with self._opened() as file:
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
            fcntl.flock(file, fcntl.LOCK_UN)  # the line is whole: others need not wait for the disk
            os.fsync(file)

    def _unread(self) -> list[bytes]:
        """The whole lines behind what was read."""
        if self.path.stat().st_size == self._bytes:
            return []
        with self._opened(fcntl.LOCK_SH) as file:  # no writer is in the middle of a line
            os.lseek(file, self._bytes, os.SEEK_SET)
            with open(file, "rb", closefd=False) as reader:
                lines = reader.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # torn; whoever writes next cuts it off
            del lines[-1]
        return lines

    @contextmanager
    def _opened(self, kind: int = fcntl.LOCK_EX) -> Iterator[int]:
        """The file under a lock of the kernel's."""
        file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(file, kind)
            yield file
        finally:
            os.close(file)  # which unlocks

    def _cut_torn_line(self, file: int) -> str:
        """Cut off a last line that has no end: what kill -9, power loss or a full disk leave. The caller has the lock,
        so that nobody is in the middle of one. Returns what to say of it, or nothing."""
        size = end = os.fstat(file).st_size
        if not size or os.pread(file, 1, size - 1) == b"\n":
            return ""
        newline = -1
        while newline < 0 < end:
            start = max(0, end - 65536)
            newline = os.pread(file, end - start, start).rfind(b"\n")
            end = start + newline + 1
        os.ftruncate(file, end)
        return f"{self.path}: its last line was torn and is cut off; the trial in it is lost"


def _operation(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None for one that is no operation, or not as it was written."""
    operation = content_of(line)
    return operation if operation is not None and {"op_code", "worker_id"} <= operation.keys() else None


class _Storage(JournalStorage):
    """Optuna's storage over a journal file, with an answer for operations that cannot be carried out: what an earlier
    version wrote has no checksum, so that damage shows only here."""

    def __init__(self, journal: JournalFile) -> None:
        self._journal = journal
        super().__init__(journal)

    def _sync_with_backend(self) -> None:
        journal, replayed = self._journal, self._replay_result
        for operation in journal.read_logs(replayed.log_number_read):
            # Studies are told apart by counting them: where one is missing, trials would be another study's.
            known = list(replayed._studies)  # noqa: SLF001 - Optuna has no question for it without an exception
            if "study_id" in operation and operation["study_id"] not in known:
                raise journal.unreadable(
                    f"line {journal.line} is of a study that no line begins, so that one before it is damaged"
                )
            try:
                replayed.apply_logs([operation])
            except optuna.exceptions.OptunaError:  # this process's own operation: it is told so
                raise
            except (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError):
                if operation.keys() & {"study_name", "directions"}:
                    why = f"line {journal.line} is damaged, and it begins a study"
                    raise journal.unreadable(why) from None
                journal.left_out([journal.line])


class FileClaims:
    """What this process is trying: a lock of the kernel's on one byte for each name, in a file that stays empty. It
    ends with the process, however that ends, so there is neither a heartbeat to keep nor one to wait for."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._held: set[str] = set()

    def take(self, name: str) -> bool:
        """Whether the name was free and is now this process's."""
        if name in self._held:
            return False
        try:
            self._lock(fcntl.F_WRLCK, name)
        except (BlockingIOError, PermissionError):  # the two that POSIX allows for: another has it
            return False
        self._held.add(name)
        return True

    def holds(self, name: str) -> bool:
        """Whether this process has it, still."""
        return name in self._held

    def drop(self, name: str) -> None:
        """Give the name back, if this process has it."""
        if name in self._held:
            self._held.discard(name)
            self._lock(fcntl.F_UNLCK, name)

    def close(self) -> None:
        os.close(self._file)

    def _lock(self, kind: int, name: str) -> None:
        # Of the open file, not of the process (F_SETLK): two stores in one process exclude each other too.
        byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0))


def open_journal(folder: Path) -> tuple[JournalStorage, FileClaims]:
    """The storage in that folder, made when it is not there, and what is claimed in it. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal = JournalFile(folder / "store.journal")
        return _Storage(journal), FileClaims(folder / "store.claims")
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name a folder you may write with --out"
        ) from None
