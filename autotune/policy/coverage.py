"""Which sizes to sweep next, so that what selection loses over a range of inputs falls fastest.

First the middle of the range and its corners, opposite ones in turn. When entries are enough to predict from, the
place is taken where the prediction is expected to lose most: the expected improvement (Mockus, On Bayesian methods for
seeking the extremum, 1974) of any other configuration over the one that it takes there. Places are the points of a
Halton sequence (Halton, Algorithm 247, 1964), which leave no large gap however many are looked at.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.policy.features import Features
from autotune.policy.prediction import Predicted, Taught

Point = Mapping[str, int]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
MOST_NUMBERS = len(_PRIMES)
_LOOKED_AT = 200  # places
_SHARE = 0.95  # of the places, that a promise is about
_FIRST = 6  # sizes, before predictions say where to go


@dataclass(frozen=True)
class Range:
    """Numbers that make an input, each from low to high, on logarithmic scales; ``holds`` says which points count."""

    numbers: Mapping[str, tuple[int, int]]
    holds: Callable[[Point], bool] = lambda _point: True

    def at(self, shares: Sequence[float]) -> dict[str, int]:
        """The point so far between low and high."""
        return {
            name: round(low * (high / low) ** share)
            for (name, (low, high)), share in zip(self.numbers.items(), shares, strict=True)
        }

    def corners(self) -> Iterator[dict[str, int]]:
        """The middle, then each low with each high, opposite ones in turn; one that does not count is moved towards the
        middle until it does."""
        sides = len(self.numbers)
        low = list(itertools.product((0.0, 1.0), repeat=sides))[: 2 ** (sides - 1)]
        ends = [(0.5,) * sides, *(e for one in low for e in (one, tuple(1 - share for share in one)))]
        for one in ends:
            pulled = (self.at([end + (0.5 - end) * step / 20 for end in one]) for step in range(21))
            if (found := next(filter(self.holds, pulled), None)) is not None:
                yield found

    def inner(self) -> Iterator[dict[str, int]]:
        """Points that leave no large gap, as far as they count, without end."""
        primes = _PRIMES[: len(self.numbers)]
        places = (
            self.at([_radical_inverse(index, prime) for prime in primes]) for index in itertools.count(1)
        )
        return (point for point in places if self.holds(point))


def _radical_inverse(index: int, base: int) -> float:
    share, scale = 0.0, 1.0 / base
    while index:
        share, index, scale = share + index % base * scale, index // base, scale / base
    return share


def next_point(
    over: Range, swept: Sequence[Point], taught: Taught | None, features: Callable[[Point], Features]
) -> dict[str, int] | None:
    """Where to sweep next; None where every place that is looked at was swept. ``features`` are those of an input."""
    first = [point for point in over.corners() if point not in swept]
    if taught is None or (len(swept) < _FIRST and first):
        return first[0] if first else next((p for p in _looked_at(over) if p not in swept), None)
    places = [point for point in (*first, *_looked_at(over)) if point not in swept]
    return max(places, key=lambda point: expected_regret(taught.predicted(features(point))), default=None)


def promised(over: Range, taught: Taught, features: Callable[[Point], Features]) -> float:
    """What 95 % of the range should keep to: the expected regret there of what would be taken."""
    found = sorted(expected_regret(taught.predicted(features(point))) for point in _looked_at(over))
    return found[min(len(found) - 1, math.ceil(_SHARE * len(found)) - 1)]


def _looked_at(over: Range) -> Iterator[dict[str, int]]:
    return itertools.islice(over.inner(), _LOOKED_AT)


def expected_regret(found: Sequence[Predicted]) -> float:
    """What the first of ``found`` is expected to lose against the one of the others that is the greatest risk; 0 for
    nothing. Errors are taken to be normal on a logarithmic scale and independent."""
    if not found:
        return 0.0
    first = found[0]
    return max((_improvement(first, other) for other in found[1:]), default=0.0)


def _improvement(first: Predicted, other: Predicted) -> float:
    gap, spread = math.log(other.ms / first.ms), math.hypot(first.spread, other.spread)
    if spread <= 0:
        return 0.0
    away = gap / spread
    density = math.exp(-away * away / 2) / math.sqrt(2 * math.pi)
    return spread * density - gap * 0.5 * math.erfc(away / math.sqrt(2))
