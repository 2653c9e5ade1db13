"""One worker of a spread, seen from the process that spreads: its process, what it has in hand, what it did."""

import math
import os
import signal
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import DupFd
from typing import Any

from autotune.device import Device
from autotune.spread_plan import Chunk
from autotune.spread_worker import Task, serve
from autotune.workers import end_process

__all__ = ["AHEAD", "Did", "Member"]

AHEAD = 3  # chunks in hand where more may come: one under way, the next, and one that comes meanwhile
_spawn = get_context("spawn")


@dataclass
class Did:
    """What a member did in one run. ``samples`` has (chunk, seconds on the device, seconds of copies); ``ended_s`` is
    when its last result came, since the run's begin; ``redone`` counts units taken over from a lost one."""

    samples: list[tuple[Chunk, float, float]] = field(default_factory=list)
    ended_s: float = 0.0
    redone: int = 0


class Member:
    """``name`` is its device. ``queue`` is planned for it and not sent, ``in_hand`` sent and not answered, ``kept``
    done, with results that only its device has. ``lost`` says why it is no more, or is empty."""

    device: Device

    def __init__(
        self, name: str, number: int, task: Task, file: int, folder: str, chunk_seconds: float
    ) -> None:
        self.name, self.number, self.lost = name, number, ""
        self.queue: deque[Chunk] = deque()
        self.in_hand: deque[Chunk] = deque()
        self.kept: list[Chunk] = []
        self.did = Did()
        self.seconds: dict[str, float] = {}
        self.is_awaited = True  # an answer that is not of a chunk is to come; the first one: that it is ready
        self.answer: Any = None
        self._chunk_seconds, self._since = chunk_seconds, time.monotonic()
        self.pipe, there = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(
            target=serve, args=(there, task, name, os.getpid(), folder, _Duplicate(file)), daemon=True
        )
        self.process.start()
        there.close()  # the pipe ends with the process only if nobody else holds the other end

    @property
    def room(self) -> int:
        return AHEAD - len(self.in_hand)

    @property
    def deadline(self) -> float:
        """When it has given no sign of life for too long (time.monotonic)."""
        return self._since + self._chunk_seconds if self.in_hand or self.is_awaited else math.inf

    def hand(self, chunks: Iterable[Chunk]) -> None:
        chunks = list(chunks)
        if chunks:
            if not self.in_hand:
                self._since = time.monotonic()
            self.in_hand += chunks
            self.send("chunks", chunks)

    def ask(self, kind: str, content: Any = None) -> None:
        """A message that will be answered."""
        self.is_awaited, self._since = True, time.monotonic()
        self.send(kind, content)

    def send(self, kind: str, content: Any = None) -> None:
        with suppress(OSError):  # it has just ended: its pipe will say so
            self.pipe.send((kind, content))

    def heard(self) -> tuple[str, Any]:
        """The next message. Raises EOFError or OSError at the process's end."""
        message: tuple[str, Any] = self.pipe.recv()
        self._since = time.monotonic()
        if message[0] not in ("done", "warning"):
            self.is_awaited = False
        return message

    def give_up(self, cause: str = "") -> list[Chunk]:
        """It is no more: the chunks that others have to run. When this returns nothing of it writes any longer."""
        if not cause:
            self.process.join(5)
            code = self.process.exitcode
            cause = f"its process ended with exit code {code}"
            if code is not None and code < 0:
                name = signal.Signals(-code).name
                hint = "; perhaps the machine ran out of memory" if -code == signal.SIGKILL else ""
                cause = f"its process was ended by {name} ({signal.strsignal(-code)}{hint})"
        self.close(at_once=True)
        self.lost = cause
        left = [*self.in_hand, *self.kept, *self.queue]
        self.in_hand.clear()
        self.kept.clear()
        self.queue.clear()
        self.is_awaited = False
        return left

    def close(self, at_once: bool = False) -> None:
        """May be called twice."""
        if self.pipe.closed:
            return
        if not at_once:
            with suppress(OSError):
                self.pipe.send(None)
            self.process.join(10)
        end_process(self.process)
        self.pipe.close()


class _Duplicate:
    """A file that the process gets a duplicate of. Made anew in the process it is sent to."""

    def __init__(self, file: int) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (DupFd(self._file),)


def _same(duplicate: Any) -> Any:
    return duplicate
