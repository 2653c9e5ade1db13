"""A process that measures on one device, from the sweep's end of its pipe; it is killed when a kernel hangs.

The parent holds no device: whatever a kernel does to its process costs one trial. The parent kills the process when a
trial passes its time limit, and starts another when it has ended; the configuration that was running is then
``crashed`` or ``timed_out`` and is not sent again. Those that wait behind it are.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from multiprocessing.connection import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

from autotune.compile import Toolchain
from autotune.device import Backend, LaunchError
from autotune.engine.measuring_process import Measuring, serve
from autotune.engine.messages import Died, Ended, Job, Opened, Proved, Question, Refused, Setting, Sign, Tried
from autotune.errors import DeviceError
from autotune.hardware import Device
from autotune.processes import Answer, Child, Failure, Warned, own_folder, warn

IN_HAND = 4  # jobs sent and not answered: one under way, the others there before it ends
START_SECONDS = 180.0  # to open the device and to map the arrays
_STARTS = 3  # in a row without a trial: then the device is given up
_PLACING = 10  # times the limit of a trial, for the host's part of it: layouts, orders, copies


Asked = ParamSpec("Asked")
Told = TypeVar("Told")


class _State(Enum):
    """How far a process is."""

    OPENING = auto()  # its device
    OPEN = auto()
    SETTING = auto()  # the study was named to it, and it maps the arrays
    SET = auto()  # jobs that were sent are under way


class ProcessWorker:
    """What measures on one device, in a process of its own. ``name`` is the device as messages name it, ``opened`` a
    function that can be pickled and opens its backend; ``compiler`` as in Backend.toolchain. A trial may run for
    ``trial_seconds`` once its data are placed.

    ``device`` and ``toolchain`` are known once ``start`` returned; ``lost`` says why it is given up, or is empty.
    ``pipe`` becomes readable when ``receive`` has something; ``deadline`` (time.monotonic) is when that should be
    called at the latest."""

    device: Device
    toolchain: Toolchain

    def __init__(
        self, name: str, opened: Callable[[], Backend], compiler: str = "", trial_seconds: float = 120.0
    ) -> None:
        self.name, self.lost = name, ""
        self._opened, self._compiler, self._trial_seconds = opened, compiler, trial_seconds
        self._setting: Setting | None = None
        self._jobs: deque[Job] = deque()
        self._sent = 0  # of the jobs, to the process that is there
        self._state = _State.OPENING
        self._starts = 0
        self.deadline = math.inf
        self._began = 0.0  # when the first of the jobs was begun
        self._warnings: set[str] = set()
        self._process: Child | None = None
        self._folder = own_folder()  # for its temporary files: it may have no time to remove them

    def launch(self) -> None:
        """Start the process; ``start`` then waits for it."""
        if not self._process:
            self._spawn()

    def start(self) -> None:
        """Wait until the process has opened its device. Raises AutotuneError: what it says, or DeviceError when it ends
        without a word."""
        self.launch()
        while self._state is _State.OPENING and not self.lost:
            self._child.poll(self.deadline)
            self.receive()
        if self.lost:
            raise DeviceError(self.lost)

    @property
    def _child(self) -> Child:
        assert self._process
        return self._process

    def _spawn(self) -> None:
        self._process = Child(
            serve, (self._opened, self._compiler), folder=self._folder.name, error=DeviceError,
            what=f"a measuring process for {self.name}",
        )  # fmt: skip
        self._state, self._sent = _State.OPENING, 0
        self._starts += 1
        self.deadline = time.monotonic() + START_SECONDS

    def _handle_end(self, said: str = "") -> list[Tried | Died]:
        """The process is gone, or is to go because of ``said``: who is to blame, and the next one."""
        cause = said or self._cause()
        blamed: list[Tried | Died] = []
        if self._state is _State.SET and self._sent:
            job, self._starts = self._jobs.popleft(), 0
            blamed = [Died(job, "timed_out" if said else "crashed", cause, time.monotonic() - self._began)]
        self._replace(cause)
        return blamed

    def _replace(self, cause: str) -> None:
        """Start another process, or none after too many starts."""
        self._child.close()
        if self._starts < _STARTS:
            self._spawn()
            return
        self._state, self.deadline = _State.OPENING, math.inf
        self.lost = (
            f"the measuring process for {self.name} ended {_STARTS} times in a row before its first trial: {cause}. "
            "Check the device (autotune doctor), then run the same command again: it goes on"
        )

    def _cause(self) -> str:
        return f"the measuring process {self._child.death()}"

    def dismiss(self) -> None:
        """No more work comes: the process closes its device while the caller goes on. ``close`` it all the same."""
        if self._process and not self.lost:
            self._process.send(None)

    def close(self, at_once: bool = False) -> None:
        """End the process: asked to, or killed with ``at_once``. May be called twice."""
        if self._process:
            self._process.close(at_once or bool(self.lost))
        self._folder.cleanup()

    @property
    def room(self) -> int:
        return 0 if self.lost else IN_HAND - len(self._jobs)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    @property
    def pipe(self) -> Connection | None:
        return None if self.lost else self._child.pipe

    def study(self, setting: Setting | None) -> None:
        self._setting = setting
        if self._state is not _State.OPENING:
            self._state = _State.OPEN
        self._flush()

    def send(self, jobs: Sequence[Job]) -> None:
        are_first = jobs and self._state is _State.SET and not self._jobs
        self._jobs += jobs
        if are_first:
            self._begin_next(time.monotonic())
        self._flush()

    def _flush(self) -> None:
        """Send what the process does not have yet, in one message."""
        if self._state is _State.OPENING:
            return
        news: list[Any] = list(self._jobs)[self._sent :]
        if self._state is _State.OPEN and self._setting:
            news.insert(0, self._setting)
            self._state, self.deadline = _State.SETTING, time.monotonic() + START_SECONDS
        if news:
            self._sent = len(self._jobs)
            self._child.send(news)

    def receive(self) -> list[Tried | Died]:
        """What came of the jobs since. Raises AutotuneError for what ends the sweep."""
        answers: list[Tried | Died] = []
        try:
            while not self.lost and self._child.pipe.poll():
                self._handle_message(self._child.pipe.recv(), answers)
        except (EOFError, OSError):
            return answers + self._handle_end()
        if time.monotonic() >= self.deadline:
            limit = (
                f"{self._trial_seconds:g} s" if self._state is _State.SET else f"{START_SECONDS:g} s to start"
            )
            answers += self._handle_end(
                f"no end within {limit}; its process was killed (--trial-seconds sets the limit)"
            )
        return answers

    def _begin_next(self, now: float) -> None:
        """The first of the jobs begins, if there is one."""
        self._began = now
        self.deadline = now + _PLACING * self._trial_seconds if self._jobs else math.inf

    def _handle_message(self, message: object, answers: list[Tried | Died]) -> None:
        now = time.monotonic()
        match message:
            case Tried():
                self._jobs.popleft()
                self._sent -= 1
                self._starts = 0
                self._begin_next(now)
                answers.append(message)
                if message.lost:
                    self._replace(message.trial.reason)
            case Sign.PLACED:
                self.deadline = now + self._trial_seconds
            case Opened():
                self.device, self.toolchain = message.device, message.toolchain
                self._state, self.deadline = _State.OPEN, math.inf
                self._flush()
            case Sign.SET:
                self._state = _State.SET
                self._begin_next(now)
            case Warned(text) if text not in self._warnings:  # each new process says the same
                self._warnings.add(text)
                warn(text)
            case Failure():
                if self._state is not _State.OPENING or not hasattr(self, "device"):
                    self._child.close()
                    raise message.error()
                self._replace(message.text)  # it was there before: worth another attempt

    def take_back(self) -> list[Job]:
        """The jobs that a lost worker has not tried."""
        jobs, self._jobs = list(self._jobs), deque()
        self._sent = 0
        return jobs

    def ask(
        self,
        trials: float,
        method: Callable[Concatenate[Measuring, Asked], Told],
        *given: Asked.args,
        **_: Asked.kwargs,
    ) -> Told:
        """Return what ``method`` gives in the process, which runs no job now. Raises LaunchError without an answer in
        the time of ``trials`` trials: Ended if the process ended. The next question then starts another process."""
        seconds = trials * self._trial_seconds + START_SECONDS
        until = time.monotonic() + seconds
        asked = False
        while not self.lost:
            if self._state is not _State.OPENING and not asked:
                self._child.send([Question(method, given)])
                asked = True
            try:
                late = not self._child.poll(min(until, self.deadline))
                message = None if late else self._child.pipe.recv()
            except (EOFError, OSError):
                late, message = False, None
            match message:
                case None:
                    cause = f"no answer within {seconds:g} s" if late else self._cause()
                    if asked:
                        self._starts = 0  # it did start: the request is to blame
                    self._handle_end(cause)
                    if asked and late:
                        raise Ended("timed_out", f"{cause}; the measuring process was killed")
                    if asked:
                        raise Ended("crashed", cause)
                case Answer(content):
                    if isinstance(content, Proved) and content.lost:
                        self._starts = 0
                        self._replace(content.reason)
                    told: Told = content
                    return told
                case Refused(reason):
                    raise LaunchError(reason)
                case _:
                    self._handle_message(message, [])
        raise LaunchError(self.lost)
