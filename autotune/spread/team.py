"""The workers of a spread together: who gets the next chunk, what they answer, what becomes of a lost one's work."""

import math
import pickle
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeVarTuple

from autotune.errors import DeviceError
from autotune.hardware import Device
from autotune.processes import Answer, Child, Failure, Warned
from autotune.spread.plan import Allocation, Chunk
from autotune.spread.worker import AWAKE_S, ChunkTask, ChunkWorker, Done, Inbox, Lost, decode, serve

_Given = TypeVarTuple("_Given")
_MEANWHILE_S = 5e-4
_AHEAD = 2  # chunks in hand where more may come: one under way and the next


@dataclass(kw_only=True)
class Share:
    """One worker's part of a run. ``predicted_s`` is what the cost model said (NaN when nothing was calibrated),
    ``measured_s`` the time from the run's begin until its last result was there, ``device_s`` and ``copied_s`` what its
    device was busy computing and copying. ``redone`` counts units taken over from a lost worker; ``lost`` says why this
    one was."""

    device: str
    units: int = 0
    chunks: int = 0
    predicted_s: float = math.nan
    measured_s: float = 0.0
    device_s: float = 0.0
    copied_s: float = 0.0
    redone: int = 0
    lost: str = ""
    done: list[Done] = field(default_factory=list, repr=False)

    def add(self, done: Done, measured_s: float) -> None:
        self.done.append(done)
        self.units += done.chunk.count
        self.chunks += 1
        self.device_s += done.seconds
        self.copied_s += done.copied
        self.measured_s = measured_s


_dump = partial(pickle.dumps, protocol=pickle.HIGHEST_PROTOCOL)
_dump_once = lru_cache(64)(_dump)  # one run's are much like another's


def _pickle(mail: tuple[Any, ...]) -> bytes:
    try:
        return _dump_once(mail)
    except TypeError:  # what has no hash
        return _dump(mail)


class Member:
    """``name`` is its device. ``queue`` is planned for it and not sent, ``in_hand`` sent and not answered, ``kept``
    done, with results that only its device has. ``lost`` says why it is no more, or is empty. It gives a sign of life
    every ``chunk_seconds`` while it has work."""

    device: Device

    def __init__(self, name: str, number: int, task: ChunkTask, folder: str, chunk_seconds: float) -> None:
        self.name, self.number, self.lost = name, number, ""
        self.queue: deque[Chunk] = deque()
        self.in_hand: deque[Chunk] = deque()
        self.kept: list[Chunk] = []
        self.has_left = False  # its results were asked for behind the last of its chunks
        self.share = Share(device=name)  # of the last run
        self.awaited = 1  # answers to come that are not of chunks; the first one: its device
        self.answer: Any = None
        self._mail: list[tuple[Callable[..., Any], tuple[Any, ...], bool]] = []  # goes together
        self.chunk_seconds, self._since = chunk_seconds, time.monotonic()
        self.child = Child(
            serve, (task, name), folder=folder, what=f"a process for {name}", error=DeviceError
        )
        self.process = self.child.process

    @property
    def room(self) -> int:
        return _AHEAD - len(self.in_hand)

    @property
    def deadline(self) -> float:
        """When it has given no response for too long (time.monotonic)."""
        return self._since + self.chunk_seconds if self.is_busy else math.inf

    @property
    def is_busy(self) -> bool:
        return bool(self.in_hand or self.awaited)

    def hand(self, chunks: Iterable[Chunk]) -> None:
        chunks = tuple(chunks)
        if chunks:
            if not self.is_busy:
                self._since = time.monotonic()
            self.has_left = False
            self.in_hand += chunks
            self.tell(ChunkWorker.add, chunks)

    def tell(self, method: Callable[[ChunkWorker, *_Given], Any], *given: *_Given) -> None:
        """Have the process's ChunkWorker do something, when the mail is sent."""
        self._mail.append((method, given, False))

    def ask(self, method: Callable[[ChunkWorker, *_Given], Any], *given: *_Given) -> None:
        """The same, of which there will be an ``answer``."""
        self._await()
        self._mail.append((method, given, True))

    def send(self) -> None:
        """The mail, as one message: a process that has to be woken for each takes longer than for all."""
        if self._mail:
            self.child.post(_pickle(tuple(self._mail)))
            self._mail = []

    def fetch(self) -> None:
        """Its results that only its device has leave behind all chunks that it was given; then there is an answer."""
        self._await()
        self.has_left = True
        self.tell(ChunkWorker.fetch, (*self.kept, *self.in_hand))

    def _await(self) -> None:
        if not self.is_busy:
            self._since = time.monotonic()
        self.awaited += 1

    def receive(self) -> list[object]:
        """The next messages, that came together. Raises EOFError or OSError at the process's end."""
        found = self.child.pipe.recv()
        self._since = time.monotonic()
        messages = decode(found) if isinstance(found, list) else [found]
        for message in messages:
            if isinstance(message, Answer):
                self.awaited, self.answer = self.awaited - 1, message.content
        return messages

    def give_up(self, cause: str) -> list[Chunk]:
        """It is no more: the chunks that others have to run. When this returns nothing of it writes any longer."""
        self.child.close()
        self.lost = self.share.lost = cause
        self.awaited = 0
        left = [*self.in_hand, *self.kept, *self.queue]
        for chunks in (self.in_hand, self.kept, self.queue):
            chunks.clear()
        return left


