"""What each kept configuration should take on an input that nobody measured, from the entries' times; and which sizes
to sweep next, so that what is lost between entries falls fastest.

Inputs are alike by the distance of their features. Logarithms of times are smooth functions of the logarithms of the
features, but for steps: a Gaussian process through what was measured, with a straight line under it (Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, section 2.7), one for each configuration's time over the best
of its entry and one for the best. Between entries it interpolates, and far from them the straight line remains. With
each entry left out in turn it is compared with what the nearest entry says; that also chooses how far it reaches
(``fit_shape``).

A plan of sweeps begins with the middle of the range and its corners, opposite ones in turn. When entries are enough to
predict from, the place is taken where the prediction is expected to lose most: the expected improvement of any other
configuration over the one that it takes there. Places are the points of a Halton sequence (Halton, Algorithm 247,
1964), which leave no large gap however many are looked at.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Expression, Value
from autotune.errors import FamilyError
from autotune.policy.file import Entry, PolicyFile, Prediction
from autotune.record import TIE
from autotune.search import GaussianProcess, compute_expected_improvement

Features = Mapping[str, float]
Point = Mapping[str, int]
Floats = NDArray[np.float64]
Rows = Mapping[str, Mapping[Configuration, float]]

_FAR = math.log(1000.0)  # the distance of a feature that only one of two inputs has

REACH = 8.0  # of the process, in units of e: entries a factor of 3,000 apart still know of one another
_ROUGH = 0.02  # what a time differs from a smooth function
_SLOPE = 1.0  # of the line under it, for a feature that is e times as large
_LEVEL = 10.0  # anything, as far as the process knows beforehand
_LEAST = 1e-6  # variance, however alike all times are

# Leave-one-out chooses one of these: the reach, and the weight of a multiprocessor's blocks relative to a feature.
_SHAPES = tuple((reach, counts) for reach in (REACH, 2.0, 0.7) for counts in (0.0, 2.0))

KEPT_REGRET = 0.005  # of the best kept configuration on any entry, if MOST_KEPT are enough for it
MOST_KEPT = 32

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
_LOOKED_AT = 200  # places
_SHARE = 0.95  # of the places, that a promise is about
_FIRST = 6  # sizes, before predictions say where to go


# -- what makes two inputs alike ----------------------------------------------------------------------------


def feature_values(declared: Mapping[str, Expression], numbers: Mapping[str, Value]) -> dict[str, float]:
    """The declared features with ``numbers`` (extents and scalars) bound. One that has no value there (a
    division by zero) is left out."""
    values: dict[str, float] = {}
    for name, expression in declared.items():
        try:
            value = float(expression.evaluate(numbers))
        except (FamilyError, TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            values[name] = value
    return values


def distance(a: Features, b: Features) -> float:
    """Euclidean distance of the logarithms; a feature that only one side has, or that is not above 0 on one side only,
    counts as a factor of 1000."""
    total = 0.0
    for name in sorted(a.keys() | b.keys()):  # a sum of floats depends on their order
        x, y = a.get(name), b.get(name)
        apart = 0.0
        if x is not None and y is not None and x > 0 and y > 0:
            apart = math.log(x / y)
        elif x != y:
            apart = _FAR
        total += apart**2
    return math.sqrt(total)


def rank_by_distance(known: Mapping[str, Features], asked: Features) -> list[str]:
    """The names in ``known``, nearest first; equally near ones by name, where the last bits of a logarithm, which are
    not the same on every processor, count for nothing."""
    return sorted(known, key=lambda name: (round(distance(known[name], asked), 9), name))


# -- what a configuration should take ------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """``ms`` is what a configuration should take; ``spread`` the relative standard deviation of that over the others'
    (0.05: two thirds of all such predictions are less than 5 % off)."""

    configuration: Configuration
    ms: float
    spread: float


@dataclass(frozen=True)
class Whereabouts:
    """An input's place among the entries: the ``nearest`` one and the ``distance`` to it; ``beyond`` are the features
    below or above everything measured, with the smallest and the largest measured value."""

    nearest: str
    distance: float
    beyond: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Taught:
    """The data for predictions: the entries' ``features`` (the same ones for all, above 0) and ``rows``, the times of
    the configurations on them in ms; a configuration need not have been measured on every entry. ``blocks`` are the
    numbers of blocks there: a device with ``multiprocessors`` runs them in turns, so that a time rises in a step where
    the most loaded multiprocessor gets one block more. Either may be unknown. ``reach`` is the distance over which
    entries are correlated, ``load_counts`` the weight of a multiprocessor's blocks relative to a feature. ``winners``
    are the entries' own, if known."""

    features: Mapping[str, Features]
    rows: Rows
    blocks: Mapping[str, Mapping[Configuration, int]] = field(default_factory=dict)
    multiprocessors: int = 0
    reach: float = REACH
    load_counts: float = 0.0
    winners: Mapping[str, Configuration] = field(default_factory=dict)

    def predict(self, asked: Features, blocks: Mapping[Configuration, int] | None = None) -> list[Predicted]:
        """Predict the time of each configuration on an input with the features ``asked`` and ``blocks`` blocks. Those
        measured on the nearest entry come before the others, since these were seen farther away only; then the fastest
        first; but among those less than 1 % behind it (``record.TIE``) the winner of the nearest entry. Empty if a
        feature is missing, or is not above 0."""
        names = sorted(next(iter(self.features.values()), {}))
        if not names or any(asked.get(name, 0.0) <= 0 for name in names):
            return []
        configurations = sorted({c for row in self.rows.values() for c in row}, key=lambda c: c.id)
        known = np.log([[self.features[entry][name] for name in names] for entry in self.rows])
        times = np.log([[row.get(c, np.nan) for c in configurations] for row in self.rows.values()])
        point = np.log([asked[name] for name in names])
        best = np.nanmin(times, axis=1)
        loads = self._loads(configurations, blocks or {})
        ratios, spreads = process(known, times - best[:, None], point, self.reach, loads)
        level, _ = process(known, best[:, None], point)
        times_ms = (math.exp(min(level[0] + ratio, 700.0)) for ratio in ratios)
        rounded = (float(f"{ms:.5g}") for ms in times_ms)  # the same on any processor
        return self._settle(list(map(Predicted, configurations, rounded, spreads)), asked)

    def _settle(self, found: Sequence[Predicted], asked: Features) -> list[Predicted]:
        ranks: dict[Configuration, int] = {}
        nearest_first = rank_by_distance(self.features, asked)
        for rank, entry in enumerate(nearest_first):
            if entry in self.winners:
                ranks.setdefault(self.winners[entry], rank)
        near = next((self.rows[entry] for entry in nearest_first if entry in self.rows), {})
        ahead = min((one.ms for one in found if one.configuration in near), default=0.0) * (1 + TIE)

        def key(one: Predicted) -> tuple[bool, bool, int, float, str]:
            is_far, is_behind = one.configuration not in near, one.ms > ahead
            rank = 0 if is_behind or is_far else ranks.get(one.configuration, len(self.features))
            return is_far, is_behind, rank, one.ms, one.configuration.id

        return sorted(found, key=key)

    def _loads(
        self, configurations: Sequence[Configuration], blocks: Mapping[Configuration, int]
    ) -> Floats | None:
        """The logarithm of how many blocks the most loaded multiprocessor gets, a row an entry and one for ``blocks``;
        0 in the columns of configurations of which it is not known everywhere that they were measured."""
        if not self.multiprocessors or not self.load_counts:
            return None
        counts = [self.blocks.get(entry, {}) for entry in self.rows]
        loads = np.zeros((len(counts) + 1, len(configurations)))
        for column, configuration in enumerate(configurations):
            seen = [one.get(configuration, 0) for one in (*counts, blocks)]
            needed = [*(configuration in row for row in self.rows.values()), True]
            if all(seen[i] > 0 for i, is_needed in enumerate(needed) if is_needed):
                loads[:, column] = [math.log(max(1, math.ceil(n / self.multiprocessors))) for n in seen]
        return self.load_counts * loads

    def place(self, asked: Features) -> Whereabouts:
        """Return the place of ``asked`` among the entries."""
        away, nearest = min((distance(known, asked), name) for name, known in self.features.items())
        columns = {n: [f[n] for f in self.features.values()] for n in self.features[nearest]}
        ends = {name: (min(values), max(values)) for name, values in columns.items()}
        beyond = {n: (low, high) for n, (low, high) in ends.items() if not low <= asked.get(n, low) <= high}
        return Whereabouts(nearest, away, beyond)

    def leave_out(self, entry: str) -> "Taught":
        """As if that entry had not been measured."""
        return replace(
            self,
            features={name: f for name, f in self.features.items() if name != entry},
            rows={name: row for name, row in self.rows.items() if name != entry},
            winners={name: c for name, c in self.winners.items() if name != entry},
        )


