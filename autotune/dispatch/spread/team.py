"""The workers of a spread together: who gets the next chunk, what they answer, what becomes of a lost one's work."""

import math
import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import DupFd
from typing import Any

from autotune import errors
from autotune.dispatch.spread.plan import Chunk, Plan
from autotune.dispatch.spread.worker import Task, serve
from autotune.errors import AutotuneError, DeviceError
from autotune.hardware import Device
from autotune.processes import end_process

__all__ = ["AHEAD", "Did", "Member", "Team"]


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


class Team:
    """``members`` that are lost stay in the list; those ``alive`` go on. ``chunk_seconds`` is for how long a member
    that has work may give no sign of life."""

    def __init__(self, members: Sequence[Member], chunk_seconds: float) -> None:
        self.members = tuple(members)
        self.watch: Callable[[Member, Chunk], None] | None = None
        self._chunk_seconds = chunk_seconds
        self._shared: deque[Chunk] = deque()
        self._again: set[Chunk] = set()
        self._steals = self._keeps = False
        self._begin = 0.0

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if not member.lost]

    def answer(self, member: Member) -> Any:
        """While all start: the answer to what was asked of one. Raises AutotuneError when there is none."""
        while True:
            if not member.pipe.poll(max(0.0, member.deadline - time.monotonic())):
                member.close(at_once=True)
                raise DeviceError(
                    f"{member.name}: no answer within {self._chunk_seconds:g} s while it started"
                )
            try:
                kind, content = member.heard()
            except (EOFError, OSError):
                member.give_up()
                raise DeviceError(f"{member.name}: {member.lost} while it started") from None
            if kind == "lost":
                raise DeviceError(f"{member.name}: {content}")
            _raise(kind, content)
            if kind != "warning":
                return content

    def ask(self, kind: str, content: Callable[[Member], Any]) -> dict[int, Any]:
        """The answers of those alive, by number; a member lost over it has none. Raises DeviceError when all are."""
        asked = self.alive
        for member in asked:
            member.ask(kind, content(member))
        self._drive()
        return {member.number: member.answer for member in asked if not member.lost}

    def run(self, plan: Plan, *, leaves: bool, keeps: bool) -> None:
        """Every chunk of the plan once. With ``leaves`` results leave as they are made; with ``keeps`` some stay on the
        devices, so that a chunk is lost with its device until ``fetch``. Raises DeviceError when no member is left."""
        self._steals, self._keeps = plan.steals, keeps
        self._shared, self._again = deque(plan.shared), set()
        self._begin = time.perf_counter()
        for member in self.members:
            member.did = Did()
        for member, queue in zip(self.alive, plan.queues, strict=True):
            member.kept.clear()
            member.send("run", leaves)
            member.queue = deque(queue)
            if not plan.steals:
                member.hand(member.queue)
                member.queue.clear()
        self._drive()

    def fetch(self) -> None:
        """Results that only the devices have. A member lost meanwhile has its chunks run again, and all are asked
        anew."""
        asked: list[Member] = []
        while asked != self.alive:
            asked = self.alive
            self.ask("fetch", lambda member: member.kept)

    def _drive(self) -> None:
        """Until nothing is left to run and nobody is to answer."""
        while True:
            for next_chunk in (self._own, self._anyones):  # nobody takes what is another's first chunk
                for member in self.alive:
                    chunks: list[Chunk] = []
                    while len(chunks) < member.room and (chunk := next_chunk(member, bool(chunks))):
                        chunks.append(chunk)
                    member.hand(chunks)
            waiting = [member for member in self.alive if member.in_hand or member.is_awaited]
            if not waiting:
                return
            left = min(member.deadline for member in waiting) - time.monotonic()
            heard = wait([member.pipe for member in waiting], max(0.0, left))
            for member in waiting:
                if member.pipe in heard:
                    self._hear(member)
                elif time.monotonic() >= member.deadline:
                    silence = f"no sign of life for {self._chunk_seconds:g} s; its process was killed"
                    self._give_up(member, silence)

    @staticmethod
    def _own(member: Member, _: bool) -> Chunk | None:
        return member.queue.popleft() if member.queue else None

    def _anyones(self, member: Member, is_given: bool) -> Chunk | None:
        """A chunk for whoever has room; else, for one that has nothing left to do, the last of the longest queue."""
        if self._shared:
            chunk = self._shared.popleft()
            if chunk in self._again:
                member.did.redone += chunk.count
            return chunk
        longest = max(self.alive, key=lambda other: len(other.queue))
        is_idle = not (member.in_hand or is_given)
        return longest.queue.pop() if self._steals and is_idle and longest.queue else None

    def _hear(self, member: Member) -> None:
        try:
            kind, content = member.heard()
        except (EOFError, OSError):
            self._give_up(member)
            return
        if kind == "done":
            chunk, seconds, copied = content
            member.in_hand.remove(chunk)
            member.did.samples.append((chunk, seconds, copied))
            member.did.ended_s = time.perf_counter() - self._begin
            if self._keeps:
                member.kept.append(chunk)
            if self.watch:
                self.watch(member, chunk)
        elif kind == "lost":
            self._give_up(member, content)
        else:
            _raise(kind, content)
            member.answer = content

    def _give_up(self, member: Member, cause: str = "") -> None:
        left = member.give_up(cause)
        self._again |= set(left)
        self._shared.extendleft(reversed(left))
        if not self.alive:
            reasons = "; ".join(f"{member.name}: {member.lost}" for member in self.members)
            raise DeviceError(
                f"no device of {len(self.members)} is left: {reasons}. Check them (autotune doctor)"
            )
        units = sum(chunk.count for chunk in left)
        warnings.warn(
            f"{member.name}: {member.lost}. Its {units} unfinished units are run by the others, which go on without it",
            stacklevel=2,
        )


def _raise(kind: str, content: Any) -> None:
    if kind == "warning":
        warnings.warn(content, stacklevel=2)
    if kind == "error":
        name, text = content
        raise getattr(errors, name, AutotuneError)(text)
