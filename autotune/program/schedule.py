"""In which order a program's steps run: loops unrolled, turn by turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from autotune.program.bound import BoundProgram
from autotune.program.steps import NEVER, Choose, Either, KernelCall, Read, Repeat, Step, Swap, number

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
                yield from _cut(
                    [event for inner in step.steps for event in _events(bound, periods, inner, turn)]
                )
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
    elif isinstance(step, KernelCall | Either):
        if _is_due(bound, step, periods.get(step.name), turn):
            yield Event("call", (step.name,))
    elif _is_due(bound, step, None, turn):
        yield Event("read", tuple(step.arrays))


def _is_due(bound: BoundProgram, step: KernelCall | Either | Read, period: int | None, turn: int) -> bool:
    if isinstance(step.every, Choose):
        every = step.every.values[0] if period is None else period
        return every != NEVER and turn % every == 0
    return turn % number(step.every, bound.scalars, "every") == 0


def default_periods(bound: BoundProgram) -> dict[str, int]:
    """How often steps run as declared, where the tuner may choose."""
    return {name: values[0] for name, values in bound.program.chosen_periods.items()}
