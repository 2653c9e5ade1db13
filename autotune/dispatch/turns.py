"""What runs in a call, and turns: calls of which something is wanted, a trial of another configuration or a time."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from autotune.compile import Variant
from autotune.device import Backend, Module
from autotune.policy import Candidate

_WAITED = 0.1  # of a time, at most, that the device may have waited for the host


@dataclass(frozen=True)
class Chosen:
    """What runs for inputs of certain sizes, and why. Where there are ``turns``, these say what a call runs."""

    variant: Variant
    module: Module
    candidate: Candidate
    turns: "Turns | None" = None


@dataclass(frozen=True)
class Turn:
    """One call: what it runs, ``at`` which place of what is tried, and whether it is timed."""

    chosen: Chosen
    at: int
    is_timed: bool
    of: "Turns"


class Turns(Protocol):
    """Who gives calls their turns."""

    @property
    def best(self) -> Chosen:
        """What a call runs that is no turn."""

    def turn(self) -> Turn | None:
        """The next call; None where nothing is wanted of it."""

    def time_turn(self, turn: Turn) -> AbstractContextManager[None]:
        """Around what the turn queues."""

    def mark_failed(self, at: int, problem: Exception) -> bool:
        """Whether another one stands in for what could not run."""


class Timer:
    """Times of calls, by marks in the stream that are read when they have passed. For any number of threads."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._marks: list[tuple[int, Any, Any, float]] = []

    @contextmanager
    def time(self, key: int) -> Iterator[None]:
        """Put marks around what is queued inside, whose time ``read`` gives by that ``key``."""
        began, begin = perf_counter(), self._backend.mark()
        yield
        end = self._backend.mark()
        waited_ms = 1e3 * (perf_counter() - began) if self._backend.has_reached(begin) else 0.0
        with self._lock:
            self._marks.append((key, begin, end, waited_ms))

    def read(self) -> Iterator[tuple[int, float | None]]:
        """What is known by now, each once: the key and the milliseconds, None where the host took too much of them."""
        with self._lock:
            marks, self._marks = self._marks, []
        for mark in marks:
            key, begin, end, waited_ms = mark
            took = self._backend.between_ms(begin, end)
            if took is None:
                with self._lock:
                    self._marks.append(mark)
            else:
                yield key, None if waited_ms > _WAITED * took else took
