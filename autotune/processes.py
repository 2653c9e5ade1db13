"""Processes for jobs that may crash or be called off: a crash costs one job, and no process is left behind.

They are spawned, never forked: a CUDA context may exist in this process, and does not survive a fork.
"""

import ctypes
import fcntl
import hashlib
import multiprocessing
import os
import platform
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from autotune.errors import CompilerError, StoreError

__all__ = [
    "WorkerError",
    "Workers",
    "end_process",
    "mapped",
    "own_folder",
    "settled",
    "shared_arrays",
    "write_arrays",
]


_Result = TypeVar("_Result")

_spawn = multiprocessing.get_context("spawn")


class WorkerError(Exception):
    """The job's process ended before the job did."""


class Workers:
    """Up to ``count`` processes. Each starts when a job finds none free, and one that died is replaced.

    A thread per process waits for its answers. Every process has a pipe of its own, so that its end is
    noticed by that thread and nobody else, and a process group of its own, so that the programs it runs end
    with it. Their temporary files lie in one folder, which ``stop`` removes.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._of_thread = threading.local()
        self._folder = tempfile.TemporaryDirectory(prefix="autotune-", ignore_cleanup_errors=True)
        self._lock = threading.Lock()
        self._processes: list[SpawnProcess] = []
        self._stopped = False

    def submit(self, function: Callable[..., _Result], *arguments: object) -> "Future[_Result]":
        """The result of a module's function, which may also be its exception, or WorkerError."""
        return self._threads.submit(self._ask, function, arguments)

    def stop(self) -> None:
        """Call off every job, and return when every process is gone."""
        with self._lock:
            self._stopped = True
            processes, self._processes = self._processes, []
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            end_process(process)
        self._threads.shutdown()
        self._folder.cleanup()

    def _ask(self, function: Callable[..., _Result], arguments: tuple[object, ...]) -> _Result:
        if not hasattr(self._of_thread, "worker"):
            self._of_thread.worker = self._start()
        process, connection = self._of_thread.worker
        try:
            connection.send((function, arguments))
            succeeded, answer = connection.recv()
        except (EOFError, OSError) as error:
            connection.close()
            del self._of_thread.worker
            self._forget(process)
            raise WorkerError from error
        if not succeeded:
            raise answer
        result: _Result = answer
        return result

    def _start(self) -> tuple[SpawnProcess, Connection]:
        here, there = _spawn.Pipe()
        process = _spawn.Process(target=_serve, args=(there, self._folder.name), daemon=True)
        with self._lock:
            if self._stopped:
                raise WorkerError
            try:
                process.start()
            except (OSError, MemoryError) as problem:
                said = getattr(problem, "strerror", "") or "not enough memory"
                raise CompilerError(f"cannot start a compiler process: {said}") from None
            self._processes.append(process)
        # The pipe ends with the process only if nobody else holds the other end.
        there.close()
        return process, here

    def _forget(self, process: SpawnProcess) -> None:
        with self._lock:
            ours = process in self._processes
            if ours:
                self._processes.remove(process)
        if ours:
            end_process(process)


def end_process(process: SpawnProcess) -> None:
    """Kill it with what it runs. Once for each process, as its number may be another's afterwards."""
    if process.pid:
        # Before its first statement a process has no group yet, and nothing that could outlive it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _serve(connection: Connection, folder: str) -> None:
    """A worker's life. It ends when the parent's end of the pipe is closed, and with the parent, whatever it is at."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            function, arguments = connection.recv()
            connection.send(_answer(function, arguments))
    shutil.rmtree(folder, ignore_errors=True)  # the parent did not


def _end_with_parent(folder: str) -> None:
    """A compiler may be at work for minutes after the parent was killed. It ends with this process (see
    ``toolchain.run_compiler``)."""
    parent = multiprocessing.parent_process()
    assert parent
    wait([parent.sentinel])
    shutil.rmtree(folder, ignore_errors=True)  # the parent did not
    with suppress(ProcessLookupError):
        os.killpg(0, signal.SIGKILL)


def _answer(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return False, error


_PREFIX = "autotune-sweep-"

_IN_USE = "in-use"  # locked in each folder for as long as its process lives, wherever that is seen from


def write_arrays(folder: Path, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """``PREFIX-NAME.npy`` for each array: the files that a Setting's ``arrays`` names. Raises OSError."""
    for name, array in arrays.items():
        np.save(folder / f"{prefix}-{name}.npy", array, allow_pickle=False)


def own_folder() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder of this process; also removes those of sweeps that were killed. Raises StoreError.

    A number of a process says nothing to another container or host that has the same folder for temporary files, so a
    lock tells which folders are in use. One without a lock is left alone."""
    try:
        place = Path(tempfile.gettempdir())
    except OSError as problem:
        raise StoreError(f"no folder for temporary files: {problem}; name one in TMPDIR") from None
    prefix = f"{_PREFIX}{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"  # locks may not reach other hosts
    for left in place.glob(f"{prefix}*"):
        with suppress(OSError), _Lock(left / _IN_USE):
            shutil.rmtree(left, ignore_errors=True)
    while not (folder := _OwnFolder(prefix=prefix, ignore_cleanup_errors=True)).lock():
        pass
    return folder


class _Lock:
    """A file's lock. Raises OSError when the file is not there or another process has its lock."""

    def __init__(self, path: Path, flags: int = os.O_RDWR) -> None:
        self._handle = os.open(path, flags | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._handle), path.stat()):
                raise FileNotFoundError(path)
        except OSError:
            os.close(self._handle)
            raise

    def __enter__(self) -> "_Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class _OwnFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder with a lock that this process holds until it is removed."""

    _lock: _Lock | None = None

    def lock(self) -> bool:
        """False when another process is just now removing it as one that was left behind."""
        try:
            self._lock = _Lock(Path(self.name) / _IN_USE, os.O_RDWR | os.O_CREAT)
        except (BlockingIOError, FileNotFoundError):
            self.cleanup()
            return False
        except OSError:  # no locks here, so no other process takes one, and each leaves this folder alone
            pass
        return True

    def cleanup(self) -> None:
        if self._lock:
            self._lock.close()
        super().cleanup()


@contextmanager
def shared_arrays(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Path]:
    """A folder with the input arrays for as long as the block lasts. Raises StoreError when there is no room for it."""
    with own_folder() as name:
        try:
            write_arrays(Path(name), "input", arrays)
        except OSError as problem:
            raise StoreError(
                f"cannot write the inputs to {name}, where measuring processes read them: "
                f"{problem.strerror or problem}; name a folder with room in TMPDIR"
            ) from None
        yield Path(name)


def mapped(path: Path) -> NDArray[Any]:
    """The array in the file, read-only, its pages shared by every process that maps it."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty array cannot be mapped
        array = np.load(path, allow_pickle=False)
    plain: NDArray[Any] = array.view(np.ndarray)
    return plain


_PDEATHSIG = 1  # prctl: the signal that a process gets when its parent ends


def settled(parent: int, folder: str) -> bool:
    """A process that serves another one: it ends with it, is left alone by Ctrl-C, and has its temporary files in
    ``folder``. False when the parent has gone already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    return os.getppid() == parent
