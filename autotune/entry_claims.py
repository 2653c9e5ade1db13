"""What a policy file's entry claims, against times taken now."""

import math

from autotune.decision import MOST, TIE, cost_ms
from autotune.policyfile import Entry
from autotune.regret import percent
from autotune.space import Configuration
from autotune.summary import duration
from autotune.trial import Trial

__all__ = ["broken"]


def broken(
    item: Entry,
    trials: dict[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
) -> tuple[str, str]:
    """What of an entry's claims the new ``trials`` contradict (empty: nothing), and the new figures. The claims: it is
    right; it takes ``median_ms`` (with what its objective adds); it is faster than control by ``margin_over_control``;
    it is not slower than the runner-up. Times may be worse by ``tolerance``, and by what both measurements leave
    open."""
    now = trials[winner]
    if now.measurement is None:
        return f"the winner is {now.state}: {now.reason}", ""
    took, recorded = cost_ms(now, item.objective), item.cost_ms
    open_by = max(TIE, min(MOST, math.hypot(now.measurement.spread, item.spread)))
    figures = [f"{duration(took)}, recorded {duration(recorded)}"]
    found: list[str] = []
    if took > recorded * (1 + tolerance + open_by):
        found.append(f"takes {duration(took)}, {percent(took / recorded - 1)} more than the recorded time")
    against = trials.get(control)
    if against and against.measurement and item.margin_over_control:
        margin = cost_ms(against, item.objective) / took
        figures.append(f"{margin:.2f} x faster than control, recorded {item.margin_over_control:.2f}")
        if margin < item.margin_over_control / (1 + tolerance + open_by) or (
            margin < 1 / (1 + open_by) and item.margin_over_control >= 1
        ):
            found.append(f"is {margin:.3g} x as fast as control, {item.margin_over_control:.3g} x is claimed")
    for configuration, trial in trials.items():
        if configuration in (winner, control) or not trial.measurement:
            continue
        ratio = cost_ms(trial, item.objective) / took
        figures.append(f"runner-up {ratio:.2f} x the winner")
        if ratio < 1 / (1 + open_by):
            found.append(
                f"the runner-up {configuration.id} is now faster: {duration(cost_ms(trial, item.objective))}"
            )
    return "; ".join(found), "; ".join(figures)
