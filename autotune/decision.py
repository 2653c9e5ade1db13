"""From trials to a winner: the one module that says what best means.

All configurations whose time is within the noise of the best form the tie set; the tie is broken by
occupancy, then footprint, then closeness to the control (simplicity), then id.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.space import Configuration
from autotune.trial import Trial

__all__ = ["Decision", "Minimax", "accuracy_class", "decide", "decide_classes", "minimax"]

TIE = (
    0.01  # two medians closer than this are a tie even when their intervals are narrower (as cuda-bench does)
)
MOST = 0.05  # and none further apart than this is one, however noisy: more samples are wanted then, not a tie


@dataclass(frozen=True)
class Decision:
    """The outcome of one study. Margins are ratios of times: control over winner, runner-up over winner; NaN when
    the other was not measured; winner, control and runner-up are timed again side by side, so the ratios hold.
    ``runner_up`` is the fastest outside the tie set, or the next in it."""

    winner: Trial
    tie_set: tuple[Trial, ...]
    runner_up: Trial | None
    control: Trial | None
    margin_over_control: float
    margin_over_runner_up: float


def decide(trials: Sequence[Trial], control: Configuration) -> Decision | None:
    """The decision over the measured trials of one study, or None when none was measured."""
    ranked = sorted((t for t in trials if t.measurement), key=lambda t: (time_ms(t), t.configuration.id))
    if not ranked:
        return None
    retimed = [t for t in ranked if t.measurement and t.measurement.retimed_ms]
    fastest = min(ranked, key=lambda t: t.measurement.median_ms if t.measurement else math.inf)
    finalists = retimed if fastest in retimed else ranked  # a record may hold an older sweep's finalists only
    best = finalists[0]
    ties = [t for t in finalists if time_ms(t) <= time_ms(best) * (1 + noise(best, t))]
    winner = min(ties, key=lambda t: _preference(t, control))
    slower = [t for t in finalists if t not in ties and t.configuration != control]
    slower = slower or [t for t in ranked if t not in ties]
    runner_up = min(slower or [t for t in ties if t is not winner], key=time_ms, default=None)
    by_id = {t.configuration: t for t in ranked}
    control_trial = by_id.get(control)
    return Decision(
        winner,
        tuple(sorted(ties, key=lambda t: _preference(t, control))),
        runner_up,
        control_trial,
        _ratio(control_trial, winner),
        _ratio(runner_up, winner),
    )


def accuracy_class(configuration: Mapping[str, object], names: Sequence[str]) -> str:
    """The accuracy class of ``configuration`` when the policies ``names`` decide how exact a result is: their values
    as in a configuration's id, empty for a family that declares none."""
    return ",".join(f"{name}={configuration[name]}" for name in sorted(names))


def decide_classes(
    trials: Sequence[Trial], control: Configuration, names: Sequence[str]
) -> dict[str, Decision]:
    """The decision within each accuracy class that was measured, by class; margins over control hold across them."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.measurement:
            groups.setdefault(accuracy_class(trial.configuration, names), []).append(trial)
    measured = next((t for t in trials if t.measurement and t.configuration == control), None)
    found = {}
    for name, group in sorted(groups.items()):
        decision = decide(group, control)
        assert decision is not None
        found[name] = replace(
            decision, control=measured, margin_over_control=_ratio(measured, decision.winner)
        )
    return found


def time_ms(trial: Trial) -> float:
    """The ranking time in milliseconds; infinite when the trial was not measured."""
    return trial.measurement.time_ms if trial.measurement else math.inf


def noise(a: Trial, b: Trial) -> float:
    """The relative difference below which a and b cannot be told apart: both half-widths, within TIE..MOST."""
    spreads = [t.measurement.spread for t in (a, b) if t.measurement]
    return min(MOST, max(TIE, math.hypot(*spreads)))


def _preference(trial: Trial, control: Configuration) -> tuple[float, int, int, float, str]:
    occupancy = min((p.occupancy for p in trial.profiles), default=0.0)
    footprint = trial.measurement.footprint_bytes if trial.measurement else 0
    changed = sum(trial.configuration[name] != control[name] for name in control)
    return -occupancy, footprint, changed, time_ms(trial), trial.configuration.id


def _ratio(other: Trial | None, winner: Trial) -> float:
    return time_ms(other) / time_ms(winner) if other else math.nan


@dataclass(frozen=True)
class Minimax:
    """The configuration whose worst slowdown over the workloads is smallest. ``regret`` is that slowdown minus 1."""

    configuration: Configuration
    regret: float


def minimax(times: Mapping[str, Mapping[Configuration, float]]) -> Minimax | None:
    """``times[workload][configuration]`` in ms -> the minimax-regret configuration among those measured on every
    workload, or None when there is none. Regret is time over that workload's best, minus 1."""
    if not times or not all(times.values()):
        return None
    best = {workload: min(row.values()) for workload, row in times.items()}
    common = set.intersection(*(set(row) for row in times.values()))
    worst = {c: max(times[w][c] / best[w] - 1 for w in times) for c in common}
    if not worst:
        return None
    chosen = min(worst, key=lambda c: (worst[c], c.id))
    return Minimax(chosen, worst[chosen])
