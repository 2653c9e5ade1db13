"""A tuned kernel in production: one call in so many is timed, a winner that became slower than its entry is reported,
and metrics go to the program's own meter. Nothing is changed by what is seen.
"""

import threading
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from autotune.device import Backend
from autotune.dispatch.refinement import Timer, Turn
from autotune.errors import UsageError
from autotune.figures import duration, percent
from autotune.measure import spread
from autotune.policy import Entry
from autotune.record import TIE

if TYPE_CHECKING:
    from autotune.dispatch.target import Chosen

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
        slower = percent(self.now_ms / item.median_ms - 1)
        return (
            f"{self.family} takes {duration(self.now_ms)} ± {100 * self.spread:.2g} % (median of {self.calls} calls), "
            f"{slower} beside its entry {item.name}, {duration(item.median_ms)} ± {100 * item.spread:.2g} %: look for "
            "what else runs on the device, or sweep again"
        )


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What a program wants to know of its calls (``load(watch=Watch(...))``).

    Args:
        every: one call in so many is timed, by marks in its stream; nothing waits for them.
        on_drift: called once with each ``Drift``, which is a warning besides.
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
            raise UsageError(f"Watch(every={self.every}): one call in so many is timed, 1 at least")


class Watcher:
    """What ``watch`` asks for, of a family on one device: its instruments, a ``Watching`` for each choice."""

    def __init__(self, watch: Watch, family: str, backend: Backend) -> None:
        self.watch, self.family, self.backend = watch, family, backend
        meter = watch.meter
        self._choices = meter and meter.create_counter(
            "autotune.choices", "{choice}", "configurations chosen"
        )
        self._drifts = meter and meter.create_counter(
            "autotune.drifts", "{drift}", "winners slower than their entry"
        )
        self._durations = meter and meter.create_histogram("autotune.call.duration", "s", "of timed calls")

    def begin(self, chosen: "Chosen") -> "Watching":
        """Watch what was chosen for inputs of one kind; ``best`` has itself as its turns."""
        made = Watching(self, chosen)
        if self._choices:
            self._choices.add(1, made.attributes)
        return made

    def note_time(self, of: "Watching", ms: float) -> None:
        if self._durations:
            self._durations.record(ms / 1e3, of.attributes)

    def report(self, of: "Watching", drift: Drift) -> None:
        if self._drifts:
            self._drifts.add(1, of.attributes)
        warnings.warn(str(drift), stacklevel=7)
        if self.watch.on_drift:
            self.watch.on_drift(drift)


class Watching:
    """The calls of one choice (``best``). For any number of threads."""

    def __init__(self, watcher: Watcher, chosen: "Chosen") -> None:
        self.best = replace(chosen, turns=self)
        self.drift: Drift | None = None
        self.attributes = {
            "autotune.family": watcher.family, "autotune.device": watcher.backend.device.name,
            "autotune.configuration": chosen.variant.configuration.id, "autotune.match": chosen.candidate.match,
        }  # fmt: skip
        self._watcher, self._timer = watcher, Timer(watcher.backend)
        item = chosen.candidate.entry if chosen.candidate.match == "exact" else None
        is_short = watcher.backend.device.kind == "cpu" and item is not None and item.median_ms < _SHORTEST_MS
        self._item = None if is_short else item
        self._times: deque[float] = deque(maxlen=_MOST)
        self._calls, self._due = count(1), False
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Count a call: whether it, or one before it that nobody timed, is to be timed."""
        if next(self._calls) % self._watcher.watch.every == 0:
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
                    self._watcher.note_time(self, ms)
            drift = self._judge()
        if drift:
            self._watcher.report(self, drift)
        return Turn(self.best, 0, True, self)

    def time(self, turn: Turn) -> AbstractContextManager[None]:
        """Time what is queued inside."""
        return self._timer.time(turn.at)

    def failed(self, _at: int, _problem: Exception) -> bool:
        """It has no other to stand in for it."""
        return False

    def _judge(self) -> Drift | None:
        """The drift, when it is first seen."""
        from statistics import median  # with fractions and decimals

        item = self._item
        if item is None or self.drift or len(self._times) < _LEAST:
            return None
        now, width = median(self._times), spread(self._times)
        if now * (1 - width) <= item.median_ms * (1 + item.spread) * (1 + TIE):
            return None
        self.drift = Drift(self._watcher.family, item, now, width, len(self._times))
        return self.drift
