"""Orders that age: how the loop slows down behind a step that puts things in order, and how often that step pays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean

from autotune.program.candidates import Assignment
from autotune.program.machine import Machine
from autotune.program.record import Record
from autotune.program.schedule import segments
from autotune.program.steps import NEVER
from autotune.program.survey import time_segments

_OLDEST = 200  # turns behind the step that are timed at most


@dataclass(frozen=True, kw_only=True)
class Aged:
    """The gain of a step that restores an order: ``turn_ms`` of a turn without it by its age, ``step_ms`` of the step,
    and a turn's time for each period that may be chosen. ``pays_after`` is the turn by which the step has paid for
    itself, compared with the oldest order that was measured; 0 if it never does."""

    step: str
    step_ms: float
    turn_ms: tuple[float, ...]
    by_period: Mapping[int, float]
    chosen: int
    pays_after: int


def measure_aging(
    machine: Machine, assignment: Assignment, step: str, values: Sequence[int], record: Record
) -> Aged:
    """Run the step once, and time the turns behind it; of ``values`` the one with the least time a turn is chosen."""
    told = {"kind": "aging", "step": step, "assignment": assignment.id, "values": list(values)}
    if not (known := record.find(**told)):
        step_ms, turns = _time_segments(machine, assignment, step, min(2 * max(values), _OLDEST))
        record.add({**told, "step_ms": step_ms, "turn_ms": [float(f"{ms:.5g}") for ms in turns]})
        known = record.find(**told)
    return judge(step, known[0]["step_ms"], known[0]["turn_ms"], values)


def _time_segments(
    machine: Machine, assignment: Assignment, step: str, oldest: int
) -> tuple[float, list[float]]:
    once = replace(assignment, periods={**assignment.periods, step: 1_000_000})
    listed = list(segments(machine.bound, once.periods, oldest))
    machine.start()
    runs = time_segments(machine, once, listed, 1)
    of_step = [ms for run in runs for action, ms in run if action.kind == "call" and action.name == step]
    turns = [sum(ms for action, ms in run if action.name != step) for run in runs]
    return (of_step[0] if of_step else 0.0), turns


def judge(step: str, step_ms: float, turns: Sequence[float], values: Sequence[int]) -> Aged:
    """What the times say. A turn that is older than any that was timed takes what the oldest quarter took."""
    old = fmean(turns[-max(1, len(turns) // 4) :])

    def turn_ms(period: int) -> float:
        if period == NEVER:
            return old
        seen = turns[:period]
        return (step_ms + sum(seen) + old * (period - len(seen))) / period

    by_period = {period: turn_ms(period) for period in values}
    gained = accumulate(old - ms for ms in turns)
    pays_after = next((age for age, ms in enumerate(gained, 1) if ms >= step_ms > 0), 0)
    return Aged(
        step=step, step_ms=step_ms, turn_ms=tuple(turns), by_period=by_period,
        chosen=min(values, key=lambda period: by_period[period]), pays_after=pays_after,
    )  # fmt: skip
