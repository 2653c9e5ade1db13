"""A record that many hosts share in a folder of a network file system, with nothing but files.

What such a file system promises everywhere is little: a file that one host writes, syncs and closes is seen by whoever
opens it later, and ``link`` makes a name or says that it is there. Locks, O_EXCL and appending from several hosts are
not to be relied on, and clocks differ. So each process has a journal of its own, which nobody else writes to, and
readers merge them. A turn that is counted up past all that was read orders what one process wrote knowing of another's.

    autotune-shared-record      what tells such a folder from others
    WRITER.journal              what that process recorded
    WRITER.owner                its name and its pulse: what its claims are links to
    NAME.GENERATION.claim       that name's claim; the owner of the highest generation has it
"""

import hashlib
import os
import platform
import re
import secrets
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from autotune.declaration import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.lines import content_of, has_checksum, line_of
from autotune.record.place import Claims
from autotune.record.pulse import SILENT_S, Pulse
from autotune.record.typed import require_types

SHARED = "shared:"  # what an address begins with
_MARK = "autotune-shared-record"
_COUNT = 20  # digits of a pulse
_GENERATION = re.compile(r"\.([0-9]{1,18})\.claim")


def is_shared(folder: Path) -> bool:
    """Whether a folder holds such a record."""
    return (folder / _MARK).is_file()


# -- what is recorded -------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Turn:
    """When a line was written, among all writers': after every line that its writer had read."""

    number: int
    writer: str
    line: int


@dataclass
class _Kept:
    """One study: what is said of it with the turn of that, its trials as they were read, and the turn of the newest of
    each configuration."""

    said: dict[str, tuple[Turn, Any]] = field(default_factory=dict)
    trials: list[tuple[Turn, str, dict[str, Any]]] = field(default_factory=list)
    newest: dict[str, Turn] = field(default_factory=dict)

    def take(self, turn: Turn, key: str, value: Any) -> None:
        if key != "trial":
            if key not in self.said or self.said[key][0] < turn:
                self.said[key] = (turn, value)
            return
        configuration = Configuration(value["configuration"]).id
        self.trials.append((turn, configuration, value))
        self.newest[configuration] = max(turn, self.newest.get(configuration, turn))

    @property
    def begun(self) -> Turn:
        return min(turn for turn, _ in self.said.values())


class _Line(TypedDict):
    turn: int
    study: str
    key: str
    value: Any


class _OwnJournal:
    """What this process writes. Opened by the first line, so that who only reads leaves nothing behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._end = self.lines = 0

    def append(self, text: bytes) -> None:
        """All of it, on the server's disk when this returns, or none. Raises OSError."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            _sync_folder(self._path.parent)
        if os.fstat(self._file).st_size > self._end:  # of a line that failed
            os.ftruncate(self._file, self._end)
        written = 0
        try:
            while written < len(text):
                written += os.pwrite(self._file, text[written:], self._end + written)
            os.fsync(self._file)
            if not os.fstat(self._file).st_nlink:
                raise FileNotFoundError(2, "No such file or directory", str(self._path))
        except OSError:
            with suppress(OSError):  # the next line tries it again
                os.ftruncate(self._file, self._end)
            raise
        self._end += len(text)
        self.lines += 1

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class _OtherJournal:
    """What another process wrote, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self._bytes = 0
        self._is_odd = False

    def news(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(line number, content) of the whole lines behind what was read. Of the last one, a part may not be there yet,
        even in its middle; one that has another behind it is as it will be."""
        if self._is_odd:
            return
        if self.path.exists() and not self.path.is_file():  # a pipe would be waited for
            self._is_odd = True
            warnings.warn(f"{self.path} is no file: it is left out", stacklevel=2)
            return
        with self.path.open(
            "rb"
        ) as file:  # opened anew: only then a network file system looks for what is new
            file.seek(self._bytes)
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            del lines[-1]
        for number, line in enumerate(lines):
            content = content_of(line) if has_checksum(line) else None
            if content is None and number == len(lines) - 1:
                return
            self.lines += 1
            self._bytes += len(line)
            if content is None:
                warnings.warn(
                    f"{self.path}: line {self.lines} is damaged and is left out, with the trial in it",
                    stacklevel=2,
                )
            else:
                yield self.lines, content


