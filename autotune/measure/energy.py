"""Joules a call: a queue of calls long enough for the device's energy counter, whose power times the time of one.

The calls follow one another without a flush between them, which would take energy of its own, so caches are as the
calls leave them, whatever the workload says of its samples. What a device uses when it does nothing is in the figure:
it is there while a program runs.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.device import Backend, Execution, nvml_handle
from autotune.errors import DeviceError
from autotune.hardware import Device

SECONDS = 0.4  # of a queue whose power is read: four moves of an H200's counter
_LEAD_S = 0.2  # before it: a counter tells of what was used a move ago, and clocks settle
_MOST_S = 3.2  # of a queue for a counter that moves seldom
_LONG_S = 0.5  # long enough that the counter's steps do not matter
_READ_S = 0.002  # between readings while calls are queued
_GRAPH_MS = 1.0  # what is launched at once where a graph can be, so that the host is never waited for
_MOST_IN_GRAPH = 100
_IDLE_S = 0.3
_SOON_S = 0.002  # between readings, short enough to see a move when it happens


@dataclass(frozen=True)
class Reading:
    """``joules`` used at ``seconds``, both since some moment."""

    seconds: float
    joules: float


Counter = Callable[[], Reading]


def energy_counter(device: Device) -> Counter:
    """Reads what ``device`` has used. Raises DeviceError where nothing here tells it."""
    if device.kind == "cpu":
        raise DeviceError(
            f"the energy of {device.name} cannot be read: only a GPU's can; omit --objective energy, or name a "
            "GPU with --device"
        )
    try:
        nvml, gpu = nvml_handle(device.ordinal)

        def read() -> Reading:
            millijoules = int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu))
            return Reading(time.perf_counter(), millijoules / 1e3)

        read()
    except Exception as problem:  # noqa: BLE001 - a missing package, library, device, or right
        raise DeviceError(
            f"the energy of {device.name} cannot be read ({type(problem).__name__}: {problem}): it takes NVML "
            "(pip install nvidia-ml-py) and a GPU from Volta on; omit --objective energy"
        ) from None
    return read


def watts(readings: Sequence[Reading], since: float = 0.0) -> float:
    """Mean power between the first and the last of ``readings`` from ``since`` on at which the counter moved; 0 where
    it did so less than twice.

    A counter stands still for some milliseconds and then moves by what was used meanwhile, so that only between two
    moves time and energy belong together. Where it moved at every reading, all of them do. A move that was seen long
    after the reading before it, as the counter answered late, says when it was no better than that, and is left out.
    """
    if all(now.joules > before.joules for before, now in pairwise(readings)):
        moves = [(one, 0.0) for one in readings]
    else:
        moves = [(b, b.seconds - a.seconds) for a, b in pairwise(readings) if b.joules > a.joules]
    late = [(one, gap) for one, gap in moves if one.seconds >= since]
    used = late if len(late) > 1 else moves
    soon = 2 * min((gap for _, gap in used), default=0.0) + _SOON_S
    seen = [one for one, gap in used if gap <= soon]
    if len(seen) < 2:
        seen = [one for one, _ in used]
    if len(seen) < 2 or seen[-1].seconds <= seen[0].seconds:
        return 0.0
    return (seen[-1].joules - seen[0].joules) / (seen[-1].seconds - seen[0].seconds)


@dataclass(frozen=True)
class EnergyMeter:
    """Takes one sample from a queue of ``seconds``, given an execution and the milliseconds of one call: ``energy_j``
    of a call, the mean ``power_w``, and ``idle_w``, the power while nothing runs (left out where it is 0: the counter
    does not move often enough to know it). Raises DeviceError for a counter that does not move, LaunchError."""

    backend: Backend
    counter: Counter
    idle_w: float
    seconds: float

    @classmethod
    def open(cls, backend: Backend, seconds: float = 0.0) -> "EnergyMeter":
        """Of the backend's device, on which nothing runs, by queues of ``seconds`` (0: as long as its counter takes).
        Raises DeviceError where nothing tells its energy."""
        counter = energy_counter(backend.device)
        return cls(backend, counter, idle_watts(counter), seconds or SECONDS)

    def __call__(self, execution: Execution, call_ms: float) -> dict[str, float]:
        joules, power = self._queue(execution, call_ms)
        idle = {"idle_w": self.idle_w} if self.idle_w else {}
        return {"energy_j": joules, "power_w": power, **idle}

    def _queue(self, execution: Execution, call_ms: float) -> tuple[float, float]:
        """Joules of a call, and watts: of a longer queue where the counter moved too seldom in one of ``seconds``."""
        run, at_once = _bundle_launches(self.backend, execution, call_ms)
        seconds = self.seconds
        while seconds <= max(_MOST_S, self.seconds):
            times = max(1, math.ceil((_LEAD_S + seconds) * 1e3 / (call_ms * at_once)))
            readings, elapsed_ms = _read_while_running(self.backend, run, self.counter, times)
            power = watts(readings, readings[0].seconds + _LEAD_S) or _average_power(readings)
            if power > 0:
                return power * elapsed_ms / 1e3 / (times * at_once), power
            seconds *= 2
        raise DeviceError(
            f"the energy counter of {self.backend.device.name} stood still while it was busy for {seconds / 2:g} s: it "
            "cannot be used here; omit --objective energy"
        )


def idle_watts(counter: Counter) -> float:
    """What the device uses while nothing runs on it; 0 where its counter does not tell so soon."""
    begin = counter()
    readings = [begin]
    while readings[-1].seconds < begin.seconds + _IDLE_S:
        time.sleep(_READ_S)
        readings.append(counter())
    return watts(readings)


def _average_power(readings: Sequence[Reading]) -> float:
    """Return the mean power from the first reading to the last, for calls that the host waits for and that leave no
    readings between; 0 if the time is so short that the counter's steps matter."""
    first, last = readings[0], readings[-1]
    spent_s = last.seconds - first.seconds
    return (last.joules - first.joules) / spent_s if spent_s > _LONG_S else 0.0


def _bundle_launches(
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


def _read_while_running(
    backend: Backend, run: Callable[[], None], counter: Counter, times: int
) -> tuple[list[Reading], float]:
    """Call ``run`` that many ``times``; return the counter's readings meanwhile, and the milliseconds it took."""
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
