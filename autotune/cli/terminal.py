"""A finished study in a few lines of text: the end of ``autotune sweep``."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autotune.figures import duration
from autotune.files import clean
from autotune.hardware import Device
from autotune.record import (
    FAILED,
    Baseline,
    Decision,
    Study,
    Trial,
    close_to_winner,
    cost_ms,
    coverage,
    margin,
    margin_text,
    moved,
    unbeaten,
)

_MOST_REASONS = 3
_MOST_LINES = 3  # of a reason


def states(study: Study) -> str:
    return _counted(study.states())


def _tried(study: Study) -> dict[str, int]:
    return {state: count for state, count in study.states().items() if state != "excluded"}


def _counted(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def failures(study: Study) -> list[str]:
    """A line for each state in which configurations failed: how many, the first one, and its reason."""
    lines = []
    for state in FAILED:
        of = [trial for trial in study.trials if trial.state == state]
        if of:
            named = of[0].configuration.changes(study.control)
            reason = next(iter(_told(of[0].reason)), "")
            lines.append(
                f"{len(of):,} {state}, {'the first' if len(of) > 1 else 'which is'} {named}: {reason}"
            )
    return lines


def reasons(failures: Iterable[tuple[str, str, str]]) -> str:
    """Why nothing came of it, the most frequent reasons first: lines with how often, one configuration, and the first
    lines of the message from its first error on. ``failures`` are (state, message, configuration's id); messages that
    differ in numbers, template arguments and names of configurations alone count as one."""
    found: dict[tuple[str, str], list[tuple[list[str], str]]] = {}
    for state, message, name in failures:
        lines = _told(message)
        kind = lines[0]
        for varies in (r"<.*>", r"\S+=\S+", r"\d+(\.\d+)?(e[-+]?\d+)?"):
            kind = re.sub(varies, "…", kind)
        found.setdefault((state, kind), []).append((lines, name))
    ordered = sorted(found.items(), key=lambda one: -len(one[1]))
    told = []
    for (state, _), of in ordered[:_MOST_REASONS]:
        lines, name = of[0]
        told += [
            f"{len(of):,} {state}, one of them {name}:",
            *(f"    {line}" for line in lines if line.strip()),
        ]
    if left := sum(len(of) for _, of in ordered[_MOST_REASONS:]):
        told.append(f"{left:,} for other reasons")
    return "\n".join(told)


def _told(message: str) -> list[str]:
    """The first lines of a reason, from its first error on."""
    lines = clean(message).splitlines() or [""]
    first = next((i for i, line in enumerate(lines) if "error" in line or "fatal" in line), 0)
    return lines[first : first + _MOST_LINES]


def print_study(
    study: Study, wall_s: float, spent_s: Mapping[str, float], before: int, device: Device, out: Console,
    objective: str = "kernel",
) -> None:  # fmt: skip
    """How much was tried and what failed; the winner by ``objective`` (see ``decision.cost_ms``), what it is compared
    with, how sure that is, and the break-even. ``wall_s`` and ``spent_s`` (by phase) are the seconds of this run alone,
    ``before`` is how many trials the record had."""
    about = study.about
    sizes = " x ".join(str(n) for name, n in about.features.items() if name not in about.constants)
    out.print(f"\n{study.family} on {study.workload} ({sizes}), {device.kind}: {device.name}", markup=False)
    ended = states(study) or "nothing tried"
    if covered := coverage(study):  # which counts the excluded ones
        ended = f"{covered}: {_counted(_tried(study)) or 'nothing yet'}"
    ended += f", {before:,} of them recorded before" if before else ""
    out.print("; ".join([ended, *_spent(wall_s, spent_s)]), markup=False)
    for line in failures(study):
        out.print(line, markup=False)
    if idle := about.idle_policies:
        out.print(
            f"nothing changed by {', '.join(idle)}: the same machine code and data whatever its value",
            markup=False,
        )
    baseline = Baseline.of(about.baseline)
    if baseline and baseline.reason:
        out.print(f"baseline {baseline.kernel} was not timed: {baseline.cause}", markup=False)
    if about.warning:
        out.print(f"warning: {about.warning}", markup=False)
    if decision := study.decided(objective):
        out.print(_ladder(study, decision))
        for line in (*_how_sure(study, decision), *_break_even(study, decision)):
            out.print(line, markup=False)


_PHASES = (
    "compile",
    "reference",
    "place",
    "verify",
    "measure",
    "faults",
    "finalists",
    "baseline",
)  # record goes on beside


def _spent(wall_s: float, spent_s: Mapping[str, float]) -> Iterable[str]:
    seconds = {**spent_s, "overhead": wall_s - sum(spent_s.get(name, 0.0) for name in _PHASES)}
    spent = ", ".join(
        f"{name} {seconds[name]:.1f}" for name in (*_PHASES, "overhead") if seconds.get(name, 0) >= 0.05
    )
    yield f"{wall_s:.1f} s wall{f' ({spent})' if spent else ''}"
    if running := spent_s.get("verify", 0.0) + spent_s.get("measure", 0.0):
        yield f"kernels ran {spent_s.get('kernels', 0.0) / running:.0%} of verify and measure"


def _break_even(study: Study, decision: Decision) -> Iterable[str]:
    if pair := decision.break_even:
        is_own = pair.lasting == decision.winner.configuration
        lasting = "the winner" if is_own else pair.lasting.changes(study.control)
        single = pair.single.changes(study.control) if is_own else "the winner"
        yield f"break-even   {pays(lasting, pair.launches, single)}"


def _how_sure(study: Study, decision: Decision) -> Iterable[str]:
    if told := unbeaten(decision):
        yield told
    if decision.control is None:
        yield "control has no time here: there is no margin over it"
    if told := moved(study.trials):
        yield f"warning: {told}"
    if (near := close_to_winner(study.trials, decision)) and decision.winner.measurement:
        yield (
            f"warning: {near:,} others are behind the winner by no more than its own ± "
            f"{decision.winner.measurement.spread:.1%}: noise may have chosen it; on an idle "
            "machine sweep again with --retime (the finalists) or --again (everything)"
        )


def pays(lasting: str, launches: int, single: str) -> str:
    """From how many launches on the winner for kernels alone is worth what its layout costs."""
    plural = "" if launches == 1 else "es"
    return f"{lasting} pays from {launches:,} launch{plural} on the same data on, for fewer: {single}"


def _ladder(study: Study, decision: Decision) -> Table:
    """The configurations that have a name, as far as they were measured."""
    time = "time" if decision.objective == "kernel" else f"time {decision.objective}"
    table = Table("", time, "", box=None, pad_edge=False)
    table.add_column("differs from control in", overflow="fold")
    measured = {t.configuration: t for t in study.trials if t.measurement}
    for role, configuration in study.roles(decision).items():
        if trial := measured.get(configuration):
            ms = duration(cost_ms(trial, decision.objective))
            table.add_row(
                role, ms, _beside_winner(role, trial, decision), configuration.changes(study.control)
            )
    baseline = Baseline.of(study.about.baseline)
    if baseline and baseline.median_ms and decision.objective == "kernel":
        told = f"{baseline.over_winner:.2f} x the winner" if baseline.over_winner else ""
        table.add_row(
            "baseline", duration(baseline.median_ms), told, f"{baseline.kernel} in {baseline.source}"
        )
    return table


def _beside_winner(role: str, trial: Trial, decision: Decision) -> str:
    if role == "winner" and trial.measurement:
        return f"± {trial.measurement.spread:.1%}, {len(decision.tie_set)} in the tie set"
    if trial is decision.winner:
        return "the winner"
    tied = "tied, " if role == "runner-up" and trial in decision.tie_set else ""
    return tied + margin_text(margin(trial, decision.winner, decision.objective))


LINE_SECONDS = 10.0  # between lines where there is no terminal
FIRST_SECONDS = 5.0  # before the time left is reckoned
_FIRST_STEPS = 10  # and so many steps, in a short run a twentieth of them


class Pace:
    """How far something of many steps is, and about how long it still takes: as a bar, or as lines. ``total`` is None
    where nobody knows. The time left is not told before it means something."""

    def __init__(self, title: str, total: int | None, err: Console, bar: Progress | None) -> None:
        self._title, self._total, self._err, self._bar = title, total, err, bar
        self._task = bar.add_task(title, total=total, about="") if bar else None
        self._said = monotonic()
        self._is_over = False
        self.start(0)

    def start(self, done: int) -> None:
        """The time left is reckoned from now on, with ``done`` steps behind."""
        self._first, self._began = done, monotonic()

    def step(self, done: int, about: str) -> None:
        """``done`` steps are behind; ``about`` is what else to say."""
        left = self._left(done, monotonic())
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done)
            self.tell("; ".join(filter(None, (left, about))))
        else:
            far = str(done) if self._total is None else f"{done} of {self._total}"
            far = f"{far}, {left}" if left else far
            self.tell("; ".join(filter(None, (far, about))))

    def tell(self, about: str) -> None:
        """What goes on now: beside the bar, or as a line when the last one is old enough."""
        now = monotonic()
        if self._is_over:
            return
        if self._bar and self._task is not None:
            self._bar.update(self._task, about=about)
        elif now - self._said >= LINE_SECONDS:
            self._said = now
            self._err.print(f"{self._title}: {about}", markup=False)

    def end(self) -> None:
        """Nothing is told any more: what compiles in a thread may go on for a while after an interruption."""
        self._is_over = True

    def _left(self, done: int, now: float) -> str:
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

    def compiled(self, done: int, total: int) -> None:
        """Where all is compiled before anything is timed: so many are, of so many."""
        self._compiled = done, total
        self._pace.tell(f"compiling {done:,} of {total:,} (cpu: all are compiled before timing)")

    @property
    def unfinished(self) -> str:
        """How far compiling was, while nothing was timed for it; empty once it is done."""
        done, total = self._compiled
        return f"{done:,} of {total:,} are compiled and kept" if done < total and not self._states else ""

    def update(self, trial: Trial, done: int, best_ms: float, busy_share: float) -> None:
        """After each trial."""
        if (
            not self._states
        ):  # trials that were recorded before say nothing, nor does what came before the first
            self._pace.start(done)
        self._states[trial.state] += 1
        self._pace.step(done, self._about(best_ms, busy_share))

    def _about(self, best_ms: float, busy_share: float) -> str:
        failed = [f"{count} {state}" for state, count in sorted(self._states.items()) if state != "measured"]
        best = [] if math.isinf(best_ms) else [f"best {duration(best_ms)}"]
        return ", ".join([*best, f"{self._states['measured']} measured", *failed, f"busy {busy_share:.0%}"])


@contextmanager
def pace(title: str, total: int | None, err: Console) -> Iterator[Pace]:
    """A Pace for the block; a bar that is gone afterwards where ``err`` is a terminal."""
    if not err.is_terminal:
        steps = Pace(title, total, err, None)
        try:
            yield steps
        finally:
            steps.end()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[about]}"), console=err, transient=True) as bar:
        yield Pace(title, total, err, bar)


@contextmanager
def live(title: str, total: int | None, err: Console) -> Iterator[Live]:
    """A Live for the block, on a Pace."""
    with pace(title, total, err) as steps:
        yield Live(steps)
