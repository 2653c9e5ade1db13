"""What an assignment costs over the whole loop: how often each step runs, and which conversions its forms make due.

An array is converted where a step reads it in a form in which it is not there. What it is there in follows from who
wrote it last and who has read it since, so a run is summed up by its *epochs*: a writer, the readers until the next
write, and how often that happens. A conversion is made once for each other form that the readers of an epoch ask for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from autotune.program.bound import BoundProgram
from autotune.program.schedule import Segment


@dataclass(frozen=True, order=True)
class Port:
    """An array of a call: the step, which of its calls, and what the family calls the array."""

    step: str
    place: int
    data: str


@dataclass(frozen=True)
class Epoch:
    """One content of an array: ``writer`` has the port of each call that the writing step may take, and is empty for
    what the host gave; ``readers`` read it, ``reads`` times the host."""

    array: str
    writer: frozenset[Port]
    readers: frozenset[Port]
    reads: int = 0


@dataclass(frozen=True)
class Traffic:
    """What happens in a run: ``runs`` of each step, ``epochs`` with how often, and who touches the memory of which
    array (which follows its content through swaps)."""

    runs: Mapping[str, int]
    epochs: Mapping[Epoch, int]
    touched: Mapping[str, frozenset[Port]]


class _Now(NamedTuple):
    """An array in the course of a run: its memory, and its epoch so far."""

    memory: str
    writer: frozenset[Port] = frozenset()
    readers: frozenset[Port] = frozenset()
    reads: int = 0

    def epoch(self, array: str) -> Epoch:
        return Epoch(array, self.writer, self.readers, self.reads)


_Passed = tuple[tuple[_Now, ...], Counter[Epoch], Counter[str]]


def traffic(bound: BoundProgram, listed: Iterable[Segment]) -> Traffic:
    """Sum up a run of these segments."""
    runs, epochs, touched = Counter[str](), Counter[Epoch](), {name: set[Port]() for name in bound.data}
    held = tuple(_Now(name) for name in bound.data)
    known: dict[tuple[tuple[_Now, ...], Segment], _Passed] = {}
    for segment in listed:
        key = held, segment
        if key not in known:
            known[key] = _pass_segment(bound, held, segment, touched)
        held, ended, ran = known[key]
        epochs.update(ended)
        runs.update(ran)
    epochs.update(now.epoch(name) for name, now in zip(bound.data, held, strict=True))
    kept = {epoch: count for epoch, count in epochs.items() if epoch.readers or epoch.reads}
    return Traffic(dict(runs), kept, {name: frozenset(ports) for name, ports in touched.items()})


def _pass_segment(
    bound: BoundProgram, held: tuple[_Now, ...], segment: Segment, touched: Mapping[str, set[Port]]
) -> _Passed:
    """What a segment makes of the arrays, the epochs that end in it, and what runs."""
    ended, ran, now = Counter[Epoch](), Counter[str](), dict(zip(bound.data, held, strict=True))
    for event in segment:
        if event.kind == "swap":
            first, second = event.names
            now[first], now[second] = now[second], now[first]
        elif event.kind == "read":
            for name in event.names:
                now[name] = now[name]._replace(reads=now[name].reads + 1)
        else:
            (step,) = event.names
            ran[step] += 1
            writers: dict[str, set[Port]] = {}
            for call in bound.calls[step]:
                for data, name in call.arrays.items():
                    port = Port(step, call.place, data)
                    touched[now[name].memory].add(port)
                    if data in call.reads:
                        now[name] = now[name]._replace(readers=now[name].readers | {port})
                    else:
                        writers.setdefault(name, set()).add(port)
            for name, ports in writers.items():
                ended[now[name].epoch(name)] += 1
                now[name] = _Now(now[name].memory, frozenset(ports))
    return tuple(now.values()), ended, ran


@dataclass(frozen=True)
class Choice:
    """What a step may run: its time, the form of each of its ports, and what its own arrays take. ``of`` is what it
    stands for."""

    ms: float
    forms: Mapping[Port, Any]
    own_bytes: int = 0
    of: Any = None


@dataclass(frozen=True)
class Problem:
    """The choice to be made: ``options`` of each step, over ``traffic``. ``convert_ms(array, before, after)`` is what a
    conversion takes, ``read_ms(array, form)`` what it takes the host to read an array, ``nbytes(array, form)`` its
    size."""

    options: Mapping[str, tuple[Choice, ...]]
    traffic: Traffic
    convert_ms: Callable[[str, Any, Any], float]
    read_ms: Callable[[str, Any], float] = field(default=lambda _array, _form: 0.0)
    nbytes: Callable[[str, Any], int] = field(default=lambda _array, _form: 0)
    limit_bytes: float = float("inf")


@dataclass(frozen=True)
class Converted:
    """A conversion that an assignment makes due ``count`` times, for ``readers``."""

    array: str
    before: Any
    after: Any
    count: int
    ms: float  # each
    readers: tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """What a run takes: in milliseconds with what the host reads, in bytes, and in ``actions``, runs of steps and
    conversions."""

    ms: float
    conversions: tuple[Converted, ...]
    nbytes: int
    actions: int


def cost(problem: Problem, picks: Mapping[str, Choice]) -> Cost:
    """What an assignment costs."""
    runs = problem.traffic.runs
    total = sum(one.ms * runs.get(step, 0) for step, one in picks.items())
    moves: dict[tuple[str, Any, Any], tuple[int, set[str]]] = {}
    for epoch, count in problem.traffic.epochs.items():
        if not epoch.writer:
            continue  # the host stores what it gives in every form that is asked for
        (before,) = {one for port in epoch.writer if (one := picks[port.step].forms.get(port)) is not None}
        total += count * epoch.reads * problem.read_ms(epoch.array, before) if epoch.reads else 0.0
        asked: dict[Any, set[str]] = {}
        for port in epoch.readers:
            asked.setdefault(picks[port.step].forms.get(port), set()).add(port.step)
        for after in asked.keys() - {None, before}:
            many, readers = moves.get((epoch.array, before, after), (0, set()))
            moves[epoch.array, before, after] = many + count, readers | asked[after]
    made = ((key, count, tuple(sorted(readers))) for key, (count, readers) in moves.items())
    conversions = tuple(Converted(*key, count, problem.convert_ms(*key), names) for key, count, names in made)
    total += sum(one.count * one.ms for one in conversions)
    nbytes = sum(one.own_bytes for one in picks.values())
    for array, ports in problem.traffic.touched.items():
        forms = {picks[port.step].forms.get(port) for port in ports} - {None}
        nbytes += sum(problem.nbytes(array, form) for form in forms)
    return Cost(total, conversions, nbytes, sum(runs.values()) + sum(one.count for one in conversions))
