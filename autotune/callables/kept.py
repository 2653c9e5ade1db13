"""The processes that tune the functions of one program: they are started once and kept between functions.

One for each device measures. One more imports what the functions need, and forks those that compile, so that a library
is imported once for all of them; it never opens a device. They end when none was needed for a while, with the program,
and where one of the project's files was edited since.
"""

import atexit
import os
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, cast

from autotune.callables import functions
from autotune.callables.backend import CallBackend, Calls, CallToolchain
from autotune.compile import Pool, ProcessDied, do_job
from autotune.device import Backend, open_backend
from autotune.engine import ProcessWorker, open_devices
from autotune.errors import CompilerError
from autotune.processes import Child, end_spares, fork

IDLE_SECONDS = 30.0  # until they end: the measuring process holds memory of its device


@dataclass
class Opening:
    """Opens the device ``name`` for ``calls``, those of the latest function: also in a process that replaces one."""

    name: str
    calls: Calls

    def __call__(self) -> Backend:
        """Raises DeviceError, UsageError."""
        functions.measure()
        return cast("Backend", CallBackend(open_backend(self.name), self.calls))


class Forks(Pool):
    """Up to ``count`` processes that compile, forked by one that imports what ``calls`` need."""

    def __init__(self, count: int, calls: Calls) -> None:
        super().__init__(count)
        self._address = f"{self._folder.name}/forks"
        self._server = Child(
            _fork, (self._address, calls), folder=self._folder.name, what="the process that compiles",
            error=CompilerError,
        )  # fmt: skip

    @property
    def is_there(self) -> bool:
        return self._server.process.poll() is None

    @cached_property
    def _is_ready(self) -> bool:
        return bool(self._server.pipe.recv())

    def _ask(self, function: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
        own = vars(self._of_thread)
        try:
            if "pipe" not in own:
                with self._lock:  # one waits until the first process listens
                    assert self._is_ready
                own["pipe"] = Client(self._address, "AF_UNIX")
            own["pipe"].send((function, arguments))
            succeeded, answer = own["pipe"].recv()
        except (EOFError, OSError) as problem:
            own.clear()
            raise ProcessDied("the compiler process died") from problem
        if not succeeded:
            raise answer
        return answer

    def stop(self) -> None:
        """Call off every job, and return when every process is gone."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._server.kill()
        self._threads.shutdown()
        self._server.close()
        self._folder.cleanup()


def _fork(pipe: Connection, address: str, calls: Calls) -> None:
    """The life of the process that forks the others: one for each connection."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with Listener(address, "AF_UNIX", backlog=256) as listener:
        pipe.send(True)
        with suppress(Exception):  # a process that compiles meets it again, and says it
            calls.import_libraries()
        while True:
            connection = listener.accept()
            fork(_compile, connection)
            connection.close()


def _compile(pipe: Connection) -> None:
    """The life of one of the others."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or no compiler's exit code is known
    with suppress(EOFError, OSError):
        while True:
            pipe.send(do_job(*pipe.recv()))


@dataclass
class Crew:
    """``workers`` that measure, and ``forks`` that compile, where anything is compiled. ``of`` is what they inherited,
    ``files`` are those of the project when they began."""

    of: object
    workers: list[ProcessWorker]
    openings: list[Opening]
    forks: Forks | None
    files: Mapping[str, int]

    @classmethod
    def start(
        cls, of: object, names: Sequence[str], trial_seconds: float, calls: Calls, count: int
    ) -> "Crew":
        """``count`` is how many compile, 0 for none."""
        openings = [Opening(name, calls) for name in names]
        workers = [ProcessWorker(one.name, one, "", trial_seconds) for one in openings]
        for worker in workers:
            worker.launch()
        return cls(of, workers, openings, Forks(count, calls) if count else None, _files())

    def suits(self, of: object, count: int) -> bool:
        """Whether they are there, and have what new ones would have."""
        is_there = self.forks is None or self.forks.is_there
        is_edited = any(self.files.get(file, when) != when for file, when in _files().items())
        return self.of == of and is_there and not is_edited and bool(self.forks or not count)

    def turn_to(self, calls: Calls) -> None:
        """Have all call another function from now on. Raises AutotuneError."""
        for worker, opening in zip(self.workers, self.openings, strict=True):
            is_other, opening.calls = opening.calls is not calls, calls
            worker.start()
            if is_other:
                worker.ask(1, _turn_to_calls, calls)
                worker.toolchain = CallToolchain(calls, worker.device.arch)
        open_devices(self.workers, "")

    def stop(self) -> None:
        for worker in self.workers:
            worker.close(at_once=True)
        if self.forks:
            self.forks.stop()


def _turn_to_calls(measuring: Any, calls: Calls) -> None:
    measuring.swept.backend.turn_to(calls)


def _free_latest(measuring: Any) -> None:
    """Free what the latest function has on the device."""
    measuring.close()
    backend = measuring.swept.backend
    backend.turn_to(backend.calls, backend.function)
    if torch := sys.modules.get("torch"):
        torch.cuda.empty_cache()


_lock = threading.RLock()
_kept: list[Crew] = []  # one at most
_timers: list[threading.Timer] = []


@contextmanager
def crew(names: Sequence[str], trial_seconds: float, calls: Calls, count: int) -> Iterator[Crew]:
    """The program's processes, turned to ``calls`` by ``Crew.turn_to``, and kept when the block ends well; ``count`` is
    how many compile. Raises DeviceError."""
    of = (os.getpid(), Path.cwd(), [*sys.path], dict(os.environ), list(names), trial_seconds)
    with _lock:
        idle = _kept.pop() if _kept else None
    if idle and not idle.suits(of, count):
        idle.stop()
        idle = None
    using = idle or Crew.start(of, names, trial_seconds, calls, count)
    try:
        yield using
        for worker in using.workers:
            worker.study(None)  # a process that replaces it gets nothing of what is over
            worker.ask(1, _free_latest)
    except BaseException:
        using.stop()
        raise
    end_kept()
    with _lock:
        _kept.append(using)
        _timers.append(threading.Timer(IDLE_SECONDS, _end, [using]))
        _timers[-1].daemon = True
        _timers[-1].start()


def _end(idle: Crew) -> None:
    with _lock:
        is_idle = idle in _kept
        if is_idle:
            _kept.remove(idle)
    if is_idle:
        idle.stop()
        end_spares()


@atexit.register
def end_kept() -> None:
    """End the processes that are kept. The next function that is tuned starts others."""
    with _lock:
        kept, _kept[:] = [*_kept], []
        for timer in _timers:
            timer.cancel()
        _timers.clear()
    for one in kept:
        one.stop()


def _files() -> dict[str, int]:
    """When each file of the project that is imported was edited."""
    own, installed = str(Path(__file__).parents[1]), (sys.base_prefix, sysconfig.get_path("stdlib"))
    times = {}
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None) or ""
        if file and "-packages" not in file and not file.startswith((own, *installed)):
            with suppress(OSError):
                times[file] = Path(file).stat().st_mtime_ns
    return times
