"""Every rule of measurement, in one place.

Samples are queued back to back; the median is kept with the relative half-width of its 95 % interval.
Sampling stops when that interval is narrow enough, at a sample or time limit, or when the first samples
prove a configuration hopeless. Samples during which the device was throttled are taken again. Finalists are timed
again, interleaved, so that drift hits all alike.
"""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from autotune.device import Backend, ClockWatch, Execution
from autotune.measure.energy import EnergyMeter
from autotune.measure.figure import TIME, Figure, spread

_NO_LIMIT = 1e9


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How samples are taken. ``target_spread`` is the relative half-width to reach; ``seconds`` bounds the sampling of
    one configuration; a configuration is abandoned when its first samples exceed ``abandon`` times the best median so
    far. ``race`` is for long kernels, where one run says nearly as much as several: a kernel that takes longer than
    ``race`` times the best median, and than ``LONG_MS``, is out after its first run; a nearer one after as many runs as
    show that it is slower (see ``behind_ms``); 0 disables it.
    Samples taken while the device was throttled are retaken up to ``retakes`` times a configuration, after a pause of
    ``pause`` seconds that doubles each time; after that they are kept, with a note.
    ``finalists`` are re-timed in ``rounds`` interleaved rounds of ``round_samples`` samples each, in fewer (at least
    3) if that takes more than ``finalist_seconds`` in all. They are chosen by their ``figure``, which is also measured
    if it is no time; ``clocks`` says at what the device's clocks are locked."""

    target_spread: float = 0.005
    least: int = 10
    most: int = 200
    seconds: float = 0.5
    batch_ms: float = 5.0
    abandon: float = 3.0
    retakes: int = 3
    pause: float = 0.05
    finalists: int = 8
    within: float = 1.25
    rounds: int = 15
    round_samples: int = 3
    finalist_seconds: float = 3.0
    race: float = 0.0
    figure: str = TIME
    clocks: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return asdict(self)

    def fix_samples(self, samples: int) -> "Protocol":
        """This many samples of every configuration, whatever they say, and none timed again: for comparing with
        tuners that do so."""
        unlimited = replace(self, target_spread=0.0, seconds=_NO_LIMIT, abandon=_NO_LIMIT)
        return replace(unlimited, least=samples, most=samples, finalists=0)


CPU = Protocol(
    target_spread=0.02, least=5, most=30, seconds=0.03, batch_ms=10.0, finalists=8, rounds=15, round_samples=2
)

CUDA = Protocol()


_FEW_ROUNDS = 3
_VERIFIED = 3  # runs, which come before the samples
_FLOOR_SAMPLES = 50
LONG_MS = 10.0


@dataclass(frozen=True)
class Samples:
    """``times_ms`` of one configuration; ``abandoned`` when sampling stopped early. ``notes`` say what a reader
    should know of them (throttled); ``dropped_ms`` is device time of runs that are not among them: warming up, and
    samples that were retaken. ``ran`` is False where the verified run stands in for samples, and nothing was run."""

    times_ms: tuple[float, ...]
    abandoned: bool = False
    notes: tuple[str, ...] = ()
    dropped_ms: float = 0.0
    ran: bool = True

    @property
    def median_ms(self) -> float:
        return median(self.times_ms)

    @property
    def spread(self) -> float:
        return spread(self.times_ms)


@dataclass
class _Sampler:
    """Samples of one plan, throttled ones taken again."""

    of: "Timing"
    plan: Callable[[], None]
    retaken: int = 0
    dropped_ms: float = 0.0
    reasons: dict[str, None] = field(default_factory=dict)  # in the order met
    kept: dict[str, None] = field(default_factory=dict)

    def __call__(self, count: int) -> list[float]:
        while True:
            times = self.of.backend.sample(self.plan, count, self.of.cold)
            reason = self.of.watch.find_throttling() if self.of.watch else ""
            if not reason:
                return times
            if self.retaken >= self.of.protocol.retakes:
                self.kept[reason] = None
                return times
            self.reasons[reason] = None
            self.dropped_ms += sum(times)
            time.sleep(self.of.protocol.pause * 2**self.retaken)
            self.retaken += 1

    def warm(self) -> None:
        """One run that does not count, so that the first sample finds what the others find."""
        self.dropped_ms += sum(self.of.backend.sample(self.plan, 1, self.of.cold))

    def samples(self, times: Sequence[float], *, abandoned: bool = False) -> Samples:
        notes = []
        if self.kept:
            notes.append(f"throttled while it was timed ({'; '.join(self.kept)}): its times may be too long")
        elif self.retaken:
            again = "once" if self.retaken == 1 else f"{self.retaken} times"
            notes.append(f"samples were taken again {again}: throttled ({'; '.join(self.reasons)})")
        return Samples(tuple(times), abandoned, tuple(notes), self.dropped_ms)


def hopeless_ms(protocol: Protocol, best_ms: float) -> float:
    """A verified run that takes longer is not timed; of a short kernel, a single sample proves nothing."""
    return min(max(3 * protocol.abandon * best_ms, 1.0), behind_ms(protocol, best_ms, 1))


