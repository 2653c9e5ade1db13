"""Every rule of measurement, in one place.

Samples are queued back to back; the median is kept with the relative half-width of its 95 % interval.
Sampling stops when that interval is narrow enough, at a sample or time limit, or when the first samples
prove a configuration hopeless. Finalists are timed again, interleaved, so that drift hits all alike.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autotune.backends import Backend

__all__ = ["Protocol", "Samples", "interleave", "measure", "median", "spread"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """``target_spread`` is the relative half-width aimed at; ``seconds`` bounds the sampling of one configuration;
    a configuration is abandoned when its first samples exceed ``abandon`` times the best median so far.
    ``finalists`` are re-timed in ``rounds`` interleaved rounds of ``round_samples`` samples each, in fewer (at least
    3) where that would take more than ``finalist_seconds`` in all."""

    target_spread: float = 0.005
    least: int = 10
    most: int = 200
    seconds: float = 0.5
    batch_ms: float = 5.0
    abandon: float = 3.0
    finalists: int = 8
    within: float = 1.25
    rounds: int = 15
    round_samples: int = 3
    finalist_seconds: float = 3.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


CPU = Protocol(
    target_spread=0.02, least=5, most=30, seconds=0.03, batch_ms=10.0, finalists=8, rounds=15, round_samples=2
)
CUDA = Protocol()

_FEW_ROUNDS = 3


@dataclass(frozen=True)
class Samples:
    """``times_ms`` of one configuration; ``abandoned`` when sampling stopped early."""

    times_ms: tuple[float, ...]
    abandoned: bool = False

    @property
    def median_ms(self) -> float:
        return median(self.times_ms)

    @property
    def spread(self) -> float:
        return spread(self.times_ms)


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values: Sequence[float]) -> float:
    """Relative half-width of the median's 95 % interval from order statistics: ranks n/2 -+ 0.98 sqrt(n)
    (Le Boudec, Performance Evaluation, section 2.2). With fewer than 6 samples, half the range; a single one
    says nothing, which is 1."""
    ordered, n = sorted(values), len(values)
    if n < 2:
        return 1.0
    low, high = 0, n - 1
    if n >= 6:
        low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)) - 1)
        high = min(n - 1, math.ceil(n / 2 + 1 + 0.98 * math.sqrt(n)) - 1)
    middle = median(ordered)
    return (ordered[high] - ordered[low]) / 2 / middle if middle > 0 else 0.0


def measure(
    backend: Backend,
    plan: Callable[[], None],
    protocol: Protocol,
    *,
    cold: bool,
    first_ms: float,
    best_ms: float,
) -> Samples:
    """Sample ``plan``. ``first_ms`` is the time of the verified run (its caches and clocks not warmed, so it only
    decides abandonment and batch size), ``best_ms`` the best median so far (infinite when there is none)."""
    hopeless = protocol.abandon * best_ms
    if first_ms > 3 * hopeless and first_ms > 1.0:  # a single sample of a short kernel proves nothing
        return Samples((first_ms,), abandoned=True)
    if first_ms > hopeless and first_ms > 1.0:
        again = backend.sample(plan, 1, cold)
        if min(first_ms, *again) > hopeless:
            return Samples((*again, first_ms), abandoned=True)
    times: list[float] = []
    estimate = first_ms
    while True:
        room = max(1, int(protocol.batch_ms / max(estimate, 1e-3)))
        times += backend.sample(plan, min(room, protocol.least, protocol.most - len(times)), cold)
        estimate = median(times)
        spent_s = sum(times) / 1000
        if len(times) >= 3 and min(times) > hopeless:
            return Samples(tuple(times), abandoned=True)
        enough = len(times) >= protocol.least and spread(times) <= protocol.target_spread
        if enough or len(times) >= protocol.most or (spent_s >= protocol.seconds and len(times) >= 3):
            return Samples(tuple(times))


def interleave(
    backend: Backend,
    plans: Mapping[Any, Callable[[], None]],
    protocol: Protocol,
    *,
    cold: bool,
    before: Mapping[Any, Callable[[], None]],
    estimate_ms: float,
    few: frozenset[Any] = frozenset(),
) -> dict[Any, Samples]:
    """Time every plan in turn, round after round, forwards and backwards, so that drift favours none. ``before``
    is called untimed ahead of each turn; ``estimate_ms`` is what one sample of all plans but ``few`` takes
    together; those are in the first 3 rounds only, one sample each."""
    most = protocol.finalist_seconds * 1e3 / max(estimate_ms, 1e-6)
    samples = max(1, min(protocol.round_samples, int(most / 3)))
    rounds = max(3, min(protocol.rounds, int(most / samples)))
    times: dict[Any, list[float]] = {key: [] for key in plans}
    for round_number in range(rounds):
        order = list(plans) if round_number % 2 == 0 else list(plans)[::-1]
        for key in order:
            if key in few and round_number >= _FEW_ROUNDS:
                continue
            before[key]()
            times[key] += backend.sample(plans[key], 1 if key in few else samples, cold)
    return {key: Samples(tuple(values)) for key, values in times.items()}
