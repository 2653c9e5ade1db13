"""An entry held against new times: of which configurations, what they contradict, and the entry renewed by them."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError
from autotune.figures import loss_percent as percent
from autotune.hardware import Device
from autotune.measure import KERNEL, find_objective
from autotune.policy.acceptance import changed, entry_refusal, known_configuration
from autotune.policy.file import Entry
from autotune.policy.merge import new_entries, runner_up_figures
from autotune.record import MOST, TIE, BreakEven, Margin, Study, Trial, break_even, margin, noise

_DIGESTS = ("source_digest", "layouts_digest", "space_digest")

Trials = Mapping[Configuration, Trial]


class Claim:
    """What an entry of ``family`` says, held against new times. ``changed`` is what of the family is another since it
    was measured; then it may be renewed."""

    def __init__(self, family: Family, item: Entry) -> None:
        self._family, self.item = family, item
        self._known, self._wrong = known_configuration(family, item.configuration)
        self._aim = find_objective(item.objective)
        self.changed = changed(family, item)

    def refusal(self, device: Device) -> str:
        """Why the entry may not be used on ``device``; empty when it may."""
        return entry_refusal(self._family, self.item, device) or self._wrong

    @property
    def is_renewable(self) -> bool:
        """Whether it is refused only since kernel source, headers, layouts or declaration changed."""
        return bool(self.changed) and self._known is not None and not self._wrong

    @property
    def _winner(self) -> Configuration:
        assert self._known is not None, "a winner that is no more is refused"
        return self._known

    @property
    def configurations(self) -> list[Configuration]:
        """What is to be timed, the winner first: it, control and the runner-up; to renew the entry also the tie set and
        the other end of the break-even. Without those that are no more."""
        item, space = self.item, self._family.space
        found = [self._winner, space.control]
        for name in (item.runner_up, *((*item.tie_set, item.break_even_with) if self.changed else ())):
            with suppress(AutotuneError):
                found.append(space.configuration(name))
        return list(dict.fromkeys(found))

    def contradictions(self, trials: Trials, tolerance: float) -> list[str]:
        """What the new ``trials`` do not bear out: the winner is right; it takes ``cost``; it is faster than control by
        ``margin_over_control``; none of the others is faster. Time and margin may be worse by ``tolerance`` and by what
        both measurements leave open. To renew the entry, times may have changed, but not the margin, to either side:
        one that moved says that more changed than was timed."""
        item, aim, now = self.item, self._aim, trials.get(self._winner)
        if now is None or now.measurement is None:
            return [f"the winner is {now.state}: {now.reason}" if now else "the winner was not tried"]
        took, measured = now.cost(item.objective), now.measurement.figure(aim.figure)
        spread = (measured.spread if measured else None) or 0.0
        allowed = 1 + tolerance + max(TIE, min(MOST, math.hypot(spread, item.cost_spread)))
        found: list[str] = []
        if took > item.cost * allowed and not self.changed:
            more = percent(took / item.cost - 1)
            found.append(f"takes {aim.text(took)}, {more} more than the recorded {aim.noun}")
        against = trials.get(self._family.space.control) if item.margin_over_control else None
        if against and against.measurement:
            found += self._moved(margin(against, now, item.objective), allowed, tolerance)
        elif item.margin_over_control and self.changed:
            found.append(
                f"control is {against.state}: {against.reason}" if against else "control was not tried"
            )
        others = [t for t in trials.values() if t.measurement and t is not against]
        best = min(others, key=lambda t: t.cost(item.objective))
        if took > best.cost(item.objective) * (1 + noise(best, now, item.objective)):
            role = "the runner-up " if best.configuration.id == item.runner_up else ""
            found.append(
                f"{role}{best.configuration.id} is now {'faster' if aim.is_time else 'cheaper'} than the winner: "
                f"{aim.text(best.cost(item.objective))}, winner {aim.text(took)}"
            )
        return found

    def _moved(self, now: Margin, allowed: float, tolerance: float) -> list[str]:
        claimed, ratio, aim = self.item.margin_over_control, now.ratio, self._aim
        is_lost = claimed >= 1 and ratio < 1 / (allowed - tolerance)
        is_better = bool(self.changed) and now.is_certain and ratio > claimed * allowed
        if ratio >= claimed / allowed and not is_lost and not is_better:
            return []
        either = f", and at most {percent(tolerance)} apart is allowed" if self.changed else ""
        if not aim.is_time:
            return [f"control takes {ratio:.3g} x its {aim.noun}, {claimed:.3g} x is claimed{either}"]
        return [f"is {ratio:.3g} x as fast as control, {claimed:.3g} x is claimed{either}"]

    def figures(self, trials: Trials) -> str:
        """The new times beside the recorded ones; empty where the winner has none."""
        item, aim = self.item, self._aim
        if not trials[self._winner].measurement:
            return ""
        took = trials[self._winner].cost(item.objective)
        told = [f"{aim.text(took)}, recorded {aim.text(item.cost)}"]
        for configuration, trial in trials.items():
            ratio = trial.cost(item.objective) / took
            if configuration == self._winner or not trial.measurement:
                continue
            if configuration != self._family.space.control:
                told.append(f"runner-up {ratio:.2f} x the winner")
            elif item.margin_over_control:
                told.append(
                    f"{ratio:.2f} x {aim.better} than control, recorded {item.margin_over_control:.2f}"
                )
        return "; ".join(told)

    def renewed(self, study: Study) -> Entry:
        """The entry with the figures and hashes of ``study``, in which ``configurations`` were timed. The winner stays;
        regrets over other entries' winners stay as they were."""
        item, winner = self.item, self._winner
        trials = {t.configuration: t for t in study.trials if t.measurement}
        own = trials[winner]
        (found,) = new_entries(replace(study, trials=(own,)), item.objective)
        ties = [t for t in trials.values() if t.cost(item.objective)
                <= own.cost(item.objective) * (1 + noise(own, t, item.objective))]  # fmt: skip
        slower = [t for t in trials.values() if t not in ties and t.configuration != study.control]
        runner_up = min(slower, key=lambda t: t.cost(item.objective), default=None)
        pair = _break_even(item, trials, own)
        before = {"date": item.date, **{name: getattr(item, name) for name in _DIGESTS}}
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
            renewed_from=item.renewed_from or before,
        )


def _break_even(item: Entry, trials: Trials, own: Trial) -> BreakEven | None:
    other = next((t for c, t in trials.items() if c.id == item.break_even_with), None)
    if other is None:
        return None
    return break_even(own, other) if item.objective == KERNEL else break_even(other, own)