def learn_from_times(
    rule: Prediction,
    entries: Mapping[str, Entry],
    features: Mapping[str, Features],
    known: Callable[[Mapping[str, Any]], Configuration | None] = Configuration,
) -> Taught:
    """What the times of the kept configurations on ``entries`` tell, by the ``features`` of some of them; ``known``
    makes a configuration of its values, None of those that are no more."""
    kept = {name: c for name, one in rule.kept.items() if (c := known(one.configuration))}
    rows = {n: {kept[at]: ms for at, ms in entries[n].times_ms.items() if at in kept} for n in features}
    rows = {name: row for name, row in rows.items() if row}
    blocks = {n: {kept[at]: count for at, count in entries[n].blocks.items() if at in kept} for n in rows}
    return Taught(
        {name: features[name] for name in rows}, rows, blocks, rule.multiprocessors, rule.reach, rule.load_counts,
        {name: won for name in rows if (won := known(entries[name].configuration))},
    )  # fmt: skip


def learn_at_points(file: PolicyFile | None, points: Mapping[str, Point]) -> Taught | None:
    """What ``file`` knows of the entries at ``points``, by the numbers there; None where that is too little."""
    if file is None or file.prediction is None:
        return None
    rule = replace(file.prediction, reach=REACH, load_counts=0.0)  # which are for the declared features
    found = learn_from_times(
        rule, file.entries, {n: point for n, point in points.items() if n in file.entries}
    )
    return found if len(found.rows) > 1 else None


