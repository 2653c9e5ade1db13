"""From trials to a winner: the one module that says what best means.

All configurations whose time is within the noise of the best form the tie set, however wide that noise is; the tie is
broken, among those near the best, by occupancy, then footprint, then closeness to the control (simplicity), then id. An
objective (``measure.figure``) says what counts in place of the kernels' time; its ties are broken by that time first. A
margin is a ratio of two medians, with the interval that theirs make."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from statistics import median

from autotune.declaration import Configuration
from autotune.measure import KERNEL, OBJECTIVES, ONE_CALL, Objective, find_objective
from autotune.record.trial import Trial

TIE = 0.01  # two medians closer than this are a tie even when their intervals are narrower, as in cuda-bench
WIDE = 0.10  # a winner with a wider interval may have won by noise
MOST = 0.05  # further from the best than this none wins a tie; and what is laid to noise where no interval is known


@dataclass(frozen=True)
class Margin:
    """Another trial's time over the winner's: ``ratio``, with the 95 % interval ``low`` to ``high``; NaN if a time, or
    its interval, is not known.

    The interval is by the method of variance estimates recovery, on the logarithms (Zou and Donner, Statistics in
    Medicine 27, 2008, with Newcombe, Statistical Methods in Medical Research 25, 2016, for ratios), from the intervals
    m (1 -+ s) of the two medians:
    log ratio - sqrt(log(1 - s_other)^2 + log(1 + s_winner)^2), and + sqrt(log(1 + s_other)^2 + log(1 - s_winner)^2).
    """

    ratio: float
    low: float = math.nan
    high: float = math.nan

    @property
    def is_certain(self) -> bool:
        """Whether there is a difference beyond noise: the interval leaves out 1 and the ratio is no tie."""
        if math.isnan(self.low):
            return not 1 / (1 + MOST) <= self.ratio <= 1 + MOST
        return not (self.low <= 1 <= self.high or 1 / (1 + TIE) <= self.ratio <= 1 + TIE)

    @property
    def claim(self) -> float:
        """What a policy file says: 1 where noise may have made the difference, 0 where a time is not known."""
        if math.isnan(self.ratio):
            return 0.0
        return round(self.ratio, 3) if self.is_certain else 1.0


@dataclass(frozen=True)
class Decision:
    """The outcome of one study. Margins are ratios of times: control over winner, runner-up over winner; winner,
    control and runner-up are timed again side by side, so the ratios hold. ``runner_up`` is the fastest that is
    slower than all of the tie set, else the fastest other one in it. Times are what ``objective`` counts
    (``Trial.cost``). ``break_even`` compares the winner for kernels alone with the one for a single call."""

    winner: Trial
    tie_set: tuple[Trial, ...]
    runner_up: Trial | None
    control: Trial | None
    objective: str = KERNEL
    break_even: "BreakEven | None" = None

    @property
    def over_control(self) -> Margin:
        return margin(self.control, self.winner, self.objective)

    @property
    def over_runner_up(self) -> Margin:
        return margin(self.runner_up, self.winner, self.objective)

    @property
    def is_reliable(self) -> bool:
        """Whether anything is faster than the control beyond noise; so too where the control has no time."""
        control = self.control
        return control is None or any(
            control.cost(self.objective) > t.cost(self.objective) * (1 + noise(t, control, self.objective))
            for t in self.tie_set
        )


@dataclass(frozen=True)
class BreakEven:
    """On data that stay, ``lasting``, the winner for kernels alone, is the cheaper one from ``launches`` launches on,
    layout included; for fewer it is ``single``, the winner for one call."""

    lasting: Configuration
    single: Configuration
    launches: int


def decide(trials: Sequence[Trial], control: Configuration, objective: str = KERNEL) -> Decision | None:
    """The decision over the measured trials of one study, or None when none of them may win (see ``_may_win``).
    ``objective`` is one of OBJECTIVES. Raises UnknownName."""
    of = methodcaller("cost", objective)
    finalists, ties = _ties(trials, control, objective)
    if not ties:
        return None
    winner = ties[0]
    ranked = fastest_first(trials, objective)
    slowest = max(map(of, ties))  # of one that was not timed again, a shorter time does not compare
    slower = [t for t in finalists if of(t) > slowest and t.configuration != control]
    slower = slower or [t for t in ranked if of(t) > slowest]
    runner_up = min(slower or [t for t in ties if t is not winner], key=of, default=None)
    measured = next((t for t in ranked if t.configuration == control), None)
    return Decision(
        winner, ties, runner_up, measured, objective, _break_even(trials, control, winner, objective)
    )


def _ties(
    trials: Sequence[Trial], control: Configuration, objective: str
) -> tuple[list[Trial], tuple[Trial, ...]]:
    """The trials that may win, best first, and those of them that noise cannot tell from the best, the winner first."""
    aim = find_objective(objective)
    every = fastest_first(trials, objective)
    finalists = ranked = [t for t in every if _may_win(t, aim)]
    if not ranked:
        return [], ()
    if not aim.is_sum:  # else what is cheap to lay out need not have been a finalist
        retimed = [t for t in ranked if t.measurement and t.measurement.retimed_ms]
        fastest = min(
            ranked, key=lambda t: t.measurement.get_first(aim.figure) if t.measurement else math.inf
        )
        # A record may hold an older sweep's finalists only.
        finalists = retimed if fastest in retimed else ranked
    best = finalists[0]
    least = best.cost(objective)
    ties = [t for t in finalists if t.cost(objective) <= least * (1 + noise(best, t, objective))]

    def key(trial: Trial) -> tuple[bool, float, tuple[float | str, ...]]:
        cost = trial.cost(objective)
        far = cost > least * (1 + min(MOST, noise(best, trial, objective)))
        return far, cost if far else 0.0, _preference(trial, control, objective)

    return finalists, tuple(sorted(ties, key=key))


def _may_win(trial: Trial, aim: Objective) -> bool:
    """Not by kernels alone, where sampling was stopped because it is behind; and by no figure where the only sample is
    the first run, which is then all that was verified."""
    measured = trial.measurement
    return not (measured and measured.abandoned and (not aim.is_sum or measured.samples == 1))


def accuracy_class(configuration: Mapping[str, object], names: Sequence[str]) -> str:
    """The accuracy class of ``configuration`` when the policies ``names`` decide how exact a result is: their values
    as in a configuration's id, empty for a family that declares none."""
    return ",".join(f"{name}={configuration[name]}" for name in sorted(names))


