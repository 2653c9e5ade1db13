"""Joules a call: a queue of calls long enough for the device's energy counter, whose power times the time of one.

The calls follow one another without a flush between them, which would take energy of its own, so caches are as the
calls leave them, whatever the workload says of its samples. What a device uses when it does nothing is in the figure:
it is there while a program runs.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.device import Backend, Counter, Execution, Reading, watts
from autotune.errors import DeviceError
from autotune.measure.sampling import median, spread

ENERGY_SECONDS = 0.4  # of a queue whose power is read: four moves of an H200's counter
_LEAD_S = 0.2  # before it: a counter tells of what was used a move ago, and clocks settle
_MOST_S = 3.2  # of a queue for a counter that moves seldom
_LONG_S = 0.5  # beside which the counter's steps do not matter
_ROUNDS = 5
_READ_S = 0.002  # between readings while calls are queued
_GRAPH_MS = 1.0  # what is launched at once where a graph can be, so that the host is never waited for
_MOST_IN_GRAPH = 100
_IDLE_S = 0.3


@dataclass(frozen=True)
class Energy:
    """``joules`` of a call and ``watts`` meanwhile, of each queue."""

    joules: tuple[float, ...]
    watts: tuple[float, ...]

    @property
    def median_j(self) -> float:
        return median(self.joules)

    @property
    def spread(self) -> float:
        """As ``sampling.spread``, of the queues."""
        return spread(self.joules)

    @property
    def median_w(self) -> float:
        return median(self.watts)


def call_energy(
    backend: Backend, execution: Execution, counter: Counter, seconds: float, call_ms: float
) -> Energy:
    """Of one queue of ``seconds``, of calls that take about ``call_ms``. Raises DeviceError for a counter that stands
    still, LaunchError."""
    return _together([_queue(backend, execution, counter, seconds, call_ms)])


def call_energies(
    backend: Backend, executions: Mapping[Any, Execution], counter: Counter, seconds: float,
    call_ms: Mapping[Any, float],
) -> dict[Any, Energy]:  # fmt: skip
    """Of five queues each, in turn, forwards and backwards, so that drift hits all alike. Raises as ``call_energy``."""
    found: dict[Any, list[tuple[float, float]]] = {key: [] for key in executions}
    for round_number in range(_ROUNDS):
        order = list(executions) if round_number % 2 == 0 else list(executions)[::-1]
        for key in order:
            executions[key].prepare()
            found[key].append(_queue(backend, executions[key], counter, seconds, call_ms[key]))
    return {key: _together(queues) for key, queues in found.items()}


def idle_watts(counter: Counter) -> float:
    """What the device uses while nothing runs on it; 0 where its counter does not tell so soon."""
    begin = counter()
    readings = [begin]
    while readings[-1].seconds < begin.seconds + _IDLE_S:
        time.sleep(_READ_S)
        readings.append(counter())
    return watts(readings)


def _together(queues: Iterable[tuple[float, float]]) -> Energy:
    joules, power = zip(*queues, strict=True)
    return Energy(joules, power)


def _queue(
    backend: Backend, execution: Execution, counter: Counter, seconds: float, call_ms: float
) -> tuple[float, float]:
    """Joules of a call, and watts: of a longer queue where the counter moved too seldom in one of ``seconds``."""
    run, at_once = _launched_together(backend, execution, call_ms)
    while True:
        times = max(1, math.ceil((_LEAD_S + seconds) * 1e3 / (call_ms * at_once)))
        readings, elapsed_ms = _watched(backend, run, counter, times)
        power = watts(readings, readings[0].seconds + _LEAD_S) or _between_ends(readings)
        if power > 0:
            return power * elapsed_ms / 1e3 / (times * at_once), power
        seconds *= 2
        if seconds > _MOST_S:
            raise DeviceError(
                f"the energy counter of {backend.device.name} stood still while it was busy for {seconds / 2:g} s: it "
                "tells nothing here; leave --objective energy out"
            )


def _between_ends(readings: Sequence[Reading]) -> float:
    """Mean power from the first reading to the last, where so much time lies between that it does not matter when the
    counter moved: calls that the host waits for leave none between."""
    first, last = readings[0], readings[-1]
    spent_s = last.seconds - first.seconds
    return (last.joules - first.joules) / spent_s if spent_s > _LONG_S else 0.0


def _launched_together(
    backend: Backend, execution: Execution, call_ms: float
) -> tuple[Callable[[], None], int]:
    """Calls of a millisecond together, as one graph; one call where the family drives the launches itself."""
    count = min(_MOST_IN_GRAPH, math.ceil(_GRAPH_MS / max(call_ms, 1e-6)))
    if execution.has_own_plan or count < 2:
        return execution.run, 1

    def calls() -> None:
        for _ in range(count):
            execution.run()

    return backend.record(calls), count


def _watched(
    backend: Backend, run: Callable[[], None], counter: Counter, times: int
) -> tuple[list[Reading], float]:
    """The counter's readings while ``run`` is done so many ``times``, and the milliseconds that took."""
    backend.synchronize()
    readings = [counter()]
    begin, due = backend.mark(), time.perf_counter() + _READ_S
    for _ in range(times):
        run()
        if time.perf_counter() > due:
            readings.append(counter())
            due = time.perf_counter() + _READ_S
    end = backend.mark()
    while (elapsed_ms := backend.between_ms(begin, end)) is None:
        readings.append(counter())
    readings.append(counter())
    return readings, elapsed_ms
