"""Why a recorded configuration may not be used: for this family as it is now, on this device, for this caller; and
what new times contradict of what an entry claims.

Each function gives the reason as words for a person, or the empty string where there is none.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from autotune.compile import occupancy_model
from autotune.declaration import Configuration, Family
from autotune.errors import AutotuneError, DeviceError, UnknownName
from autotune.figures import loss_percent
from autotune.hardware import Device
from autotune.layout import layouts_digest
from autotune.measure import find_objective
from autotune.policy.file import Entry, PolicyFile
from autotune.record import MOST, TIE, Margin, Trial, accuracy_class, margin, noise

Trials = Mapping[Configuration, Trial]


def file_refusal(family: Family, file: PolicyFile, kind: str) -> str:
    """Why ``file`` as a whole is of no use for ``family`` on devices of that ``kind``; empty when it is."""
    if file.family != family.name or file.device.kind != kind:
        return f"it is for {file.family} on {file.device.kind} {file.device.name}"
    reasons = [describe_staleness(family, item) for item in file.entries.values()]
    return f"every entry is {reasons[0]}" if reasons and all(reasons) else ""


def entry_refusal(family: Family, item: Entry, device: Device) -> str:
    """Why an entry may not be used by ``family`` as it is now on ``device``, whatever the input; empty when it may."""
    return describe_staleness(family, item) or unmet_need(item.needs, device)


def unmet_need(of_kernels: Mapping[str, Mapping[str, int]], device: Device) -> str:
    """What kernels need (``Entry.needs``) and a multiprocessor of ``device`` does not have; empty when they fit."""
    for kernel, needs in of_kernels.items():
        block, shared = needs.get("block_size", 1), needs.get("shared_bytes", 0)
        limits = device.limits
        if block > limits.threads_per_block:
            return f"kernel {kernel} has blocks of {block} threads, and this device at most {limits.threads_per_block}"
        if device.kind == "cpu":
            continue
        if shared > (most := limits.shared_bytes_per_block):
            return (
                f"kernel {kernel} needs {shared} bytes of shared memory a block, and this device has {most}"
            )
        registers = needs.get("registers", 0)
        with suppress(DeviceError):  # an architecture whose limits are not known: the launch will tell
            found = occupancy_model.occupancy(device.arch, block, registers, shared)
            if found.limited_by == "launch":
                return (
                    f"kernel {kernel}: {block} threads of {registers} registers do not fit a multiprocessor"
                )
    return ""


def describe_staleness(family: Family, item: Entry) -> str:
    what = find_change(family, item)
    return f"stale: the {what} changed since it was measured; sweep again" if what else ""


def find_change(family: Family, item: Any) -> str:
    """What of the family is another since ``item``, which has an entry's digests, was measured: kernel source, layouts,
    space; empty for nothing."""
    digests = (
        ("kernel source", item.source_digest, family.source_digest),
        ("layouts", item.layouts_digest, layouts_digest()),
        ("space", item.space_digest, family.space_digest),
    )
    return next((what for what, recorded, now in digests if recorded != now), "")


def check_options(measured: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    for name, value in options.items():
        if str(measured.get(name, value)) != str(value):
            return f"measured with {name}={measured[name]}, not {value}"
    return ""


def check_accuracy(family: Family, configuration: Configuration, wanted: str) -> str:
    found = accuracy_class(configuration, family.accuracy)
    return "" if found == wanted else f"of accuracy class {found}, and {wanted} is requested"


def find_configuration(family: Family, values: Mapping[str, Any]) -> tuple[Configuration | None, str]:
    """The configuration in today's space: a policy that did not exist then takes its default."""
    chosen = dict(family.space.control)
    try:
        for name, value in values.items():
            chosen[name] = family.space.policy(name).value(value)
    except AutotuneError as problem:
        return None, str(problem)
    configuration = Configuration(chosen)
    return configuration, family.space.explain_exclusion(configuration)


def find_own_configuration(family: Family, values: Mapping[str, Any]) -> tuple[Configuration | None, str]:
    """``find_configuration``, which has to be of the family's own accuracy class."""
    configuration, reason = find_configuration(family, values)
    if configuration is not None and not reason:
        reason = check_accuracy(family, configuration, resolve_accuracy(family))
    return configuration, reason


def resolve_accuracy(family: Family, asked: Mapping[str, Any] | None = None) -> str:
    """The accuracy class that ``asked`` (policy -> value) names, the family's own for what it leaves out. Raises
    UnknownName for a policy that the family's ``accuracy`` does not list."""
    chosen = {name: family.space.policy(name).default for name in family.accuracy}
    for name, value in (asked or {}).items():
        if name not in chosen:
            raise UnknownName("accuracy policy", name, family.accuracy, f"family {family.name}")
        chosen[name] = family.space.policy(name).value(value)
    return accuracy_class(chosen, family.accuracy)


class Claim:
    """What an entry of ``family`` says, held against new times."""

    def __init__(self, family: Family, item: Entry) -> None:
        self._family, self.item = family, item
        self._known, self._wrong = find_configuration(family, item.configuration)
        self._aim = find_objective(item.objective)

    def explain_refusal(self, device: Device) -> str:
        """Why the entry may not be used on ``device``; empty when it may."""
        return entry_refusal(self._family, self.item, device) or self._wrong

    @property
    def _winner(self) -> Configuration:
        assert self._known is not None, "a winner that no longer exists is rejected"
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
        contradictions: list[str] = []
        if took > item.cost * allowed:
            more = loss_percent(took / item.cost - 1)
            contradictions.append(f"takes {aim.text(took)}, {more} more than the recorded {aim.noun}")
        against = trials.get(self._family.space.control) if item.margin_over_control else None
        if against and against.measurement:
            contradictions += self._describe_move(margin(against, now, item.objective), allowed, tolerance)
        others = [t for t in trials.values() if t.measurement and t is not against]
        best = min(others, key=lambda t: t.cost(item.objective))
        if took > best.cost(item.objective) * (1 + noise(best, now, item.objective)):
            role = "the runner-up " if best.configuration.id == item.runner_up else ""
            contradictions.append(
                f"{role}{best.configuration.id} is now {'faster' if aim.is_time else 'cheaper'} than the winner: "
                f"{aim.text(best.cost(item.objective))}, winner {aim.text(took)}"
            )
        return contradictions

    def _describe_move(self, now: Margin, allowed: float, tolerance: float) -> list[str]:
        claimed, ratio, aim = self.item.margin_over_control, now.ratio, self._aim
        if ratio >= claimed / allowed and (claimed < 1 or ratio >= 1 / (allowed - tolerance)):
            return []
        if not aim.is_time:
            return [f"control takes {ratio:.3g} x its {aim.noun}, {claimed:.3g} x is claimed"]
        return [f"is {ratio:.3g} x as fast as control, {claimed:.3g} x is claimed"]

    def figures(self, trials: Trials) -> str:
        """Return the new times and the recorded ones as text; empty if the winner has no new one."""
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
