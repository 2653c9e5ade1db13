"""What a person sees of a sweep that goes on: a bar on a terminal, a line now and then in a file."""

import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from autotune.summary import duration
from autotune.trial import Trial

__all__ = ["LINE_SECONDS", "Live", "live", "progress"]

LINE_SECONDS = 10.0  # between lines where there is no terminal


class Live:
    """One sweep's figures: trials done and left, the best time, how trials ended, time left, and the share of its time
    that the device ran kernels."""

    def __init__(self, title: str, total: int | None, err: Console, bar: Progress | None) -> None:
        self._title, self._total, self._err, self._bar = title, total, err, bar
        self._states: Counter[str] = Counter()
        self._began = self._said = time.monotonic()
        self._first = 0  # trials that were recorded before
        self._task = bar.add_task(title, total=total, about="") if bar else None

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None:
        """After each trial."""
        if not self._states:
            self._first = done - 1
        self._states[trial.state] += 1
        about = self._about(best_ms, busy_share)
        if self._bar and self._task is not None:
            if done == self._first + 1:  # the time left is reckoned from what this run does
                self._bar.reset(self._task, total=self._total, completed=self._first)
            self._bar.update(self._task, completed=done, about=about)
        elif time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            far = str(done)
            if self._total is not None:
                left_s = (self._said - self._began) / (done - self._first) * (self._total - done)
                far = f"{done} of {self._total}, about {left_s:.0f} s left"
            self._err.print(f"{self._title}: {far}; {about}", markup=False)

    def _about(self, best_ms: float, busy_share: float) -> str:
        failed = [f"{count} {state}" for state, count in sorted(self._states.items()) if state != "measured"]
        best = [] if math.isinf(best_ms) else [f"best {duration(best_ms)}"]
        return ", ".join([*best, f"{self._states['measured']} measured", *failed, f"busy {busy_share:.0%}"])


def progress(err: Console) -> Progress:
    """A bar with a text beside it: ``about``, a field of its task."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[about]}"), console=err, transient=True,
    )  # fmt: skip


@contextmanager
def live(title: str, total: int | None, err: Console) -> Iterator[Live]:
    """A Live for the block; a bar that is gone afterwards where ``err`` is a terminal."""
    if not err.is_terminal:
        yield Live(title, total, err, None)
        return
    with progress(err) as bar:
        yield Live(title, total, err, bar)
