"""An entry held against new times: of which configurations, what they contradict, and the entry renewed by them."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError
from autotune.figures import loss_percent as percent
from autotune.measure import KERNEL, find_objective
from autotune.policy.acceptance import changed, known_configuration
from autotune.policy.file import Entry
from autotune.policy.merge import new_entries, runner_up_figures
from autotune.record import (
    MOST,
    TIE,
    BreakEven,
    Margin,
    Study,
    Trial,
    break_even,
    margin,
    noise,
)

_DIGESTS = ("source_digest", "layouts_digest", "space_digest")


def renewable(family: Family, item: Entry) -> bool:
    """Whether ``item`` is refused only since its kernel source, headers, layouts or declaration changed."""
    configuration, wrong = known_configuration(family, item.configuration)
    return bool(changed(family, item)) and configuration is not None and not wrong


def needed(family: Family, item: Entry, *, renewing: bool) -> list[Configuration]:
    """What is to be timed, the winner first: it, control and the runner-up; to renew the entry also the tie set and the
    other end of the break-even. Without those that are no more."""
    winner, _ = known_configuration(family, item.configuration)
    assert winner is not None
    found = [winner, family.space.control]
    for name in (item.runner_up, *((*item.tie_set, item.break_even_with) if renewing else ())):
        with suppress(AutotuneError):
            found.append(family.space.configuration(name))
    return list(dict.fromkeys(found))


def contradictions(
    item: Entry,
    trials: Mapping[Configuration, Trial],
    winner: Configuration,
    control: Configuration,
    tolerance: float,
    *,
    renewing: bool,
) -> list[str]:
    """What of the entry's claims the new ``trials`` do not bear out: it is right; it takes ``cost``; it is faster
    than control by ``margin_over_control``; none of the others is faster. Time and margin may be worse by ``tolerance``
    and by what both measurements leave open. ``renewing``, times may have changed, but not the margin, to either side:
    one that moved says that more changed than was timed."""
    now = trials.get(winner)
    if now is None or now.measurement is None:
        return [f"the winner is {now.state}: {now.reason}" if now else "the winner was not tried"]
    took, aim = now.cost(item.objective), find_objective(item.objective)
    measured = now.measurement.figure(aim.figure)
    spread = (measured.spread if measured else None) or 0.0
    allowed = 1 + tolerance + max(TIE, min(MOST, math.hypot(spread, item.cost_spread)))
    found: list[str] = []
    if took > item.cost * allowed and not renewing:
        more = percent(took / item.cost - 1)
        found.append(f"takes {aim.text(took)}, {more} more than the recorded {aim.noun}")
    against = trials.get(control) if item.margin_over_control else None
    if against and against.measurement:
        found += _margin(item, margin(against, now, item.objective), allowed, tolerance, renewing)
    elif item.margin_over_control and renewing:
        found.append(f"control is {against.state}: {against.reason}" if against else "control was not tried")
    others = [t for t in trials.values() if t.measurement and t is not against]
    best = min(others, key=lambda t: t.cost(item.objective))
    if took > best.cost(item.objective) * (1 + noise(best, now, item.objective)):
        role = "the runner-up " if best.configuration.id == item.runner_up else ""
        found.append(
            f"{role}{best.configuration.id} is now {'faster' if aim.is_time else 'cheaper'} than the winner: "
            f"{aim.text(best.cost(item.objective))}, winner {aim.text(took)}"
        )
    return found


def _margin(item: Entry, now: Margin, allowed: float, tolerance: float, renewing: bool) -> list[str]:
    claimed, ratio = item.margin_over_control, now.ratio
    is_lost = claimed >= 1 and ratio < 1 / (allowed - tolerance)
    is_better = renewing and now.is_certain and ratio > claimed * allowed
    if ratio >= claimed / allowed and not is_lost and not is_better:
        return []
    either = f", and at most {percent(tolerance)} apart is allowed" if renewing else ""
    if not (aim := find_objective(item.objective)).is_time:
        return [f"control takes {ratio:.3g} x its {aim.noun}, {claimed:.3g} x is claimed{either}"]
    return [f"is {ratio:.3g} x as fast as control, {claimed:.3g} x is claimed{either}"]


def figures(
    item: Entry, trials: Mapping[Configuration, Trial], winner: Configuration, control: Configuration
) -> str:
    """The new times beside the recorded ones; empty where the winner has none."""
    if not trials[winner].measurement:
        return ""
    took, aim = trials[winner].cost(item.objective), find_objective(item.objective)
    told = [f"{aim.text(took)}, recorded {aim.text(item.cost)}"]
    for configuration, trial in trials.items():
        ratio = trial.cost(item.objective) / took
        if configuration == winner or not trial.measurement:
            continue
        if configuration != control:
            told.append(f"runner-up {ratio:.2f} x the winner")
        elif item.margin_over_control:
            told.append(f"{ratio:.2f} x {aim.better} than control, recorded {item.margin_over_control:.2f}")
    return "; ".join(told)


def renewed(item: Entry, study: Study, winner: Configuration) -> Entry:
    """``item`` with the figures and hashes of ``study``, in which ``needed`` was timed. The winner stays; regrets over
    other entries' winners stay as they were."""
    trials = {t.configuration: t for t in study.trials if t.measurement}
    own = trials[winner]
    (found,) = new_entries(replace(study, trials=(own,)), item.objective)
    ties = [t for t in trials.values() if t.cost(item.objective)
            <= own.cost(item.objective) * (1 + noise(own, t, item.objective))]  # fmt: skip
    slower = [t for t in trials.values() if t not in ties and t.configuration != study.control]
    runner_up = min(slower, key=lambda t: t.cost(item.objective), default=None)
    pair = _break_even(item, trials, own)
    return replace(
        found,
        name=item.name,
        tie_set=sorted((t.configuration.id for t in ties), key=lambda name: (name != winner.id, name)),
        runner_up=runner_up.configuration.id if runner_up else "",
        **{"runner_up_ms": 0.0, "runner_up_cost": 0.0, **runner_up_figures(runner_up, item.objective)},
        margin_over_control=margin(trials.get(study.control), own, item.objective).claim,
        break_even=pair.launches if pair else 0,
        break_even_with=item.break_even_with if pair else "",
        regret_with=item.regret_with,
        renewed=found.date,
        renewed_from=item.renewed_from or {"date": item.date, **{name: getattr(item, name) for name in _DIGESTS}},
    )  # fmt: skip


def _break_even(item: Entry, trials: Mapping[Configuration, Trial], own: Trial) -> BreakEven | None:
    other = next((t for c, t in trials.items() if c.id == item.break_even_with), None)
    if other is None:
        return None
    return break_even(own, other) if item.objective == KERNEL else break_even(other, own)
