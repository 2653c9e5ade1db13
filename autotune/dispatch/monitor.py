"""A tuned kernel in production: one call in N is timed, a winner that became slower than its entry is reported,
and metrics go to the program's own meter. Nothing is changed by what is seen.
"""

import threading
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

from autotune.device import Backend
from autotune.dispatch.turns import Chosen, Timer, Turn
from autotune.errors import UsageError
from autotune.figures import duration, percent
from autotune.measure import spread
from autotune.policy import Entry
from autotune.record import TIE

_LEAST, _MOST = 20, 50  # times that are judged together, the latest ones
_SHORTEST_MS = 1.0  # on a cpu: below it the time of a call is Python's more than the kernel's


@dataclass(frozen=True)
class Drift:
    """A winner that takes longer than its ``entry`` says: the median ``now_ms`` of the latest ``calls`` that were
    timed, with the relative half-width ``spread`` of its 95 % interval; the two intervals do not meet."""

    family: str
    entry: Entry
    now_ms: float
    spread: float
    calls: int

    def __str__(self) -> str:
        item = self.entry
        return (
            f"{self.family} takes {duration(self.now_ms)} ± {100 * self.spread:.2g} % (median of {self.calls} calls), "
            f"{percent(self.now_ms / item.median_ms - 1)} on its entry {item.name}, {duration(item.median_ms)} ± "
            f"{100 * item.spread:.2g} %: look for what else runs on the device, or sweep again"
        )


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """What a program wants to know of its calls (``load(monitor=Monitor(...))``).

    Args:
        every: N, where one call in N is timed, by marks in its stream; nothing waits for them.
        on_drift: called once with each ``Drift``, which is a warning as well.
        meter: a ``Meter`` of OpenTelemetry, or what has its ``create_counter`` and ``create_histogram``. It gets
            ``autotune.choices`` and ``autotune.drifts`` (counts) and ``autotune.call.duration`` (seconds on the device,
            of the calls that are timed).

    Raises:
        UsageError: ``every`` is less than 1.
    """

    every: int = 1000
    on_drift: Callable[[Drift], None] | None = None
    meter: Any = None

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UsageError(f"Monitor(every={self.every}): one call in N is timed; N must be at least 1")

    @cached_property
    def instruments(self) -> tuple[Callable[..., Any], ...]:
        """What notes a choice, a drift and a duration; each takes the amount and the attributes."""
        if self.meter is None:
            return (lambda *_: None,) * 3
        return (
            self.meter.create_counter("autotune.choices", "{choice}", "configurations chosen").add,
            self.meter.create_counter("autotune.drifts", "{drift}", "winners slower than their entry").add,
            self.meter.create_histogram(
                "autotune.call.duration", "s", "of timed calls, on the device"
            ).record,
        )


class Watching:
    """The calls of one choice (``best``), by what ``monitor`` asks for. For any number of threads."""

    def __init__(self, monitor: Monitor, family: str, backend: Backend, chosen: Chosen) -> None:
        self.best = replace(chosen, turns=self)
        self.drift: Drift | None = None
        self._monitor, self._family, self._timer = monitor, family, Timer(backend)
        found, device = chosen.candidate, backend.device
        self._attributes = {
            "autotune.family": family, "autotune.device": device.name, "autotune.match": found.match,
            "autotune.configuration": chosen.variant.configuration.id,
        }  # fmt: skip
        self._item = found.entry if found.match == "exact" else None
        if self._item and device.kind == "cpu" and self._item.median_ms < _SHORTEST_MS:
            self._item = None
        self._times: deque[float] = deque(maxlen=_MOST)
        self._calls, self._due = count(1), False
        self._lock = threading.Lock()
        self._note_choice, self._note_drift, self._note_duration = monitor.instruments
        self._note_choice(1, self._attributes)

    def is_due(self) -> bool:
        """Count a call: whether it, or one before it that nobody timed, is to be timed."""
        if next(self._calls) % self._monitor.every == 0:
            self._due = True
        return self._due

    def turn(self) -> Turn | None:
        """The next call, where it is to be timed; what was timed before is looked at."""
        if not self.is_due():
            return None
        self._due = False
        with self._lock:
            for _, ms in self._timer.read():
                if ms is not None:
                    self._times.append(ms)
                    self._note_duration(ms / 1e3, self._attributes)
            drift = self._judge()
        if drift:
            self._note_drift(1, self._attributes)
            warnings.warn(str(drift), stacklevel=6)
            if self._monitor.on_drift:
                self._monitor.on_drift(drift)
        return Turn(self.best, 0, True, self)

    def time_turn(self, turn: Turn) -> AbstractContextManager[None]:
        """Time what is queued inside."""
        return self._timer.time(turn.at)

    def mark_failed(self, _at: int, _problem: Exception) -> bool:
        """It has no other to stand in for it."""
        return False

    def _judge(self) -> Drift | None:
        """The drift, when it is first seen."""
        from statistics import median  # with fractions and decimals

        item = self._item
        if item is None or self.drift or len(self._times) < _LEAST:
            return None
        now, width = median(self._times), spread(self._times)
        if now * (1 - width) > item.median_ms * (1 + item.spread) * (1 + TIE):
            self.drift = Drift(self._family, item, now, width, len(self._times))
        return self.drift
