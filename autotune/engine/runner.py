"""Several workers on one study: who gets which configuration, and what came of it."""

import math
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import TypeAlias

from autotune.compile import CompileFailure
from autotune.declaration import Configuration
from autotune.device import Backend, open_backend
from autotune.engine.messages import Died, Job, Made, Tried
from autotune.engine.process_worker import ProcessWorker
from autotune.errors import DeviceError, UsageError
from autotune.processes import warn

NO_COMPILER = "--compiler chooses a CUDA compiler; on the cpu the environment's CXX names one"
_LONGEST_WAIT_S = 1.0


class DeviceLost(DeviceError):
    """No worker is left."""


TrialEnd: TypeAlias = Tried | Died | tuple[Configuration, CompileFailure]
Chunks = Callable[[Callable[[], bool]], Iterator[list[Made]]]  # given whether to stop


class _Prefetch:
    """The items of ``chunks``, made ahead by a thread. ``pipe`` becomes readable when ``take`` has something; ``stop``
    calls the rest off and returns at once: the thread ends with the item it is at."""

    def __init__(self, chunks: Chunks) -> None:
        self.pipe, self._bell = multiprocessing.Pipe(duplex=False)
        self.done = False
        self._items: SimpleQueue[list[Made] | BaseException | None] = SimpleQueue()
        self._stopped = False
        thread = threading.Thread(target=self._walk, args=(chunks,), daemon=True, name="autotune-prefetch")
        thread.start()

    def _walk(self, chunks: Chunks) -> None:
        try:
            # Closed when this function ends, and with it the processes it may have.
            for item in chunks(lambda: self._stopped):
                if self._stopped:
                    return
                self._put(item)
        except BaseException as problem:  # noqa: BLE001 - raised where it is seen: by ``take``
            self._put(problem)
        finally:
            self._put(None)

    def _put(self, item: list[Made] | BaseException | None) -> None:
        self._items.put(item)
        with suppress(OSError):  # nobody listens any more
            self._bell.send_bytes(b"")

    def take(self) -> Iterator[Made]:
        """What is there now, in order. Raises what making the next one raised."""
        while not self.done:
            try:
                item = self._items.get_nowait()
            except Empty:
                return
            self.pipe.recv_bytes()
            if item is None:
                self.done = True
            elif isinstance(item, BaseException):
                raise item
            else:
                yield from item

    def stop(self) -> None:
        self._stopped = True
        self.pipe.close()


@dataclass
class Runner:
    """``admitted`` is asked for each job when a worker is free for it: the job to send, or None when there is none."""

    workers: Sequence[ProcessWorker]
    admitted: Callable[[Job], Job | None]
    _waiting: deque[Job] = field(default_factory=deque)

    @property
    def alive(self) -> list[ProcessWorker]:
        return [worker for worker in self.workers if not worker.lost]

    def answers(self, chunks: Chunks) -> Generator[TrialEnd, None, None]:
        """Until all of ``chunks``, which a thread walks through, is tried; in their order but for what runs side by
        side. Raises DeviceLost when the last worker is given up, and what making the chunks raises."""
        made_ahead = _Prefetch(chunks)
        try:
            yield from self._answers(made_ahead)
        finally:
            made_ahead.stop()

    def _answers(self, made_ahead: _Prefetch) -> Iterator[TrialEnd]:
        while True:
            for made in made_ahead.take():
                if isinstance(made, Job):
                    self._waiting.append(made)
                else:
                    yield made
            self._hand_out()
            if not self._waiting and made_ahead.done and not any(w.busy for w in self.alive):
                return
            self._wait(made_ahead)
            for worker in self.alive:
                yield from worker.receive()
                if worker.lost:
                    self._waiting.extendleft(reversed(worker.take_back()))
                    if self.alive:
                        warn(f"{worker.lost}. The sweep goes on without it")
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

    def _wait(self, made_ahead: _Prefetch) -> None:
        """Until a worker or the compiler has something, or a worker's time is up."""
        alive = self.alive
        pipes: list[Connection] = [worker.pipe for worker in alive if worker.pipe]
        if not made_ahead.done:
            pipes.append(made_ahead.pipe)
        now = any(worker.busy and worker.pipe is None for worker in alive)
        left = min((worker.deadline for worker in alive), default=math.inf) - time.monotonic()
        wait(pipes, 0 if now else max(0.0, min(left, _LONGEST_WAIT_S)))


@contextmanager
def launch_workers(
    names: Sequence[str], compiler: str, trial_seconds: float, opens: Callable[[str], Backend] = open_backend
) -> Iterator[list[ProcessWorker]]:
    """A process for each device, which ``opens`` it while the block goes on; ``open_devices`` waits for them."""
    workers = [ProcessWorker(name, partial(opens, name), compiler, trial_seconds) for name in names]
    is_over = False
    try:
        for worker in workers:
            worker.launch()
        yield workers
        is_over = True
    finally:
        for worker in workers:
            worker.close(at_once=not is_over)


def open_devices(workers: Sequence[ProcessWorker], compiler: str) -> None:
    """Wait until all have their devices. Raises AutotuneError: one that is not there, or is not like the first."""
    for worker in workers:
        worker.start()
    first = workers[0].device
    if compiler and first.kind == "cpu":
        raise UsageError(NO_COMPILER)
    for worker in workers:
        kind = worker.device
        if (kind.slug, kind.arch, kind.multiprocessors) != (first.slug, first.arch, first.multiprocessors):
            raise UsageError(
                f"{worker.name} is a {kind.name}, {workers[0].name} a {first.name}: the devices of one sweep must "
                "be of one model, since their times are ranked together; sweep them one by one"
            )
