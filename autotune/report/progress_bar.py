"""How far a sweep is, while it is under way: as a bar on a terminal, or as lines in a log or a notebook."""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autotune.figures import duration
from autotune.record import Trial

LINE_SECONDS = 10.0  # between lines where there is no terminal
FIRST_SECONDS = 5.0  # before the time left is estimated
_FIRST_STEPS = 10  # also before it is estimated; in a short run a twentieth of all steps


class Pace:
    """Shows the progress of work with many steps, and an estimate of the time left: as a bar, or as lines. ``total`` is
    None if it is unknown. The estimate appears after the first steps."""

    def __init__(self, title: str, total: int | None, err: Console, bar: Progress | None) -> None:
        self._title, self._total, self._err, self._bar = title, total, err, bar
        self._task = bar.add_task(title, total=total, about="") if bar else None
        self._said = monotonic()
        self._is_over, self._done = False, 0
        self.start(0)

    def start(self, done: int) -> None:
        """The time left is reckoned from now on, with ``done`` steps behind."""
        self._first, self._began = done, monotonic()

    def step(self, done: int, about: str) -> None:
        """``done`` steps are behind; ``about`` is what else to say."""
        self._done, far = done, self._describe_time_left(done, monotonic())
        if not self._bar:
            count = str(done) if self._total is None else f"{done} of {self._total}"
            far = f"{count}, {far}" if far else count
        self.tell("; ".join(filter(None, (far, about))))

    def tell(self, about: str) -> None:
        """What goes on now: next to the bar, or as a line when the last one is old enough."""
        now = monotonic()
        if self._is_over:
            return
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=self._done, about=about)
        elif now - self._said >= LINE_SECONDS:
            self._said = now
            self._err.print(f"{self._title}: {about}")

    def end(self) -> None:
        """Show nothing more: a thread may go on compiling for a while after an interruption."""
        self._is_over = True

    def _describe_time_left(self, done: int, now: float) -> str:
        if self._total is None or done >= self._total:
            return ""
        seconds, steps = now - self._began, done - self._first
        if seconds < FIRST_SECONDS or steps < min(_FIRST_STEPS, (self._total - self._first) / 20):
            return ""
        return f"about {seconds / steps * (self._total - done):.0f} s left"


class Live:
    """One sweep's figures: trials done and left, the best time, how trials ended, time left, and the share of its time
    that the device ran kernels."""

    def __init__(self, steps: Pace) -> None:
        self._pace = steps
        self._states: Counter[str] = Counter()
        self._compiled = 0, 0

    def report_compiled(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` variants are compiled, if all are compiled before the first is timed."""
        self._compiled = done, total
        self._pace.tell(f"compiling {done:,} of {total:,} (cpu: all are compiled before timing)")

    @property
    def unfinished(self) -> str:
        """How far compiling was, while nothing was timed for it; empty once it is done."""
        done, total = self._compiled
        return f"{done:,} of {total:,} are compiled and kept" if done < total and not self._states else ""

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None:
        """After each trial."""
        if not self._states:  # what was recorded before says nothing, nor does what came before the first
            self._pace.start(done)
        self._states[trial.state] += 1
        self._pace.step(done, self._describe(best_ms, busy_share))

    def _describe(self, best_ms: float, busy_share: float) -> str:
        failed = [f"{count} {state}" for state, count in sorted(self._states.items()) if state != "measured"]
        best = [] if math.isinf(best_ms) else [f"best {duration(best_ms)}"]
        return ", ".join([*best, f"{self._states['measured']} measured", *failed, f"busy {busy_share:.0%}"])


@contextmanager
def pace(title: str, total: int | None, err: Console) -> Iterator[Pace]:
    """A Pace for the block; a bar that is gone afterwards where ``err`` is a terminal. Nothing of the program is
    redirected for it."""
    if not err.is_terminal or err.is_jupyter:
        steps = Pace(title, total, err, None)
        try:
            yield steps
        finally:
            steps.end()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    about = TextColumn("{task.fields[about]}")
    shown = Progress(
        *columns, about, console=err, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    with shown as bar:
        yield Pace(title, total, err, bar)


@contextmanager
def show_live(title: str, total: int | None, err: Console) -> Iterator[Live]:
    """Show the progress of a sweep while the block runs."""
    with pace(title, total, err) as steps:
        yield Live(steps)


def make_console(progress: bool) -> Console:
    """Where a program that did not ask for output is shown how far it is: its terminal or notebook, else nowhere."""
    shown = Console(highlight=False, markup=False)
    try:
        is_watched = shown.is_jupyter or sys.stdout.isatty()
    except (AttributeError, ValueError):  # none, or closed
        is_watched = False
    return shown if progress and is_watched else Console(quiet=True)
