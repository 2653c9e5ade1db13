"""Processes of this one's own: none outlives it, none leaves a file behind.

They are started afresh, never forked: a CUDA context may exist in this process, and does not survive a fork. None
imports the program that starts it, so a script needs no guard around what it does, and a notebook has none to
import. Whatever runs in one may crash, hang or be killed; ``Child.death`` says what became of it.

And ``quiet_optuna``: what Optuna logs in this process belongs to the program, but while autotune calls it.
"""

import atexit
import ctypes
import errno
import hashlib
import inspect
import math
import multiprocessing
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, StoreError

__all__ = [
    "Answer", "Child", "Failure", "Warned", "death", "end_spares", "exchange", "guard", "has_ended", "keep_spares",
    "own_folder", "process_name", "program", "python", "report_problems", "run_attended", "run_beside", "warn",
]  # fmt: skip


_END_SECONDS = 10.0  # for a process that was asked to end
_DEATH_SECONDS = 5.0  # from the end of a process's pipe to its own
_PDEATHSIG = 1  # prctl: the signal that a process gets when its parent ends


class Child:
    """A process that calls ``target(pipe, *arguments)``, in a process group of its own, with what it runs.

    It ends with this process, however that one ends: at once, whatever it is at, or, where it ``tidies``, after it has
    removed ``folder``, which its temporary files are in. Ctrl-C is left to this process. Raises ``error``, in which it
    is called ``what``, where none can be started.
    """

    def __init__(
        self,
        target: Callable[..., None],
        arguments: Sequence[object],
        *,
        folder: str,
        what: str,
        error: type[AutotuneError],
        tidies: bool = False,
    ) -> None:
        self._lock, self._is_killed = threading.Lock(), False
        try:
            self.process, self.pipe, self._alive = (None if tidies else _take_spare()) or _begin()
        except (OSError, MemoryError) as problem:
            said = getattr(problem, "strerror", "") or "not enough memory"
            raise error(f"cannot start {what}: {said}") from None
        try:
            self.send((sys.path, dict(os.environ)))
            self.send((os.getpid(), folder, tidies, target, tuple(arguments)))
        except BaseException:  # what cannot be pickled, or Ctrl-C
            self.close()
            raise

    def send(self, message: object) -> None:
        """To a process that may have just ended: its pipe will say so."""
        with suppress(OSError):
            self.pipe.send(message)

    def post(self, pickled: bytes) -> None:
        """``send``, of a message that is pickled."""
        with suppress(OSError):
            self.pipe.send_bytes(pickled)

    def poll(self, until: float) -> bool:
        """Whether there is something to receive, its end included, before ``until`` (time.monotonic)."""
        return self.pipe.poll(None if math.isinf(until) else max(0.0, until - time.monotonic()))

    def death(self) -> str:
        """What became of a process whose pipe has ended."""
        return death(self._wait(_DEATH_SECONDS))

    def _wait(self, seconds: float) -> int | None:
        """Its exit code, None where it has not ended by then."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def kill(self) -> None:
        """Kill it with what it runs, and return when it is gone. Any thread may, again and again."""
        with self._lock:
            if not self._is_killed:  # its number may be another's afterwards
                self._is_killed = True
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def close(self, at_once: bool = True) -> None:
        """Kill it, or have it end (None is sent) where it is not ``at_once``. Again and again, by the pipe's reader."""
        if self.pipe.closed:
            return
        if not at_once:
            self.send(None)
            self._wait(_END_SECONDS)
        self.kill()
        self.pipe.close()
        self._alive.close()


def death(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    hint = "; perhaps the machine ran out of memory" if -code == signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-code).name} ({signal.strsignal(-code)}{hint})"


# What a process begins with. Modules are looked for where this process does, wherever that one was started.
_BEGIN = "import sys; sys.path[:] = {path!a}; from autotune.processes import live; live({pipe}, {parent}, {first!a})"

# A process, and this one's ends of its pipes: what is sent to it, and what ends with this process.
_Started = tuple["subprocess.Popen[bytes]", Connection, Connection]


