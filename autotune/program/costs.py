"""What an assignment costs over the whole loop: how often each step runs, and which conversions its forms make due.

An array is converted where a step reads it in a form in which it is not there. What it is there in follows from who
wrote it last and who has read it since, so a run is summed up by its *epochs*: a writer, the readers until the next
write, and how often that happens. A conversion is made once for each other form that the readers of an epoch ask for.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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


_Held = tuple[
    tuple[str, frozenset[Port], frozenset[Port], int], ...
]  # of each array: its memory, and its epoch so far


def traffic(bound: BoundProgram, listed: Iterable[Segment]) -> Traffic:
    """Sum up a run of these segments."""
    runs: Counter[str] = Counter()
    epochs: Counter[Epoch] = Counter()
    touched: dict[str, set[Port]] = {name: set() for name in bound.data}
    held: _Held = tuple((name, frozenset(), frozenset(), 0) for name in bound.data)
    known: dict[tuple[_Held, Segment], tuple[_Held, Counter[Epoch], Counter[str]]] = {}
    for segment in listed:
        key = held, segment
        if key not in known:
            known[key] = _passed(bound, held, segment, touched)
        held, ended, ran = known[key]
        epochs.update(ended)
        runs.update(ran)
    for name, (_, writer, readers, reads) in zip(bound.data, held, strict=True):
        epochs[Epoch(name, writer, readers, reads)] += 1
    kept = {epoch: count for epoch, count in epochs.items() if epoch.readers or epoch.reads}
    return Traffic(dict(runs), kept, {name: frozenset(ports) for name, ports in touched.items()})


def _passed(
    bound: BoundProgram, held: _Held, segment: Segment, touched: Mapping[str, set[Port]]
) -> tuple[_Held, Counter[Epoch], Counter[str]]:
    """What a segment makes of the arrays, the epochs that end in it, and what runs."""
    ended: Counter[Epoch] = Counter()
    ran: Counter[str] = Counter()
    now = dict(zip(bound.data, held, strict=True))
    for event in segment:
        if event.kind == "swap":
            first, second = event.names
            now[first], now[second] = now[second], now[first]
        elif event.kind == "read":
            for name in event.names:
                memory, writer, readers, reads = now[name]
                now[name] = memory, writer, readers, reads + 1
        else:
            (step,) = event.names
            ran[step] += 1
            writers: dict[str, set[Port]] = {}
            for call in bound.calls[step]:
                for data, name in call.arrays.items():
                    port = Port(step, call.place, data)
                    memory, writer, readers, reads = now[name]
                    touched[memory].add(port)
                    if data in call.reads:
                        now[name] = memory, writer, readers | {port}, reads
                    else:
                        writers.setdefault(name, set()).add(port)
            for name, ports in writers.items():
                memory, writer, readers, reads = now[name]
                ended[Epoch(name, writer, readers, reads)] += 1
                now[name] = memory, frozenset(ports), frozenset(), 0
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
    conversion takes, ``read_ms(array, form)`` what it takes the host to read an array, ``nbytes(array, form)`` what
    that takes; ``given`` has the form in which the host gives an array."""

    options: Mapping[str, tuple[Choice, ...]]
    traffic: Traffic
    convert_ms: Callable[[str, Any, Any], float]
    given: Mapping[str, Hashable]
    read_ms: Callable[[str, Any], float] = field(default=lambda _array, _form: 0.0)
    nbytes: Callable[[str, Any], int] = field(default=lambda _array, _form: 0)
    limit_bytes: float = float("inf")

    def form(self, picks: Mapping[str, Choice], port: Port) -> Hashable | None:
        """The form that a port has under ``picks``; None where its call is not taken."""
        return picks[port.step].forms.get(port)

    def written(self, picks: Mapping[str, Choice], epoch: Epoch) -> Hashable:
        """The form in which the epoch's writer leaves its array."""
        found = [form for port in epoch.writer if (form := self.form(picks, port)) is not None]
        return found[0] if found else self.given[epoch.array]


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
    """What a run takes in milliseconds: in all, by step, for conversions and for what the host reads; and in bytes."""

    ms: float
    steps: Mapping[str, float]
    conversions: tuple[Converted, ...]
    reads_ms: float
    nbytes: int
    actions: int  # runs of steps, and conversions


def cost(problem: Problem, picks: Mapping[str, Choice]) -> Cost:
    """What an assignment costs."""
    runs = problem.traffic.runs
    steps = {step: option.ms * runs.get(step, 0) for step, option in picks.items()}
    found: dict[tuple[str, Hashable, Hashable], tuple[int, set[str]]] = {}
    reads_ms = 0.0
    for epoch, count in problem.traffic.epochs.items():
        before = problem.written(picks, epoch)
        if epoch.reads and epoch.writer:
            reads_ms += count * epoch.reads * problem.read_ms(epoch.array, before)
        asked: dict[Hashable, set[str]] = {}
        for port in epoch.readers:
            form = problem.form(picks, port)
            if form is not None and form != before:
                asked.setdefault(form, set()).add(port.step)
        for after, readers in asked.items():
            if not epoch.writer:
                continue  # the host stores what it gives in every form that is asked for
            before_count, before_readers = found.get((epoch.array, before, after), (0, set()))
            found[epoch.array, before, after] = before_count + count, before_readers | readers
    conversions = tuple(
        Converted(
            array, before, after, count, problem.convert_ms(array, before, after), tuple(sorted(readers))
        )
        for (array, before, after), (count, readers) in found.items()
    )
    total = sum(steps.values()) + sum(one.count * one.ms for one in conversions) + reads_ms
    actions = sum(runs.values()) + sum(one.count for one in conversions)
    return Cost(total, steps, conversions, reads_ms, nbytes(problem, picks), actions)


def nbytes(problem: Problem, picks: Mapping[str, Choice]) -> int:
    """What the arrays take in all the forms that they come in, with what is the families' own."""
    total = sum(option.own_bytes for option in picks.values())
    for array, ports in problem.traffic.touched.items():
        forms = {form for port in ports if (form := problem.form(picks, port)) is not None}
        total += sum(problem.nbytes(array, form) for form in forms)
    return total
