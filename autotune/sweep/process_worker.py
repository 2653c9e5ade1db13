"""A process that measures on one device, from both ends of its pipe.

The parent holds no device: whatever a kernel does to its process costs one trial. The process is killed when a
trial passes its time limit, and made anew when it ended; the configuration it had in hand is then ``crashed``
or ``timed_out`` and is not sent again, those behind it are. ``in_process`` has the same without a process.
"""

import math
import multiprocessing
import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from autotune import errors
from autotune.compile import Toolchain
from autotune.declaration import Family, Inputs
from autotune.device import Backend, LaunchError
from autotune.errors import AutotuneError, DeviceError, FamilyError
from autotune.hardware import Device
from autotune.processes import own_folder
from autotune.sweep.messages import (
    Describe,
    Died,
    Ended,
    Job,
    Prove,
    Proved,
    Ragged,
    Reference,
    Retime,
    Setting,
    Tried,
)
from autotune.sweep.process import serve

__all__ = ["IN_HAND", "TRIAL_SECONDS", "ProcessWorker"]


TRIAL_SECONDS = 120.0  # generous: most take less than one

IN_HAND = 4  # jobs sent and not answered: one under way, the others there before it ends

START_SECONDS = 180.0  # to open the device and to map the arrays

_STARTS = 3  # in a row without a trial: then the device is given up

_PLACING = 10  # times the limit of a trial, for the host's part of it: layouts, orders, copies

_spawn = multiprocessing.get_context("spawn")


