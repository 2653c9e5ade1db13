"""Several workers on one study: who gets which configuration, and what came of it."""

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from autotune.device import Device
from autotune.devices import open_backend
from autotune.errors import DeviceError, UnknownName, UsageError
from autotune.family import Family
from autotune.feed import Feed
from autotune.isolation import ProcessWorker
from autotune.jobs import Describe, Died, Job, Prove, Ragged, Reference, Retime, Setting, Tried
from autotune.space import Configuration
from autotune.toolchain import CompileFailure, Toolchain
from autotune.workload import Inputs

__all__ = ["Crew", "DeviceLost", "Made", "Worker", "device_names", "launched", "opened"]

_NO_COMPILER = "--compiler chooses a CUDA compiler; on the cpu the environment's CXX names one"

_LONGEST_WAIT_S = 1.0

# A configuration with what the compiler made of it.
Made = Job | tuple[Configuration, CompileFailure]


class DeviceLost(DeviceError):
    """No worker is left."""


class Worker(Protocol):
    """One device, asked from the sweeping process. ``device`` and ``toolchain`` are known once ``start`` returned;
    ``lost`` says why it is given up, or is empty. ``pipe`` becomes readable when ``receive`` has something;
    ``deadline`` (time.monotonic) is when it should be called at the latest."""

    device: Device
    toolchain: Toolchain
    lost: str

    @property
    def room(self) -> int: ...

    @property
    def busy(self) -> bool: ...

    @property
    def pipe(self) -> Connection | None: ...

    @property
    def deadline(self) -> float: ...

    def start(self) -> None: ...

    def reference(self, request: Reference, family: Family, inputs: Inputs) -> float:
        """Expected outputs for ``study``: the milliseconds they took. Raises AutotuneError."""
        ...

    def study(self, setting: Setting, family: Family, inputs: Inputs) -> None: ...

    def send(self, jobs: Sequence[Job]) -> None: ...

    def receive(self) -> list[Tried | Died]:
        """What came of the jobs since. Raises AutotuneError for what ends the sweep."""
        ...

    def take_back(self) -> list[Job]:
        """The jobs that a lost worker has not tried."""
        ...

    def ask(self, request: Retime | Describe | Ragged | Prove, trials: float) -> Any:
        """The answer, with no job in hand. Raises LaunchError when there is none in the time of so many ``trials``:
        Ended where the process ended over it."""
        ...

    def close(self, at_once: bool = False) -> None: ...


@dataclass
class Crew:
    """``admitted`` is asked for each job when a worker is free for it: the job to send, or None when there is none."""

    workers: Sequence[Worker]
    feed: Feed[list[Made]]
    admitted: Callable[[Job], Job | None]
    _waiting: deque[Job] = field(default_factory=deque)

    @property
    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers if not worker.lost]

    def answers(self) -> Iterator[Tried | Died | tuple[Configuration, CompileFailure]]:
        """Until all is tried; in the order of the feed but for what runs side by side. Raises DeviceLost when the last
        worker is given up, and what the feed raises."""
        while True:
            for chunk in self.feed.take():
                for made in chunk:
                    if isinstance(made, Job):
                        self._waiting.append(made)
                    else:
                        yield made
            self._hand_out()
            if not self._waiting and self.feed.done and not any(w.busy for w in self.alive):
                return
            self._wait()
            for worker in self.alive:
                yield from worker.receive()
                if worker.lost:
                    self._waiting.extendleft(reversed(worker.take_back()))
                    if self.alive:
                        warnings.warn(f"{worker.lost}. The sweep goes on without it", stacklevel=2)
            if not self.alive:
                raise DeviceLost("; ".join(worker.lost for worker in self.workers))

    def _hand_out(self) -> None:
        """One job after another to the worker with the most room, then one message to each."""
        given: dict[int, list[Job]] = {}
        room = {number: worker.room for number, worker in enumerate(self.workers)}
        while self._waiting and (freest := max(room, key=lambda number: room[number])) in room:
            if room[freest] <= 0:
                break
            job = self.admitted(self._waiting.popleft())
            if job:
                given.setdefault(freest, []).append(job)
                room[freest] -= 1
        for number, jobs in given.items():
            self.workers[number].send(jobs)

    def _wait(self) -> None:
        """Until a worker or the feed has something, or a worker's time is up."""
        alive = self.alive
        pipes: list[Connection] = [worker.pipe for worker in alive if worker.pipe]
        if not self.feed.done:
            pipes.append(self.feed.pipe)
        now = any(worker.busy and worker.pipe is None for worker in alive)
        left = min((worker.deadline for worker in alive), default=math.inf) - time.monotonic()
        wait(pipes, 0 if now else max(0.0, min(left, _LONGEST_WAIT_S)))


@contextmanager
def launched(names: Sequence[str], compiler: str, trial_seconds: float) -> Iterator[list[ProcessWorker]]:
    """A process for each device, which opens it while the block goes on; ``opened`` waits for them."""
    if compiler and names[0] == "cpu":
        raise UsageError(_NO_COMPILER)
    workers = [ProcessWorker(name, partial(open_backend, name), compiler, trial_seconds) for name in names]
    try:
        for worker in workers:
            worker.launch()
        yield workers
    except BaseException:
        for worker in workers:
            worker.close(at_once=True)
        raise
    finally:
        for worker in workers:
            worker.close()


def opened(workers: Sequence[ProcessWorker], compiler: str) -> None:
    """Wait until all have their devices. Raises AutotuneError: one that is not there, or is not like the first."""
    for worker in workers:
        worker.start()
    first = workers[0].device
    if compiler and first.kind == "cpu":
        raise UsageError(_NO_COMPILER)
    for worker in workers:
        kind = worker.device
        if (kind.slug, kind.arch, kind.multiprocessors) != (first.slug, first.arch, first.multiprocessors):
            raise UsageError(
                f"{worker.name} is a {kind.name}, {workers[0].name} a {first.name}: the devices of one sweep must "
                "be of one model, since their times are ranked together; sweep them one by one"
            )


def device_names(text: str) -> list[str]:
    """``cuda:0,1`` and ``cuda:0,cuda:1`` -> ["cuda:0", "cuda:1"]; ``cpu,cpu`` -> two processes on the cpu. Raises
    UnknownName, and UsageError for a mixture or a GPU that is named twice."""
    names: list[str] = []
    for item in text.split(","):
        is_number = item.isdigit() and names and names[-1].startswith("cuda:")
        names.append(f"cuda:{item}" if is_number else item)
    for name in names:
        kind, _, number = name.partition(":")
        if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
            raise UnknownName("device", name, ("auto", "cpu", "cuda", "cuda:N", "cuda:N,M,…"))
    if len(names) > 1:
        whole = [name if name != "cuda" else "cuda:0" for name in names]
        is_cuda = all(name.startswith("cuda:") for name in whole) and len(set(whole)) == len(whole)
        if not is_cuda and set(whole) != {"cpu"}:
            raise UsageError(
                f"cannot sweep on {text}: name several GPUs, each once (cuda:0,1), or cpu several times (cpu,cpu)"
            )
    return names
