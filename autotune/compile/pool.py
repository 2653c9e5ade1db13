"""Processes that compile: one that the compiler takes down, or that hangs, costs one job."""

import os
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from autotune.compile.toolchain import CALL_SECONDS, TOO_LONG
from autotune.errors import CompilerError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from autotune.processes import Child

_Result = TypeVar("_Result")


class ProcessDied(Exception):
    """The job's process ended before the job did; the text is how."""


_TIMED_OUT = 124  # the exit code of a process whose compiler call took too long
_compiles_for_another = threading.Event()


@contextmanager
def limit_time(seconds: float = CALL_SECONDS) -> Iterator[None]:
    """A compiler that is a library cannot be stopped: where the block takes longer, a pool's process ends with it. In
    any other process there is no limit."""
    timer = threading.Timer(seconds, os._exit, (_TIMED_OUT,))
    timer.daemon = True
    if _compiles_for_another.is_set():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Pool:
    """Up to ``count`` processes. Each starts when a job finds none free, and one that died is replaced.

    A thread per process waits for its answers, so that its end is noticed by that thread and nobody else. Their
    temporary files lie in one folder, which ``stop`` removes.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._of_thread = threading.local()
        self._folder = tempfile.TemporaryDirectory(prefix="autotune-", ignore_cleanup_errors=True)
        self._lock = threading.Lock()
        self._children: list[Child] = []
        self._stopped = False

    def submit(self, function: Callable[..., _Result], *arguments: object) -> "Future[_Result]":
        """The result of a module's function, which may also be its exception, or ProcessDied."""
        return self._threads.submit(self._ask, function, arguments)

    def stop(self) -> None:
        """Call off every job, and return when every process is gone."""
        with self._lock:
            self._stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for child in self._children:
            child.kill()
        self._threads.shutdown()
        self._folder.cleanup()

    def _ask(self, function: Callable[..., _Result], arguments: tuple[object, ...]) -> _Result:
        if not hasattr(self._of_thread, "child"):
            self._of_thread.child = self._start()
        child: Child = self._of_thread.child
        try:
            child.pipe.send((function, arguments))
            succeeded, answer = child.pipe.recv()
        except (EOFError, OSError) as error:
            child.close()
            del self._of_thread.child
            is_late = child.process.returncode == _TIMED_OUT
            raise ProcessDied(TOO_LONG if is_late else "the compiler process died") from error
        if not succeeded:
            raise answer
        result: _Result = answer
        return result

    def _start(self) -> "Child":
        from autotune.processes import Child  # and multiprocessing: who compiles one variant needs neither

        with self._lock:
            if self._stopped:
                raise ProcessDied
            child = Child(
                _serve,
                (),
                folder=self._folder.name,
                what="a compiler process",
                error=CompilerError,
                tidies=True,
            )
            self._children.append(child)
        return child


def _serve(pipe: "Connection") -> None:
    _compiles_for_another.set()
    while True:
        function, arguments = pipe.recv()
        pipe.send(do_job(function, arguments))


def do_job(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[bool, Any]:
    """Whether it gave a result, and that or its exception, which the parent raises."""
    try:
        return True, function(*arguments)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return False, error
