"""Processes for jobs that may crash or be called off: a crash costs one job, and no process is left behind.

They are spawned, never forked: a CUDA context may exist in this process, and does not survive a fork.
"""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from autotune.errors import CompilerError

__all__ = ["WorkerError", "Workers", "end_process"]

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