def behind_ms(protocol: Protocol, best_ms: float, runs: int) -> float:
    """Return the time above which a long kernel is out of the race after ``runs`` runs. The margin for noise shrinks
    with the root of their number, as the error of a median does."""
    if not protocol.race:
        return math.inf
    return max((1 + (protocol.race - 1) / math.sqrt(runs)) * best_ms, LONG_MS)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How plans are timed on one device: by ``protocol``, with caches flushed before each sample where they are
    ``cold``. ``watch`` is asked after each sampling whether the device was throttled."""

    backend: Backend
    protocol: Protocol
    cold: bool
    watch: ClockWatch | None = None

    def measure(
        self, plan: Callable[[], None], first_ms: float, best_ms: float, begun: Sequence[float] = ()
    ) -> Samples:
        """Sample ``plan``. ``first_ms`` is the time of the verified run (its caches and clocks not warmed, so it only
        decides abandonment and batch size), ``best_ms`` the best median so far (infinite when there is none);
        ``begun`` are samples that there are already."""
        protocol = self.protocol
        hopeless = protocol.abandon * best_ms
        if first_ms > min(hopeless_ms(protocol, best_ms), behind_ms(protocol, best_ms, _VERIFIED)):
            return Samples((first_ms,), abandoned=True, ran=False)
        sampler = _Sampler(self, plan)
        if first_ms > hopeless and first_ms > 1.0:
            again = sampler(1)
            if min(first_ms, *again) > hopeless:
                return sampler.samples((*again, first_ms), abandoned=True)
        # Else what the caches hold is a small part of a run.
        if not self.cold and first_ms < protocol.seconds * 1e3:
            sampler.warm()
        times = list(begun)[: protocol.most - 1]
        estimate = first_ms
        while True:
            room = max(1, int(protocol.batch_ms / max(estimate, 1e-3)))
            times += sampler(min(room, protocol.least, protocol.most - len(times)))
            estimate = median(times)
            spent_s = sum(times) / 1000
            is_hopeless = len(times) >= 3 and min(times) > hopeless
            if is_hopeless or estimate > behind_ms(protocol, best_ms, _VERIFIED + len(times)):
                return sampler.samples(times, abandoned=True)
            enough = len(times) >= protocol.least and spread(times) <= protocol.target_spread
            if enough or len(times) >= protocol.most or (spent_s >= protocol.seconds and len(times) >= 3):
                return sampler.samples(times)

    def interleave(
        self,
        plans: Mapping[Any, Callable[[], None]],
        before: Mapping[Any, Callable[[], None]],
        estimate_ms: float,
        few: frozenset[Any] = frozenset(),
        after: Callable[[Any], None] = lambda key: None,
    ) -> dict[Any, Samples]:
        """Time every plan in turn, round after round, forwards and backwards, so that drift favours none. ``before``
        is called untimed ahead of each turn and ``after`` with its key behind it; ``estimate_ms`` is what one sample of
        all plans but ``few`` takes together; those are in the first 3 rounds only, one sample each, and no more than
        twice where that alone takes the seconds of all."""
        protocol = self.protocol
        most = protocol.finalist_seconds * 1e3 / max(estimate_ms, 1e-6)
        samples = max(1, min(protocol.round_samples, int(most / 3)))
        rounds = max(3, min(protocol.rounds, int(most / samples)))
        samplers = {key: _Sampler(self, plan) for key, plan in plans.items()}
        times: dict[Any, list[float]] = {key: [] for key in plans}
        for round_number, key in _turns(plans, rounds):
            long = key in few and sum(times[key]) > protocol.finalist_seconds * 1e3
            if key in few and round_number >= _FEW_ROUNDS - long:
                continue
            before[key]()
            if not (self.cold or long):
                samplers[key].warm()  # the plan before it had the caches
            times[key] += samplers[key](1 if key in few else samples)
            after(key)
        return {key: samplers[key].samples(values) for key, values in times.items()}


def _turns(keys: Collection[Any], rounds: int) -> Iterator[tuple[int, Any]]:
    """Each of ``keys`` in each round, with the round's number: forwards, then backwards, and so on."""
    for number in range(rounds):
        yield from ((number, key) for key in (list(keys) if number % 2 == 0 else list(keys)[::-1]))


# Gives one sample of the figures of an execution, a call of which takes that many milliseconds.
Producer = Callable[[Execution, float], Mapping[str, float]]

# What measures a figure that takes calls of its own, on a device that may not tell it (DeviceError).
PRODUCERS: Mapping[str, Callable[[Backend], Producer]] = {"energy_j": EnergyMeter.open}


def produce(
    producer: Producer, executions: Mapping[Any, Execution], call_ms: Mapping[Any, float], rounds: int = 1
) -> dict[Any, dict[str, Figure]]:
    """The figures of each execution, of a sample in each of ``rounds``, in turn as in ``Timing.interleave``. Raises
    what ``producer`` does."""
    readings: dict[Any, list[Mapping[str, float]]] = {key: [] for key in executions}
    for _, key in _turns(executions, rounds):
        if rounds > 1:
            executions[key].prepare()
        readings[key].append(producer(executions[key], call_ms[key]))
    return {key: _figures(samples) for key, samples in readings.items()}


def _figures(samples: Sequence[Mapping[str, float]]) -> dict[str, Figure]:
    columns = {name: [one[name] for one in samples] for name in samples[0]}
    return {name: Figure(median(values), spread(values)) for name, values in columns.items()}


def floors(backend: Backend) -> dict[str, float]:
    """Milliseconds that nothing can measure less than: ``timer_floor_ms``, a sample of nothing at all, and
    ``floor_ms``, a sample of an empty kernel where the backend has one. Taken as samples are. Raises LaunchError."""
    found = {"timer_floor_ms": median(backend.sample(lambda: None, _FLOOR_SAMPLES, cold=False))}
    if empty := getattr(backend, "floor_ms", None):
        found["floor_ms"] = float(empty())
    return found