class SharedFolder:
    """A place.Place in ``folder``, made where it is not there. ``silent_s`` as in pulse.Pulse. Raises StoreError."""

    patience_s = 0.0
    away: tuple[type[Exception], ...] = ()

    def __init__(self, folder: Path, *, silent_s: float = SILENT_S) -> None:
        self.where, self._folder = str(folder), folder
        if not is_shared(folder):  # one that is may be read by who may not write to it
            _made(folder)
        host = re.sub(r"[^\w-]", "_", platform.node())[:40]
        self.writer = f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
        self.claims: Claims = FolderClaims(folder, self.writer, silent_s)
        self._own = _OwnJournal(folder / f"{self.writer}.journal")
        self._others: dict[str, _OtherJournal] = {}
        self._kept: dict[str, _Kept] = {}
        self._last = 0  # turn
        self._lock = threading.RLock()

    def studies(self) -> dict[str, dict[str, Any]]:
        with self._read() as kept:
            told = [name for name, one in kept.items() if one.said]
            ordered = sorted(told, key=lambda name: kept[name].begun)
            return {name: self._said(name) for name in ordered}

    def begin(self, name: str) -> None:
        if not self.said(name):
            self._append(name, "begun", self.writer)

    def said(self, name: str) -> dict[str, Any]:
        with self._read():
            return self._said(name)

    def _said(self, name: str) -> dict[str, Any]:
        return {key: value for key, (_, value) in self._kept[name].said.items()} if name in self._kept else {}

    def say(self, name: str, key: str, value: Any) -> None:
        self._append(name, key, value)

    def add(self, name: str, trial: Mapping[str, Any], policies: Mapping[str, Policy]) -> None:  # noqa: ARG002
        self._append(name, "trial", dict(trial))

    def rows(self, name: str, behind: int) -> tuple[list[dict[str, Any]], int]:
        with self._read() as kept:
            if name not in kept:
                return [], behind
            one = kept[name]
            new = sorted(one.trials[behind:], key=lambda row: row[0])
            # What comes late may be older than what was read before.
            return [trial for turn, key, trial in new if turn == one.newest[key]], len(one.trials)

    def close(self) -> None:
        self.claims.close()
        self._own.close()

    def _append(self, name: str, key: str, value: Any) -> None:
        with self._lock:
            content = {"turn": self._last + 1, "study": name, "key": key, "value": value}
            self._own.append(line_of(content))
            self._take(content, self.writer, self._own.lines)

    @contextmanager
    def _read(self) -> Iterator[dict[str, _Kept]]:
        """Every study, with what others recorded by now."""
        with self._lock:
            for path in self._folder.glob("*.journal"):
                if path.stem not in (self.writer, *self._others):
                    self._others[path.stem] = _OtherJournal(path)
            for writer, journal in self._others.items():
                for line, content in journal.news():
                    self._take(content, writer, line)
            yield self._kept

    def _take(self, content: dict[str, Any], writer: str, line: int) -> None:
        try:
            require_types(_Line, content)
            turn = Turn(content["turn"], writer, line)
            self._kept.setdefault(content["study"], _Kept()).take(turn, content["key"], content["value"])
            self._last = max(self._last, turn.number)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            warnings.warn(
                f"{self._folder / writer}.journal: line {line} is no record ({type(problem).__name__}: {problem}): it "
                "is left out",
                stacklevel=2,
            )


def _made(folder: Path) -> None:
    """The folder with its mark. Raises StoreError: one that cannot be written to, has another record, or no links."""
    mark, link = folder / _MARK, folder / f".{secrets.token_hex(8)}.link"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "store.journal").exists():
            raise StoreError(
                f"{folder} has the record of one host (store.journal); name another folder for one that hosts share"
            )
        mark.touch()
        os.link(mark, link)
        link.unlink()
        _sync_folder(folder)
    except OSError as problem:
        raise StoreError(
            f"cannot keep a record that hosts share in {folder}: {problem.strerror or problem}; it takes a folder that "
            "you may write to, on a file system with hard links (NFS, Lustre and GPFS have them)"
        ) from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no such thing, and make names at once
            os.fsync(handle)
    finally:
        os.close(handle)


# -- who tries what ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Owner:
    writer: str
    sign: str


