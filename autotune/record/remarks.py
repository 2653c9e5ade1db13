"""What a reader of a study should hear: how much was tried, whether the machine moved, whether control is beaten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.record.decision import Decision, Margin, retime_ratio
from autotune.record.study import Study
from autotune.record.trial import Trial

_STEADY = 0.9, 1.1  # second over first times of the finalists, on a machine that did not change meanwhile


@dataclass(frozen=True)
class Coverage:
    """``tried`` of ``whole`` (None where it is too large to list), ``excluded`` beside them, and ``how``: by what, and
    what ended it."""

    tried: int
    whole: int | None
    excluded: int
    how: tuple[str, ...]

    def __str__(self) -> str:
        """``76 of 768 tried, 4 excluded (time limit 6 s, exhaustive order)``."""
        of = (
            f"{self.tried:,} of {self.whole:,} tried"
            if self.whole
            else f"{self.tried:,} tried of more than can be listed"
        )
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


def moved(trials: Sequence[Trial]) -> str:
    """Whether the machine was another one, as it were, when the finalists were timed again; empty where it was not, or
    none were."""
    ratio = retime_ratio(trials)
    if math.isnan(ratio) or _STEADY[0] <= ratio <= _STEADY[1]:
        return ""
    change = f"{ratio:.1f} times slower" if ratio > 1 else f"{1 / ratio:.1f} times faster"
    return (
        f"the machine was {change} when finalists were timed: their times compare with each other and not with those "
        "of the first pass, so they rank first"
    )


def unbeaten(decision: Decision) -> str:
    """That nothing is faster than the control beyond noise; empty where something is, or the control has no time."""
    if decision.is_reliable:
        return ""
    told = "no configuration is reliably faster than control"
    if decision.winner is decision.control:
        return told
    return f"{told}: it takes {margin_text(decision.over_control)}"


def margin_text(margin: Margin) -> str:
    """``1.06 x the winner (0.91 to 1.24)``."""

    def told(value: float) -> str:
        return f"{value:,.0f}" if value >= 99.995 else f"{value:.2f}"

    between = "" if math.isnan(margin.low) else f" ({told(margin.low)} to {told(margin.high)})"
    return f"{told(margin.ratio)} x the winner{between}"