@dataclass(frozen=True)
class _Smooth:
    """Of a line through the middle, and of Matern's process of order 3/2 about it."""

    reach: float

    def compute_covariance(self, rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
        away = math.sqrt(3) / self.reach * np.sqrt(((rows[:, None] - others[None]) ** 2).sum(axis=2))
        about: Floats = (1 + away) * np.exp(-away) + _SLOPE**2 * (rows @ others.T) + _LEVEL**2
        return about

    def compute_variance(self, rows: NDArray[Any]) -> NDArray[Any]:
        of_each: Floats = 1 + _SLOPE**2 * (rows**2).sum(axis=1) + _LEVEL**2
        return of_each


def process(
    known: Floats, values: Floats, asked: Floats, reach: float = REACH, beside: Floats | None = None
) -> tuple[Floats, Floats]:
    """Mean and standard deviation at the point ``asked`` of a Gaussian process for each column of ``values``, which
    were found at the rows of ``known``; not a number where one was not. ``beside`` has one more coordinate for each
    column, a row a row of ``known`` and the last one for the point."""
    mean, spread = np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    beside = np.zeros((len(known) + 1, values.shape[1])) if beside is None else beside
    places = np.vstack([known, asked]) - known.mean(axis=0)
    for columns in _group_columns(values, beside):
        there = ~np.isnan(values[:, columns[0]])
        if not there.any():
            continue
        points = np.column_stack([places, beside[:, columns[0]]])
        fitted = GaussianProcess(_Smooth(reach), _ROUGH**2, _LEAST)
        fitted.fit(points[:-1][there], points[-1:])
        for column in columns:
            (mean[column],), (spread[column],) = fitted.expect(values[there, column])
    return mean, spread


def _group_columns(values: Floats, beside: Floats) -> Iterator[list[int]]:
    """The columns that were found at the same places, together."""
    groups: dict[bytes, list[int]] = {}
    for column in range(values.shape[1]):
        key = np.isnan(values[:, column]).tobytes() + beside[:, column].tobytes()
        groups.setdefault(key, []).append(column)
    yield from groups.values()


# -- which configurations are kept --------------------------------------------------------------------------


def cover(
    rows: Rows, allowed: Sequence[Configuration], regret: float = KEPT_REGRET, most: int = MOST_KEPT
) -> tuple[tuple[Configuration, ...], float]:
    """Of those ``allowed``, the fewest found of which on each row one is at most so much slower than the best allowed
    one, and what they lose at worst: one after the other, each time the one that helps most. At most ``most``."""
    times = [found for row in rows.values() if (found := {c: row[c] for c in allowed if c in row})]
    lost = [9.0] * len(times)
    chosen: list[Configuration] = []
    while len(chosen) < min(most, len(allowed)) and max(lost, default=0.0) > regret:
        after = {
            c: [
                min(before, row.get(c, math.inf) / min(row.values()) - 1)
                for before, row in zip(lost, times, strict=True)
            ]
            for c in allowed
            if c not in chosen
        }
        taken = min(after, key=lambda c: (sum(map(math.log1p, after[c])), c.id))
        chosen.append(taken)
        lost = after[taken]
    at_worst = max(lost, default=0.0)
    for one in tuple(chosen):  # an early one may have become needless
        rest = [c for c in chosen if c != one]
        if rest and _compute_worst_loss(times, rest) <= max(at_worst, regret):
            chosen = rest
    return tuple(chosen), _compute_worst_loss(times, chosen)


def add_winners(
    chosen: Sequence[Configuration], winners: Sequence[Configuration], most: int = MOST_KEPT
) -> tuple[Configuration, ...]:
    """``chosen`` and the ``winners`` of entries, those of most entries first, until there are ``most``: noise decides
    which of several alike configurations is the fastest on one entry, and a sweep's winner is the one that it settled
    on."""
    often = sorted(set(winners), key=lambda c: (-winners.count(c), c.id))
    return tuple(dict.fromkeys([*chosen, *often]))[: max(most, len(chosen))]


def _compute_worst_loss(
    times: Sequence[Mapping[Configuration, float]], chosen: Sequence[Configuration]
) -> float:
    return max(
        (min(row.get(c, math.inf) for c in chosen) / min(row.values()) - 1 for row in times), default=0.0
    )


# -- what it costs ------------------------------------------------------------------------------------------


def fit_shape(taught: Taught, rows: Rows) -> Taught:
    """``taught`` with the reach, and the count of blocks, that lose least when each entry is left out in turn."""
    tried = [
        replace(taught, reach=reach, load_counts=counts)
        for reach, counts in _SHAPES
        if not counts or taught.multiprocessors
    ]
    return min(tried, key=lambda one: sum(map(math.log1p, compute_left_out_losses(one, rows))))


def compute_left_out_losses(taught: Taught, rows: Rows) -> list[float]:
    """What each entry loses when it is left out in turn and predictions from the others decide: the time of what is
    taken over the entry's best in ``rows``, minus 1. Only what was measured on it counts."""
    lost = []
    for entry, row in rows.items():
        found = taught.leave_out(entry).predict(taught.features[entry], taught.blocks.get(entry))
        lost.append(_compute_loss(row, [one.configuration for one in found]))
    return lost


def compute_nearest_losses(taught: Taught, rows: Rows) -> list[float]:
    """What each entry loses with the winner of the nearest of the others."""
    near = {
        entry: rank_by_distance(taught.leave_out(entry).features, taught.features[entry]) for entry in rows
    }
    return [_compute_loss(row, [taught.winners[name] for name in near[entry]]) for entry, row in rows.items()]


def _compute_loss(row: Mapping[Configuration, float], order: Sequence[Configuration]) -> float:
    return next((row[c] for c in order if c in row), max(row.values())) / min(row.values()) - 1


# -- where to sweep next ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Numbers that make an input, each from low to high, on logarithmic scales; ``holds`` says which points count."""

    most: ClassVar = len(_PRIMES)  # numbers

    numbers: Mapping[str, tuple[int, int]]
    holds: Callable[[Point], bool] = lambda _point: True

    def get_point(self, shares: Sequence[float]) -> dict[str, int]:
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
            pulled = (self.get_point([end + (0.5 - end) * step / 20 for end in one]) for step in range(21))
            if (found := next(filter(self.holds, pulled), None)) is not None:
                yield found

    def draw_points(self) -> Iterator[dict[str, int]]:
        """Points that leave no large gap, as far as they count, without end."""
        primes = _PRIMES[: len(self.numbers)]
        places = (
            self.get_point([_radical_inverse(index, prime) for prime in primes])
            for index in itertools.count(1)
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
        return first[0] if first else next((p for p in _sample_points(over) if p not in swept), None)
    places = [point for point in (*first, *_sample_points(over)) if point not in swept]
    return max(
        places, key=lambda point: compute_expected_regret(taught.predict(features(point))), default=None
    )


def estimate_promise(over: Range, taught: Taught, features: Callable[[Point], Features]) -> float:
    """What 95 % of the range should keep to: the expected regret there of what would be taken."""
    found = sorted(compute_expected_regret(taught.predict(features(point))) for point in _sample_points(over))
    return found[min(len(found) - 1, math.ceil(_SHARE * len(found)) - 1)]


def _sample_points(over: Range) -> Iterator[dict[str, int]]:
    return itertools.islice(over.draw_points(), _LOOKED_AT)


def compute_expected_regret(found: Sequence[Predicted]) -> float:
    """What the first of ``found`` is expected to lose against the one of the others that is the greatest risk; 0 for
    nothing."""
    return max(compute_expected_gains(found), default=0.0)


def compute_expected_gains(found: Sequence[Predicted]) -> list[float]:
    """How much faster than the first of ``found`` each of the others is expected to be, 0 where it is slower. Errors
    are taken to be normal on a logarithmic scale and independent."""
    gaps = np.array([math.log(other.ms / found[0].ms) for other in found[1:]])
    spreads = np.array([math.hypot(found[0].spread, other.spread) for other in found[1:]])
    gains: list[float] = compute_expected_improvement(0.0, gaps, spreads).tolist()
    return gains