def set_aside(trials: Iterable[Trial], names: Sequence[str]) -> list[Trial]:
    """Of each accuracy class in which sampling was stopped for all that were measured, so that none may win: the
    fastest."""
    groups: dict[str, list[Trial]] = {}
    for trial in fastest_first(trials):
        groups.setdefault(accuracy_class(trial.configuration, names), []).append(trial)
    return [group[0] for group in groups.values() if not any(_may_win(t, OBJECTIVES[KERNEL]) for t in group)]


def _break_even(
    trials: Sequence[Trial], control: Configuration, winner: Trial, objective: str
) -> BreakEven | None:
    """Between the winner of ``objective`` and that of the other end: of a single call, or of kernels alone. None where
    noise may have made the difference, where it is the control that lasts, as nothing has to pay for that, and by
    what is no time."""
    if not find_objective(objective).is_time:
        return None
    others = _ties(trials, control, ONE_CALL if objective == KERNEL else KERNEL)[1]
    if not others:
        return None
    other = others[0]
    lasting, single = (winner, other) if objective == KERNEL else (other, winner)
    is_alike = single.time_ms <= lasting.time_ms * (1 + noise(lasting, single))
    # What is paid once was timed once.
    is_as_dear = lasting.once_ms <= single.once_ms * (1 + MOST)
    if lasting.configuration == control or is_alike or is_as_dear:
        return None
    return break_even(lasting, single)


def break_even(lasting: Trial, single: Trial) -> BreakEven | None:
    """From how many launches on ``lasting`` is the cheaper one; None when one of the two always is. With o for what a
    layout costs once and t for a launch, o_l + n t_l <= o_s + n t_s for n >= (o_l - o_s) / (t_s - t_l)."""
    gain = single.time_ms - lasting.time_ms
    extra = lasting.once_ms - single.once_ms
    if lasting is single or gain <= 0 or extra <= 0:
        return None
    return BreakEven(lasting.configuration, single.configuration, max(1, math.ceil(extra / gain)))


@dataclass(frozen=True)
class Stretch:
    """Up to how many calls ``trial`` is the cheapest, its cost once included; infinite for the last."""

    trial: Trial
    calls_from: int
    calls_to: float


def find_cheapest(trials: Sequence[Trial]) -> list[Stretch]:
    """Which configuration has the least ``once + calls * time``, from one call on."""
    left = [t for t in trials if t.measurement and t.time_ms > 0]
    if not left:
        return []
    calls = 1
    now = min(left, key=lambda t: (t.once_ms + t.time_ms, t.time_ms))
    stretches: list[Stretch] = []
    while True:
        ahead = []
        for other in left:
            if other.time_ms < now.time_ms:
                even = (other.once_ms - now.once_ms) / (now.time_ms - other.time_ms)
                ahead.append((max(calls + 1, math.floor(even) + 1), other.time_ms, other))
        if not ahead:
            return [*stretches, Stretch(now, calls, math.inf)]
        # Of those that pass it at the same call, the one that is cheapest then.
        at = min(one[0] for one in ahead)
        passing = [one[2] for one in ahead if one[0] == at]
        stretches.append(Stretch(now, calls, at - 1))
        now, calls = min(passing, key=lambda t: (t.once_ms + at * t.time_ms, t.time_ms)), at


def close_to_winner(trials: Sequence[Trial], decision: Decision) -> int:
    """How many of the other measured ``trials`` are behind the winner by no more than the half-width of its own
    interval: a warning that noise may have chosen it. 0 where that is at most WIDE, or they are at most half of
    the others."""
    best = decision.winner.cost(decision.objective)
    wide = decision.winner.width(decision.objective)
    wide = wide if math.isfinite(wide) else 1.0  # of a single sample
    behind = [
        t.cost(decision.objective) / best - 1 for t in trials if t.measurement and t is not decision.winner
    ]
    close = sum(lead <= wide for lead in behind)
    return close if wide > WIDE and 2 * close > len(behind) else 0


