"""A process that has imported the engine, and forks the children that tests ask ``autotune.processes`` for.

A sweep starts a process, which imports numpy and the engine in a quarter of a second of a processor's time, and tests
make hundreds of sweeps. The nursery starts as any child does, and has no device: what it forks is what a child is when
it has imported. ``test_processes.py`` and all commands that tests run start theirs as they do for everybody.
"""

import atexit
import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from autotune import processes

_MOST_BYTES = 1 << 20  # of a request: sys.path and the environment
_ENDS = 5  # file descriptors that come with a request: pipe, parent, output, errors, exit code


class Nursery:
    """The forking process of this one: it starts at the first request, and ends when ``close`` says so, or this one
    does."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._lock = threading.Lock()

    def started(self, pipe: Connection, parent: Connection, _first: str = "") -> "Forked":
        """In place of ``processes._start``; what a spare calls first is left to when it is needed."""
        with self._lock:
            if self._requests is None:
                self._begin()
        assert self._requests
        status, ends = os.pipe()
        request = pickle.dumps((sys.path, dict(os.environ), str(Path.cwd())))
        try:
            socket.send_fds(self._requests, [request], [pipe.fileno(), parent.fileno(), 1, 2, ends])
        finally:
            os.close(ends)
        return Forked(int.from_bytes(os.read(status, 4), "little"), status)

    def _begin(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                processes.python("nursery", str(theirs.fileno()), str(os.getpid())),
                stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), process_group=0,
            )  # fmt: skip

    def close(self) -> None:
        if self._requests:
            self._requests.close()
            self._process.wait()


class Forked:
    """What ``processes.Child`` uses of a subprocess.Popen."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = int.from_bytes(os.read(self._status, 4), "little", signed=True)
            os.close(self._status)
        return self.returncode


def main(handle: str, parent: str) -> NoReturn:
    import autotune.compile.batches
    import autotune.engine.measuring_process  # noqa: F401 - what children begin with

    requests = socket.socket(fileno=int(handle))
    wakes, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    gc.freeze()
    while True:
        ready, _, _ = select.select([requests, wakes], [], [])
        if wakes in ready:
            os.read(wakes, 4096)
            _bury(running)
        if requests in ready:
            request, ends, _, _ = socket.recv_fds(requests, _MOST_BYTES, _ENDS)
            if not request:
                os._exit(0)
            pid = os.fork()
            if not pid:
                _become(request, ends, int(parent), [requests.fileno(), wakes, woken, *running.values()])
            with suppress(PermissionError):  # it has done so itself, and runs a program
                os.setpgid(pid, pid)
            os.write(ends[-1], pid.to_bytes(4, "little"))
            running[pid] = ends.pop()
            for end in ends:
                os.close(end)


def _bury(running: dict[int, int]) -> None:
    """Say with which code those ended that did."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            end = running.pop(pid)
            with suppress(BrokenPipeError):  # nobody asks any more
                os.write(end, os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
            os.close(end)


def _become(request: bytes, ends: list[int], parent: int, others: list[int]) -> NoReturn:
    """The life of a child, as ``processes._BEGIN`` begins it."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        pipe, alive, output, errors, status = ends
        os.dup2(output, 1)
        os.dup2(errors, 2)
        for end in (output, errors, status, *others):
            os.close(end)
        sys.path[:], environment, folder = pickle.loads(request)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        vars(os)["getppid"] = lambda: parent  # the nursery ends with it, and this process with the nursery
        processes.live(pipe, alive)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does at the end of a program
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