class FolderClaims:
    """A place.Claims of links. One is made in the folder that the journals lie in: having changed it, this host looks
    at it anew, and sees the journal of whoever had the name before.

    A name has generations, and is its who has the highest. Who finds its owner dead links the next one; an owner that
    was not dead sees that by ``holds``. Whoever made a link looks again: below a higher one, or in place of another
    owner than the one that was dead, it is taken back. So two that are at it at once may both have to try again, and
    never both have it.
    """

    def __init__(self, folder: Path, writer: str, silent_s: float = SILENT_S) -> None:
        self._folder, self._writer = folder, writer
        self._path = folder / f"{writer}.owner"
        self._file = -1
        self._held: dict[str, int] = {}
        self._turn = threading.RLock()
        self.pulse = Pulse(self._show, (OSError,), silent_s)

    def take(self, name: str) -> bool:
        """Whether the name was free and is now this process's. Raises OSError."""
        with self._turn:
            if name in self._held:
                return False
            self._begin()
            stem = _stem(name)
            top = self._top(stem)
            before = self._owner(stem, top)
            if before and before.writer == self._writer:  # made by a call that was told of an error
                self._held[name] = top
                return True
            if top >= 0 and (before is None or self._is_alive(before)):
                return False
            with suppress(
                FileExistsError
            ):  # which a server also says when it was asked twice for one that it made
                os.link(self._path, self._claim(stem, top + 1))
            if not self._is_mine(stem, top + 1):
                return False
            under = self._owner(stem, top)
            is_beaten = under is not None and before is not None and under.writer != before.writer
            if self._top(stem) != top + 1 or is_beaten:
                self._claim(stem, top + 1).unlink(missing_ok=True)
                return False
            self._held[name] = top + 1
            return True

    def holds(self, name: str) -> bool:
        """Whether this process has the name, still. Raises OSError."""
        with self._turn:
            generation, stem = self._held.get(name), _stem(name)
            return (
                generation is not None and self._top(stem) == generation and self._is_mine(stem, generation)
            )

    def drop(self, name: str) -> None:
        """Give the name back, if this process has it. Raises OSError."""
        with self._turn:
            if name not in self._held:
                return
            is_held, stem, generation = self.holds(name), _stem(name), self._held.pop(name)
            for older in sorted(self._generations(stem)) if is_held else ():  # the one that counts comes last
                if older <= generation:
                    self._claim(stem, older).unlink(missing_ok=True)

    def close(self) -> None:
        """Give everything back."""
        self.pulse.close()
        with self._turn, suppress(OSError):
            for name in list(self._held):
                self.drop(name)
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
                self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            os.write(self._file, f"{self._writer}\n".encode())
            self.pulse.begin()

    def _show(self, count: int) -> None:
        os.pwrite(self._file, b"%0*d\n" % (_COUNT, count), len(self._writer) + 1)
        os.fsync(self._file)

    def _is_alive(self, owner: _Owner) -> bool:
        return not self.pulse.is_silent(owner.writer, owner.sign)

    def _top(self, stem: str) -> int:
        """The highest generation of a name that is there, -1 for none."""
        return max(self._generations(stem), default=-1)

    def _generations(self, stem: str) -> Iterator[int]:
        for path in self._folder.glob(f"{stem}.*.claim"):
            if found := _GENERATION.fullmatch(path.name, len(stem)):
                yield int(found[1])
            else:
                warnings.warn(f"{path} is no claim of autotune's: it is left out", stacklevel=2)

    def _owner(self, stem: str, generation: int) -> _Owner | None:
        """Whose claim that is; None where it is no more. What is no file of autotune's gives no sign of life."""
        path = self._claim(stem, generation)
        try:
            if path.exists() and not path.is_file():  # a pipe would be waited for
                return _Owner("", "")
            text = path.read_text(errors="replace")
        except FileNotFoundError:
            return None
        writer, _, sign = text.partition("\n")
        return _Owner(writer, sign)

    def _is_mine(self, stem: str, generation: int) -> bool:
        owner = self._owner(stem, generation)
        return owner is not None and owner.writer == self._writer

    def _claim(self, stem: str, generation: int) -> Path:
        return self._folder / f"{stem}.{generation}.claim"


def _stem(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
