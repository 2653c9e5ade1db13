"""A record in one file: Optuna's journal, written so that nothing a process can suffer damages it, and claims that
the kernel gives back when their process dies.

Optuna's own file backend leaves half a line where a process was killed or a disk was full, on which the next line
is then written, and its lock stays for half a minute behind a process that was killed.
"""

import fcntl
import hashlib
import json
import logging
import os
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import BaseJournalBackend

from autotune.errors import StoreError

__all__ = ["FileClaims", "JournalFile", "journal_rows", "open_journal"]

_log = logging.getLogger("autotune")


class JournalFile(BaseJournalBackend):
    """The operations of an Optuna storage, one JSON line each. Writers take turns by the kernel's lock on the file,
    which ends with its process. Raises StoreError for a line that is no record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines, self._bytes = 0, 0  # read so far
        path.touch()
        with self._opened() as file:
            if message := self._cut_torn_line(file):
                warnings.warn(message, stacklevel=4)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The operations from that number on."""
        if log_number_from != self._lines:
            self._lines, self._bytes = 0, 0
        for line in self._unread():
            try:
                operation = json.loads(line)
                operation["op_code"]
            except (ValueError, TypeError, LookupError):
                raise StoreError(
                    f"{self.path} line {self._lines + 1} is not a record: the file is damaged; move it away, or name "
                    "another --out"
                ) from None
            self._lines += 1
            self._bytes += len(line)
            if self._lines > log_number_from:
                yield operation

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """All of ``logs`` or none. Raises OSError when they cannot be written; the file is then as it was."""
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
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


def open_journal(folder: Path) -> tuple[optuna.storages.JournalStorage, FileClaims]:
    """The storage in that folder, made when it is not there, and what is claimed in it. Raises StoreError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal = JournalFile(folder / "store.journal")
        return optuna.storages.JournalStorage(journal), FileClaims(folder / "store.claims")
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name a folder you may write with --out"
        ) from None


def journal_rows(storage: Any, study: int, behind: int) -> tuple[list[dict[str, Any]], int]:
    """The trials recorded in a study from that number on, and the next number. One by one: to ask for all of them
    costs time for each one that is recorded."""
    found = storage.get_all_trials(study, deepcopy=False) if behind == 0 else []
    number = len(found)
    if behind:
        number = behind
        with suppress(KeyError):  # raised for the number that is not there yet
            while True:
                found.append(
                    storage.get_trial(storage.get_trial_id_from_study_id_trial_number(study, number))
                )
                number += 1
    return [row.user_attrs["trial"] for row in found if "trial" in row.user_attrs], number