class Team:
    """``members`` that are lost stay in the list; those ``alive`` go on, but not while all are ``starting``.
    ``meanwhile`` is called again and again while they are waited for."""

    def __init__(self, members: Sequence[Member], meanwhile: Callable[[], None] | None = None) -> None:
        self.members = tuple(members)
        self._meanwhile = meanwhile
        self.starting = True
        self.watch: Callable[[Member, Chunk], None] | None = None
        self._shared: deque[Chunk] = deque()
        self._again: set[Chunk] = set()
        self._steals = self._keeps = self._gathers = False
        self._begin = 0.0
        self._beside: Callable[[], None] | None = None

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if not member.lost]

    def ask(self, asks: Callable[[Member], None]) -> dict[int, Any]:
        """The answers of those alive, by number; a member lost over it has none. Raises DeviceError when all are."""
        asked = self.alive
        for member in asked:
            asks(member)
        self.drive()
        return {member.number: member.answer for member in asked if not member.lost}

    def run(
        self, plan: Allocation, *, leaves: bool, keeps: bool, beside: Callable[[], None] | None = None
    ) -> None:
        """Every chunk of the plan once; ``beside`` is called once, when all are at their first ones. With ``leaves``
        results leave as they are made; with ``keeps`` some stay on the devices, so that a chunk is lost with its device
        until ``fetch``; with both these leave behind each member's last chunk. Raises DeviceError when no member is
        left."""
        self._steals, self._keeps, self._gathers = plan.steals, keeps, leaves and keeps
        self._shared, self._again = deque(plan.shared), set()
        self._begin, self._beside = time.perf_counter(), beside
        for member in self.members:
            member.share = Share(device=member.name, lost=member.lost)
        for member, queue in zip(self.alive, plan.queues, strict=True):
            member.kept.clear()
            member.tell(ChunkWorker.begin, leaves)
            if plan.steals:
                member.queue = deque(queue)
            else:
                member.hand(queue)
        for member in self.alive:
            member.has_left = False
        self.drive()

    def fetch(self) -> None:
        """Results that only the devices have. A member lost meanwhile has its chunks run again."""
        self._gathers = True
        self.drive()

    def drive(self) -> None:
        """Until nothing is left to run and nobody is to answer. Raises DeviceError when no member is left to do it, and
        what a member says is wrong with the call."""
        while True:
            for next_chunk in (self._take_own, self._take_any):  # nobody takes what is another's first chunk
                for member in self.alive:
                    chunks: list[Chunk] = []
                    while len(chunks) < member.room and (chunk := next_chunk(member, len(chunks))):
                        chunks.append(chunk)
                    member.hand(chunks)
            for member in self.alive if self._gathers else ():
                if not member.has_left and self._is_last(member):
                    member.fetch()
            for member in self.alive:
                member.send()
            if self._beside:
                self._beside()
                self._beside = None
            waiting = [member for member in self.alive if member.is_busy]
            if not waiting:
                return
            left = min(member.deadline for member in waiting) - time.monotonic()
            if self._meanwhile:
                self._meanwhile()
                left = min(left, _MEANWHILE_S)
            heard = self._await_messages([member.child.pipe for member in waiting], max(0.0, left))
            for member in waiting:
                if member.child.pipe in heard:
                    self._hear(member)
                elif time.monotonic() >= member.deadline:
                    silence = f"no response for {member.chunk_seconds:g} s; its process was killed"
                    self._give_up(member, silence)

    def _await_messages(self, pipes: list[Any], seconds: float) -> list[Any]:
        """Return those of ``pipes`` that have a message; none after ``seconds``. At first poll without sleep, if that
        takes no core from workers."""
        is_free = not self._meanwhile and all(member.name != "cpu" for member in self.members)
        return Inbox(pipes).wait(seconds, AWAKE_S * is_free)

    def _is_last(self, member: Member) -> bool:
        """Whether what it was handed is all that it is to get, unless another is lost."""
        queued = self.alive if self._steals else [member]
        return not self._shared and not any(one.queue for one in queued)

    @staticmethod
    def _take_own(member: Member, _: int) -> Chunk | None:
        return member.queue.popleft() if member.queue else None

    def _take_any(self, member: Member, given: int) -> Chunk | None:
        """A chunk for the worker with room; else, for one that is at its last chunk, the last of the longest queue."""
        if self._shared:
            chunk = self._shared.popleft()
            if chunk in self._again:
                member.share.redone += chunk.count
            return chunk
        longest = max(self.alive, key=lambda other: len(other.queue))
        is_soon_idle = len(member.in_hand) + given <= 1
        return longest.queue.pop() if self._steals and is_soon_idle and longest.queue else None

    def _hear(self, member: Member) -> None:
        try:
            messages = member.receive()
        except (EOFError, OSError):
            self._give_up(member, f"its process {member.child.death()}")
            return
        for message in messages:
            match message:
                case Done(chunk):
                    member.in_hand.remove(chunk)
                    member.share.add(message, time.perf_counter() - self._begin)
                    if self._keeps:
                        member.kept.append(chunk)
                    if self.watch:
                        self.watch(member, chunk)
                case Lost(reason):
                    self._give_up(member, reason)
                case Warned(text):
                    warnings.warn(text, stacklevel=2)
                case Failure():
                    raise message.error()

    def _give_up(self, member: Member, cause: str) -> None:
        left = member.give_up(cause)
        if self.starting:
            raise DeviceError(f"{member.name}: {cause} while it started")
        self._again |= set(left)
        self._shared.extendleft(reversed(left))
        if not self.alive:
            reasons = "; ".join(f"{member.name}: {member.lost}" for member in self.members)
            raise DeviceError(
                f"no device of {len(self.members)} is left: {reasons}. Check them (autotune doctor)"
            )
        units = sum(chunk.count for chunk in left)
        warnings.warn(
            f"{member.name}: {member.lost}. Its {units} unfinished units are run by the others, which continue "
            "without it",
            stacklevel=2,
        )