def decide_classes(
    trials: Sequence[Trial],
    control: Configuration,
    names: Sequence[str],
    objective: str = KERNEL,
    beside: Iterable[Trial] = (),
) -> dict[str, Decision]:
    """The decision within each accuracy class that was measured, by class; margins over control hold across them. What
    was tried ``beside`` them is compared with, and wins in no class."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.measurement:
            groups.setdefault(accuracy_class(trial.configuration, names), []).append(trial)
    decisions = {}
    for name, group in sorted(groups.items()):
        if decision := decide(group, control, objective):
            decisions[name] = add_control(decision, [*trials, *beside], control)
    return decisions


def add_control(decision: Decision, trials: Iterable[Trial], control: Configuration) -> Decision:
    """``decision`` with the control that is among ``trials``, wherever that was tried."""
    measured = (t for t in trials if t.configuration == control and math.isfinite(t.cost(decision.objective)))
    return replace(decision, control=next(measured, None))


def fastest_first(trials: Iterable[Trial], objective: str = KERNEL) -> list[Trial]:
    """Those measured, by what ``objective`` counts."""
    measured = (t for t in trials if math.isfinite(t.cost(objective)))
    return sorted(measured, key=lambda t: (t.cost(objective), t.configuration.id))


def noise(faster: Trial, slower: Trial, objective: str = KERNEL) -> float:
    """The relative difference up to which the two cannot be distinguished: where the interval of their ratio begins
    at 1 (see ``Margin``), and at least TIE. A transform and a transfer are timed once, so their part has no interval
    of its own; a single sample has none at all, which counts as MOST."""
    first, second = (t.width(objective) for t in (faster, slower))
    known = math.isfinite(first) and math.isfinite(second)
    widths = (first, second) if known else tuple(w if math.isfinite(w) else MOST for w in (first, second))
    return max(TIE, math.expm1(math.hypot(math.log1p(widths[0]), _log_low(widths[1]))))


def _log_low(relative: float) -> float:
    """The logarithm of the lower end of an interval with that half-width; one wider than its median ends near 0."""
    return math.log(max(1 - relative, 1e-9))


def margin(other: Trial | None, winner: Trial, objective: str = KERNEL) -> Margin:
    """``other`` over ``winner``, in what ``objective`` counts."""
    if other is None or not winner.cost(objective) or math.isinf(other.cost(objective)):
        return Margin(math.nan)
    if other is winner:
        return Margin(1.0, 1.0, 1.0)
    ratio = other.cost(objective) / winner.cost(objective)
    a, b = other.width(objective), winner.width(objective)
    if not math.isfinite(a) or not math.isfinite(b):
        return Margin(ratio)
    below = math.hypot(_log_low(a), math.log1p(b))
    above = math.hypot(math.log1p(a), _log_low(b))
    return Margin(ratio, ratio * math.exp(-below), ratio * math.exp(above))


def rank_trials(trials: Sequence[Trial], decision: Decision | None) -> list[Trial]:
    """Those measured: the winner, then by the time that is shown of each, whether it was timed again or not."""
    winner = decision.winner.configuration if decision else None
    return sorted(fastest_first(trials), key=lambda t: t.configuration != winner)


def retime_ratio(trials: Sequence[Trial]) -> float:
    """How many times as long the finalists took when they were timed again: the median of second over first; NaN where
    none was."""
    measured = [t.measurement for t in trials if t.measurement]
    ratios = [m.retimed_ms / m.median_ms for m in measured if m.retimed_ms and m.median_ms]
    return median(ratios) if ratios else math.nan


def _preference(trial: Trial, control: Configuration, objective: str) -> tuple[float | str, ...]:
    occupancy = min((p.occupancy for p in trial.profiles), default=0.0)
    changed = sum(trial.configuration[name] != control[name] for name in control)
    again = 0.0 if objective == KERNEL else trial.time_ms  # a second launch costs that alone
    return again, -occupancy, trial.footprint_bytes, changed, trial.time_ms, trial.configuration.id


@dataclass(frozen=True)
class Minimax:
    """The configuration whose worst slowdown over the workloads is smallest. ``regret`` is that slowdown minus 1."""

    configuration: Configuration
    regret: float


def minimax(times: Mapping[str, Mapping[Configuration, float]]) -> Minimax | None:
    """``times[workload][configuration]`` in ms -> the minimax-regret configuration among those measured on every
    workload, or None when there is none. Regret is time over that workload's best, minus 1."""
    best = {workload: min(row.values(), default=0.0) for workload, row in times.items()}
    if not best or not all(best.values()):
        return None
    common = set.intersection(*(set(row) for row in times.values()))
    worst = [Minimax(c, max(times[w][c] / best[w] - 1 for w in times)) for c in common]
    return min(worst, key=lambda one: (one.regret, one.configuration.id), default=None)
