"""In which order a program's steps run: loops unrolled, turn by turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from autotune.program.bound import BoundProgram
from autotune.program.steps import Choose, Either, KernelCall, Read, Repeat, Step, Swap, number

_MOST_EVENTS = 256  # of a segment


@dataclass(frozen=True)
class Event:
    """What happens once: a step is called (``names`` has its name), two arrays change names, or the host reads."""

    kind: Literal["call", "swap", "read"]
    names: tuple[str, ...]


Segment = tuple[Event, ...]


def segments(
    bound: BoundProgram, periods: Mapping[str, int], most_turns: int | None = None
) -> Iterator[Segment]:
    """The events of a run in order, a segment for each turn of an outer loop, cut where it is long and behind what
    the host reads. ``periods`` are how often steps run whose ``every`` is the tuner's to choose; ``most_turns`` ends
    each outer loop early."""
    for step in bound.program.steps:
        if isinstance(step, Repeat):
            count = bound.count(step)
            for turn in range(count if most_turns is None else min(count, most_turns)):
                events = (_events(bound, periods, inner, turn) for inner in step.steps)
                yield from _cut([*chain.from_iterable(events)])
        else:
            yield from _cut([*_events(bound, periods, step, 0)])


def _cut(events: list[Event]) -> Iterator[Segment]:
    begin = 0
    for at, event in enumerate(events):
        if event.kind == "read" or at - begin + 1 == _MOST_EVENTS or at + 1 == len(events):
            yield tuple(events[begin : at + 1])
            begin = at + 1


def _events(bound: BoundProgram, periods: Mapping[str, int], step: Step, turn: int) -> Iterator[Event]:
    """Of one step in one turn of the loop around it."""
    if isinstance(step, Repeat):
        for each in range(bound.count(step)):
            for inner in step.steps:
                yield from _events(bound, periods, inner, each)
    elif isinstance(step, Swap):
        yield Event("swap", (step.first, step.second))
    else:
        period = period_of(bound, step, periods)
        if period and turn % period == 0:
            yield Event("read", tuple(step.arrays)) if isinstance(step, Read) else Event("call", (step.name,))


def period_of(bound: BoundProgram, step: KernelCall | Either | Read, periods: Mapping[str, int]) -> int:
    """In every how many turns the step runs; NEVER where it does not."""
    if isinstance(step.every, Choose):
        return periods.get(getattr(step, "name", ""), step.every.values[0])
    return number(step.every, bound.scalars, "every")


def default_periods(bound: BoundProgram) -> dict[str, int]:
    """How often steps run as declared, where the tuner may choose."""
    return {name: values[0] for name, values in bound.program.chosen_periods.items()}
