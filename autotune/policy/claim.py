"""An entry held against new times: of which configurations, and what they contradict."""

import math
from collections.abc import Mapping
from contextlib import suppress

from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError
from autotune.figures import loss_percent as percent
from autotune.hardware import Device
from autotune.measure import find_objective
from autotune.policy.acceptance import entry_refusal, known_configuration
from autotune.policy.file import Entry
from autotune.record import MOST, TIE, Margin, Trial, margin, noise

Trials = Mapping[Configuration, Trial]


class Claim:
    """What an entry of ``family`` says, held against new times."""

    def __init__(self, family: Family, item: Entry) -> None:
        self._family, self.item = family, item
        self._known, self._wrong = known_configuration(family, item.configuration)
        self._aim = find_objective(item.objective)

    def refusal(self, device: Device) -> str:
        """Why the entry may not be used on ``device``; empty when it may."""
        return entry_refusal(self._family, self.item, device) or self._wrong

    @property
    def _winner(self) -> Configuration:
        assert self._known is not None, "a winner that is no more is refused"
        return self._known

    @property
    def configurations(self) -> list[Configuration]:
        """What is to be timed, the winner first: it, control and the runner-up, where that is still in the space."""
        found = [self._winner, self._family.space.control]
        with suppress(AutotuneError):
            found.append(self._family.space.configuration(self.item.runner_up))
        return list(dict.fromkeys(found))

    def contradictions(self, trials: Trials, tolerance: float) -> list[str]:
        """What the new ``trials`` do not bear out: the winner is right; it takes ``cost``; it is faster than control by
        ``margin_over_control``; none of the others is faster. Time and margin may be worse by ``tolerance`` and by what
        both measurements leave open."""
        item, aim, now = self.item, self._aim, trials.get(self._winner)
        if now is None or now.measurement is None:
            return [f"the winner is {now.state}: {now.reason}" if now else "the winner was not tried"]
        took, measured = now.cost(item.objective), now.measurement.figure(aim.figure)
        spread = (measured.spread if measured else None) or 0.0
        allowed = 1 + tolerance + max(TIE, min(MOST, math.hypot(spread, item.cost_spread)))
        found: list[str] = []
        if took > item.cost * allowed:
            more = percent(took / item.cost - 1)
            found.append(f"takes {aim.text(took)}, {more} more than the recorded {aim.noun}")
        against = trials.get(self._family.space.control) if item.margin_over_control else None
        if against and against.measurement:
            found += self._moved(margin(against, now, item.objective), allowed, tolerance)
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
        if ratio >= claimed / allowed and (claimed < 1 or ratio >= 1 / (allowed - tolerance)):
            return []
        if not aim.is_time:
            return [f"control takes {ratio:.3g} x its {aim.noun}, {claimed:.3g} x is claimed"]
        return [f"is {ratio:.3g} x as fast as control, {claimed:.3g} x is claimed"]

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