class ProcessWorker:
    """A crew.Worker with a process of its own. ``name`` is the device as messages name it, ``opened`` a function that
    can be pickled and opens its backend; ``compiler`` as in Backend.toolchain. A trial may run for ``trial_seconds``
    once its data are placed."""

    device: Device
    toolchain: Toolchain

    def __init__(
        self,
        name: str,
        opened: Callable[[], Backend],
        compiler: str = "",
        trial_seconds: float = TRIAL_SECONDS,
    ) -> None:
        self.name, self.lost = name, ""
        self._opened, self._compiler, self._trial_seconds = opened, compiler, trial_seconds
        self._setting: Setting | None = None
        self._jobs: deque[Job] = deque()
        self._sent = 0  # of the jobs, to the process that is there
        self._is_ready = False  # the device is open
        self._is_told = False  # the study was named to it
        self._is_set = False  # and its arrays are there
        self._starts = 0
        self._deadline = math.inf
        self._began = 0.0  # when the first of the jobs was begun
        self._warnings: set[str] = set()
        self._process: SpawnProcess | None = None
        self._folder = own_folder()  # for its temporary files: it may have no time to remove them

    # -- its life -------------------------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the process; ``start`` then waits for it."""
        if not self._process:
            self._spawn()

    def start(self) -> None:
        """Wait until the process has opened its device. Raises AutotuneError: what it says, or DeviceError when it ends
        without a word."""
        self.launch()
        while not self._is_ready and not self.lost:
            self._pipe.poll(max(0.0, self._deadline - time.monotonic()))
            self.receive()
        if self.lost:
            raise DeviceError(self.lost)

    def _spawn(self) -> None:
        self._pipe, there = _spawn.Pipe()
        self._process = _spawn.Process(
            target=serve,
            args=(there, self._opened, self._compiler, os.getpid(), self._folder.name),
            daemon=True,
        )
        try:
            self._process.start()
        except (OSError, MemoryError) as problem:
            self._pipe.close()
            raise DeviceError(
                f"cannot start a measuring process for {self.name}: "
                f"{getattr(problem, 'strerror', '') or 'not enough memory'}"
            ) from None
        finally:
            there.close()  # the pipe ends with the process only if nobody else holds the other end
        self._is_ready = self._is_told = self._is_set = False
        self._sent = 0
        self._starts += 1
        self._deadline = time.monotonic() + START_SECONDS

    def _ended(self, said: str = "") -> list[Tried | Died]:
        """The process is gone, or is to go because of ``said``: who is to blame, and the next one."""
        cause = said or self._cause()
        self._kill()
        blamed: list[Tried | Died] = []
        if self._is_set and self._sent:
            job, self._starts = self._jobs.popleft(), 0
            blamed = [Died(job, "timed_out" if said else "crashed", cause, time.monotonic() - self._began)]
        self._again(cause)
        return blamed

    def _again(self, cause: str) -> None:
        if self._starts >= _STARTS:
            self._is_ready, self._deadline = False, math.inf
            self.lost = f"the measuring process for {self.name} ended {_STARTS} times in a row before its first trial: "
            self.lost += (
                f"{cause}. Check the device (autotune doctor), then run the same command again: it goes on"
            )
            return
        self._spawn()

    def _cause(self) -> str:
        assert self._process
        self._process.join(5)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"the measuring process ended with exit code {code}"
        name = signal.Signals(-code).name
        hint = "; perhaps the machine ran out of memory" if -code == signal.SIGKILL else ""
        return f"the measuring process was ended by {name} ({signal.strsignal(-code)}{hint})"

    def _kill(self) -> None:
        assert self._process
        if self._process.pid:  # else it could not be started
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)  # with what it runs
            self._process.kill()
            self._process.join()
        self._pipe.close()

    def dismiss(self) -> None:
        """No more work comes: the process closes its device while the caller goes on. ``close`` it all the same."""
        if self._process and not self._pipe.closed and not self.lost:
            with suppress(OSError):
                self._pipe.send(None)

    def close(self, at_once: bool = False) -> None:
        """End the process: asked to, or killed with ``at_once``. May be called twice."""
        if self._process and not self._pipe.closed:
            if not at_once and not self.lost:
                self.dismiss()
                self._process.join(10)
            self._kill()
        self._folder.cleanup()

    # -- its work -------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        return 0 if self.lost else IN_HAND - len(self._jobs)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    @property
    def pipe(self) -> Connection | None:
        return None if self.lost else self._pipe

    @property
    def deadline(self) -> float:
        return self._deadline

    def reference(self, request: Reference, family: Family, inputs: Inputs) -> float:  # noqa: ARG002
        try:
            elapsed_ms: float = self.ask(request, math.inf)
        except LaunchError as problem:
            raise FamilyError(f"the reference of family {family.name} gave nothing: {problem}") from None
        return elapsed_ms

    def study(self, setting: Setting, family: Family, inputs: Inputs) -> None:  # noqa: ARG002
        self._setting, self._is_told, self._is_set = setting, False, False
        self._flush()

    def send(self, jobs: Sequence[Job]) -> None:
        if jobs and self._is_set and not self._jobs:
            self._jobs += jobs
            self._next(time.monotonic())
        else:
            self._jobs += jobs
        self._flush()

    def _flush(self) -> None:
        """Send what the process does not have yet, in one message."""
        news: list[Any] = list(self._jobs)[self._sent :]
        if not self._is_told and self._setting:
            news.insert(0, self._setting)
        if not self._is_ready or not news:
            return
        if not self._is_told:
            self._is_told, self._deadline = True, time.monotonic() + START_SECONDS
        self._sent = len(self._jobs)
        with suppress(OSError):  # it has just ended: receive will see it
            self._pipe.send(news)

    def receive(self) -> list[Tried | Died]:
        answers: list[Tried | Died] = []
        if self.lost:
            return answers
        try:
            while not self.lost and self._pipe.poll():
                self._heard(self._pipe.recv(), answers)
        except (EOFError, OSError):
            return answers + self._ended()
        if time.monotonic() >= self._deadline:
            limit = f"{self._trial_seconds:g} s" if self._is_set else f"{START_SECONDS:g} s to start"
            answers += self._ended(
                f"no end within {limit}; its process was killed (--trial-seconds sets the limit)"
            )
        return answers

    def _next(self, now: float) -> None:
        """The first of the jobs begins, if there is one."""
        self._began = now
        self._deadline = now + _PLACING * self._trial_seconds if self._jobs else math.inf

    def _heard(self, message: tuple[str, Any], answers: list[Tried | Died]) -> None:
        kind, content = message
        now = time.monotonic()
        if kind == "tried":
            self._jobs.popleft()
            self._sent -= 1
            self._starts = 0
            self._next(now)
            answers.append(content)
            if content.lost:
                self._kill()
                self._again(content.trial.reason)
        elif kind == "placed":
            self._deadline = now + self._trial_seconds
        elif kind == "ready":
            self.device, self.toolchain = content
            self._is_ready, self._deadline = True, math.inf
            self._flush()
        elif kind == "set":
            self._is_set = True
            self._next(now)
        elif kind == "warning":
            if content not in self._warnings:  # each process that is made anew says the same
                self._warnings.add(content)
                warnings.warn(content, stacklevel=2)
        elif kind == "error":
            name, text = content
            if not self._is_ready and hasattr(self, "device"):  # it was there before: worth another attempt
                self._kill()
                self._again(text)
                return
            self._kill()
            raise getattr(errors, name, LaunchError if name == "LaunchError" else AutotuneError)(text)

    def take_back(self) -> list[Job]:
        jobs, self._jobs = list(self._jobs), deque()
        self._sent = 0
        return jobs

    def ask(self, request: Reference | Retime | Describe | Ragged | Prove, trials: float) -> Any:
        """See crew.Worker. A process that ends over the request is not made anew for it, but for the next one."""
        seconds = trials * self._trial_seconds + START_SECONDS
        until = time.monotonic() + seconds
        asked = False
        while not self.lost:
            if self._is_ready and not asked:
                with suppress(OSError):  # it has just ended: the pipe says so below
                    self._pipe.send([request])
                asked = True
            left = min(until, self._deadline) - time.monotonic()
            try:
                if not self._pipe.poll(None if math.isinf(left) else max(0.0, left)):
                    if asked:
                        self._starts = 0  # it did start: the request is to blame
                    self._ended(f"no answer within {seconds:g} s")
                    if asked:
                        what = f"no answer within {seconds:g} s; the measuring process was killed"
                        raise Ended("timed_out", what)
                    continue
                kind, content = self._pipe.recv()
            except (EOFError, OSError):
                cause = self._cause()
                if asked:
                    self._starts = 0
                self._ended(cause)
                if asked:
                    raise Ended("crashed", cause) from None
                continue
            if kind == "answer":
                if isinstance(content, Proved) and content.lost:
                    self._starts = 0
                    self._kill()
                    self._again(content.reason)
                return content
            if kind == "failed":
                raise LaunchError(content)
            self._heard((kind, content), [])
        raise LaunchError(self.lost)