def _start(pipe: Connection, parent: Connection, first: str = "") -> "subprocess.Popen[bytes]":
    """A process that has these ends, and calls ``first`` (``module:function``) before it waits for what it is to do.
    Raises OSError, MemoryError."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing
    begin = _BEGIN.format(path=sys.path, pipe=pipe.fileno(), parent=parent.fileno(), first=first)
    return subprocess.Popen(
        [sys.executable, *flags, "-c", begin],
        stdin=subprocess.DEVNULL, pass_fds=(pipe.fileno(), parent.fileno()), process_group=0,
    )  # fmt: skip


def _begin(*first: str) -> _Started:
    """A process with its pipes. Raises OSError, MemoryError."""
    pipe, there = multiprocessing.Pipe()
    parent, alive = multiprocessing.Pipe(duplex=False)  # nothing is sent: it ends with this process
    try:
        return _start(there, parent, *first), pipe, alive
    except BaseException:
        pipe.close()
        alive.close()
        raise
    finally:
        for end in (there, parent):  # a pipe ends with a process only if nobody else holds that end
            end.close()


# -- processes in advance


_spares: list[_Started] = []  # the next children
_spared = threading.Lock()
_kept_for: list[tuple[int, str, str]] = []  # this process, its folder, and what the spares call first


def keep_spares(count: int, first: str) -> None:
    """Start processes in advance: the next children of this process, which have called ``first`` (``module:function``)
    by then. A spare one is there from then on: the last that is taken is replaced. ``end_spares`` ends them, and so
    does the end of this process."""
    with _spared:
        if not _kept_for:
            _kept_for.append((os.getpid(), str(Path.cwd()), first))
            with suppress(OSError, MemoryError):
                _spares.extend(_begin(first) for _ in range(count))


def _take_spare() -> _Started | None:
    """A process that was started in advance, where this one has not changed its folder since, or was forked."""
    with _spared:
        if not _kept_for or _kept_for[0][:2] != (os.getpid(), str(Path.cwd())):
            return None
        living = [one for one in _spares if one[0].poll() is None]
        found, _spares[:] = (living[0] if living else None), living[1:]
        if not _spares:
            with suppress(OSError, MemoryError):
                _spares.append(_begin(_kept_for[0][2]))
        return found


@atexit.register
def end_spares() -> None:
    """End the processes that were started in advance, and start no more of them."""
    with _spared:
        is_own = bool(_kept_for) and _kept_for[0][0] == os.getpid()
        left, _spares[:], _kept_for[:] = [*_spares], [], []
    for process, *ends in left if is_own else ():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for end in ends:
            end.close()


def live(handle: int, parent_handle: int, first: str = "") -> None:
    """A child's life, from its beginning to its end. ``handle`` is its end of the pipe, which first brings what it is
    to do; ``first`` is called before, and may fail."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe, parent = Connection(handle), Connection(parent_handle, writable=False)
    for end in (handle, parent_handle):
        os.set_inheritable(end, False)  # what this process runs is to hold neither
    if first:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        if parent.poll():  # its end: it has gone already
            return
        module, _, function = first.partition(":")
        with suppress(Exception):
            getattr(import_module(module), function)()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        sys.path[:], environment = pipe.recv()
        os.environ.clear()  # of when it was started
        os.environ.update(environment)
        number, folder, tidies, target, arguments = pipe.recv()
        if tidies:
            threading.Thread(target=_tidy_behind_parent, args=(parent, folder), daemon=True).start()
        else:
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != number:  # it has gone already
                return
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            target(pipe, *arguments)
        finally:  # also where the pipe's end is seen before the parent's, whose thread would end with this process
            if tidies:
                _tidy(folder)


def fork(life: Callable[..., None], *arguments: Any) -> None:
    """Start ``life`` in a fork of this process, which has what is imported here and ends with this process."""
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        life(*arguments)
        os._exit(0)


_TIDYING = 100  # times


def _tidy(folder: str) -> None:
    """In place of the parent, which is gone. What this process and its siblings still do may put a file where one was
    removed."""
    for _ in range(_TIDYING):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.01)


def _tidy_behind_parent(parent: Connection, folder: str) -> None:
    wait([parent])
    _tidy(folder)
    with suppress(ProcessLookupError):
        os.killpg(0, signal.SIGKILL)


def guard(ending: str = "KILL") -> str:
    """A shell script that runs its arguments as they are, and ends them, and all that they started, by the signal
    ``ending`` when the process that asked is gone: then its end of the pipe on standard input closes. "$@" is not read
    as shell text."""
    return f"""trap : TERM
exec 3<&0 0</dev/null
{{ read -r gone <&3; kill -{ending} 0; }} >/dev/null 2>&1 &
exec 3<&-
"$@"
status=$?
kill -KILL $! 2>/dev/null
exit $status"""


_NOT_RUN = (126, 127)  # a shell's statuses for a command that it cannot start


def python(module: str, *arguments: str) -> list[str]:
    """The command line that calls ``module``'s ``main`` with ``arguments`` in a Python that imports from where this one
    does, whether PYTHONPATH, a module system or a program itself put that there; the exit code is what it returns."""
    begin = (
        f"import sys; sys.path[:] = {sys.path!a}; from {module} import main; sys.exit(main(*sys.argv[1:]))"
    )
    return [sys.executable, "-c", begin, *arguments]


