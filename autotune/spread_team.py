"""The workers of a spread together: who gets the next chunk, what they answer, what becomes of a lost one's work."""

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

from autotune import errors
from autotune.errors import AutotuneError, DeviceError
from autotune.spread_member import Did, Member
from autotune.spread_plan import Chunk, Plan

__all__ = ["Team"]


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
