"""What a reader of a study should hear: how much was tried, whether the machine moved, whether control is beaten."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.files import clean
from autotune.record.decision import Decision, Margin, retime_ratio
from autotune.record.study import Study
from autotune.record.trial import FAILED, Trial

_MOST_REASONS = 3
_MOST_LINES = 3  # of a reason
_STEADY = 0.9, 1.1  # second over first times of the finalists, on a machine that did not change meanwhile


@dataclass(frozen=True)
class Coverage:
    """``tried`` of ``whole`` (None where it is too large to list), ``excluded`` next to them, and ``how``: by what, and
    what ended it."""

    tried: int
    whole: int | None
    excluded: int
    how: tuple[str, ...]

    def __str__(self) -> str:
        """``76 of 768 tried, 4 excluded (time limit 6 s, exhaustive order)``."""
        of = f"of {self.whole:,} tried" if self.whole else "tried of more than can be listed"
        of = f"{self.tried:,} {of}"
        of += f", {self.excluded:,} excluded" if self.excluded else ""
        return of + (f" ({', '.join(self.how)})" if self.how else "")


def coverage(study: Study) -> Coverage | None:
    """How much of the space was tried; None for a record that does not tell."""
    searched = study.about.searched
    if not searched:
        return None
    excluded = study.states().get("excluded", 0)
    selected = searched.get("of")
    whole = searched.get("space") or selected
    budget, by = str(searched.get("budget") or ""), str(searched.get("by") or "exhaustive")
    how = []
    if selected and selected < whole:
        how.append(f"{selected:,} selected")
    if budget:
        how.append(budget)
    if by != "exhaustive":
        seed = searched.get("seed")
        how.append(f"search {by}{f', seed {seed}' if seed is not None else ''}")
    elif budget:
        how.append("exhaustive order")
    if study.about.interrupted:
        how.append("interrupted")
    tried = int(searched.get("tried") or len(study.trials)) - excluded
    return Coverage(tried, whole, excluded, tuple(how))


def describe_move(trials: Sequence[Trial]) -> str:
    """Whether the machine was another one, as it were, when the finalists were timed again; empty where it was not, or
    none were."""
    ratio = retime_ratio(trials)
    if math.isnan(ratio) or _STEADY[0] <= ratio <= _STEADY[1]:
        return ""
    change = f"{ratio:.1f} times slower" if ratio > 1 else f"{1 / ratio:.1f} times faster"
    return (
        f"the machine was {change} when finalists were timed: their times compare with each other and not with those "
        "of the first pass"
    )


def describe_unbeaten(decision: Decision) -> str:
    """That nothing, or not the winner, is faster than the control beyond noise; empty where it is, or the control has
    no time."""
    over = decision.over_control
    if math.isnan(over.ratio) or (decision.is_reliable and over.is_certain):
        return ""
    told = "the winner is not" if decision.is_reliable else "no configuration is"
    takes = "" if decision.winner is decision.control else f": it takes {margin_text(over)}"
    return f"{told} reliably faster than control{takes}"


def margin_text(margin: Margin) -> str:
    """``1.06 x the winner (0.91 to 1.24)``."""

    def format_ratio(value: float) -> str:
        return f"{value:,.0f}" if value >= 99.995 else f"{value:.2f}"

    between = (
        "" if math.isnan(margin.low) else f" ({format_ratio(margin.low)} to {format_ratio(margin.high)})"
    )
    return f"{format_ratio(margin.ratio)} x the winner{between}"


def states_text(states: Mapping[str, int]) -> str:
    """``12 measured, 1 wrong_result``."""
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def failures(study: Study) -> list[str]:
    """A line for each state in which configurations failed: how many, the first one, and its reason."""
    lines = []
    for state in FAILED:
        of = [trial for trial in study.trials if trial.state == state]
        if of:
            named = of[0].configuration.changes(study.control)
            reason = next(iter(_shorten(of[0].reason)), "")
            lines.append(
                f"{len(of):,} {state}, {'the first' if len(of) > 1 else 'which is'} {named}: {reason}"
            )
    return lines


def reasons(failures: Iterable[tuple[str, str, str]]) -> str:
    """Why nothing came of it, the most frequent reasons first: lines with how often, one configuration, and the first
    lines of the message from its first error on. ``failures`` are (state, message, configuration's id); messages that
    differ in numbers, template arguments and names of configurations alone count as one."""
    groups: dict[tuple[str, str], list[tuple[list[str], str]]] = {}
    for state, message, name in failures:
        lines = _shorten(message)
        kind = lines[0]
        for varies in (r"<.*>", r"\S+=\S+", r"\d+(\.\d+)?(e[-+]?\d+)?"):
            kind = re.sub(varies, "…", kind)
        groups.setdefault((state, kind), []).append((lines, name))
    ordered = sorted(groups.items(), key=lambda one: -len(one[1]))
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


def _shorten(message: str) -> list[str]:
    """The first lines of a reason, from its first error on."""
    lines = clean(message).splitlines() or [""]
    first = next((i for i, line in enumerate(lines) if "error" in line or "fatal" in line), 0)
    return lines[first : first + _MOST_LINES]