def program(
    command: Sequence[str],
    *,
    seconds: float | None = None,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """What a program says. It and what it starts are a process group of their own, which ends with this call, and with
    this process, however either ends. Raises OSError for a command that cannot be run, and
    subprocess.TimeoutExpired."""
    path = shutil.which(command[0])
    if not path:
        raise FileNotFoundError(errno.ENOENT, "No such file, or not an executable one", command[0])
    reads, writes = os.pipe()  # no other process has the end that writes
    try:
        running = subprocess.Popen(
            ["/bin/sh", "-c", guard(), "sh", path, *command[1:]],
            cwd=folder, env=environment, stdin=reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", process_group=0,
        )  # fmt: skip
        with running:
            try:
                said, complaint = running.communicate(timeout=seconds)
            except BaseException:
                os.killpg(running.pid, signal.SIGKILL)
                raise
    finally:
        os.close(reads)
        os.close(writes)
    if running.returncode in _NOT_RUN:
        raise OSError(errno.ENOEXEC, complaint.strip(), command[0])
    return subprocess.CompletedProcess(command, running.returncode, said, complaint)


def exchange(command: Sequence[str], given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """What a program says to ``given``, in bytes. Ctrl-C ends both. Raises OSError for a command that cannot be run."""
    return subprocess.run(command, input=given, capture_output=True, check=False)


@contextmanager
def run_beside(command: Sequence[str], lost: str) -> Iterator[str]:
    """Run a process during the block, whose value is the first line that the process prints. It is in a session of its
    own, so that no signal to this process's group reaches it, and ends with its input: with the block, or with this
    process, however that ends. Warns with ``lost`` if it fails or is killed."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stdin and running.stdout
        try:
            yield running.stdout.readline().strip()
        finally:
            running.stdin.close()
            if running.wait():
                warn(lost)


def run_attended(command: Sequence[str]) -> tuple[int, bool]:
    """The exit code of a program that prints to this one's terminal, and whether it was interrupted: Ctrl-C reaches
    this process alone, which then closes the program's input and waits for its end. Raises OSError."""
    running = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    with running:
        try:
            return running.wait(), False
        except KeyboardInterrupt:
            assert running.stdin
            running.stdin.close()
            return running.wait(), True


# -- what any child says ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """To what was asked."""

    content: Any


@dataclass(frozen=True)
class Warned:
    """A warning, to be given again by the parent."""

    text: str


@dataclass(frozen=True)
class Failure:
    """An error, as it is sent: many do not survive pickling."""

    kind: type[AutotuneError]
    text: str

    @classmethod
    def make(cls, problem: AutotuneError) -> "Failure":
        """With the nearest class that its text is enough for, and that the parent knows too."""
        kind = next(
            kind
            for kind in type(problem).__mro__
            if kind.__module__.startswith("autotune.") and "__init__" not in vars(kind)
        )
        return cls(kind, str(problem))

    def error(self) -> AutotuneError:
        return self.kind(self.text)


@contextmanager
def report_problems(pipe: Connection) -> Iterator[None]:
    """Tells the parent of warnings, and of an AutotuneError that ends the block."""
    warnings.showwarning = lambda message, *_args, **_kwargs: pipe.send(Warned(str(message)))
    try:
        yield
    except AutotuneError as problem:
        pipe.send(Failure.make(problem))


_BETWEEN = {"autotune", "contextlib"}


def warn(text: str) -> None:
    """Warns at the line of the program that called autotune: that of a process means nothing to it."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


# -- folders ---------------------------------------------------------------------------------------------------


_PREFIX = "autotune-sweep-"


def own_folder() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder of this process; also removes those of processes of this host that were killed. Raises
    StoreError."""
    try:
        place = Path(tempfile.gettempdir())
    except OSError as problem:
        raise StoreError(f"no folder for temporary files: {problem}; name one in TMPDIR") from None
    prefix = f"{_PREFIX}{hashlib.sha256(_host().encode()).hexdigest()[:8]}-"
    for left in place.glob(f"{prefix}*"):
        if _is_gone(left.name.removeprefix(prefix).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-", ignore_cleanup_errors=True)


_logging = threading.Lock()
_verbosity: list[int] = []  # the program's, for each block that goes on in any thread


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna logs errors alone while such a block goes on, and then again what it logged before."""
    from optuna import logging

    with _logging:
        _verbosity.append(_verbosity[0] if _verbosity else logging.get_verbosity())
        logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        with _logging:
            before = _verbosity.pop()
            if not _verbosity:
                logging.set_verbosity(before)


def process_name() -> str:
    """A name that no other call returns, from which ``has_ended`` knows this process."""
    return f"{_host()} {os.getpid()} {secrets.token_hex(4)}"


def has_ended(name: str) -> bool:
    """Whether that is a process of this host, and no process has its number any more."""
    host, _, process = name.rpartition(" ")[0].rpartition(" ")
    return host == _host() and _is_gone(process)


def _is_gone(process: str) -> bool:
    """Whether no process here has the number; False for what is none."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError, OverflowError):
        return False
    return False


@cache
def _host() -> str:
    """This host since it was started, and the namespace in which its processes are numbered."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{platform.node()} {started} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{platform.node()} {secrets.token_hex(8)}"
