"""Members of a space drawn without listing it: each value as often as it can still be completed.

Each constraint over few enough combinations becomes a table of those that it allows, summed over the policies that come
later. So a half-drawn configuration knows for each value of the next policy how many completions each constraint leaves
it, and a value without any is never taken. Constraints over more combinations are tested when all their names are
drawn. Where constraints share no policy, draws are uniform; where they do, nearly so.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Constraint, Expression, PolicyValue, Space
from autotune.errors import FamilyError

_MOST_CELLS = 100_000  # of all tables of a space: some tenths of a second
_NEARER = 12.0  # times as likely is the value of the configuration that is to be near

Numbers = NDArray[np.intp]


class Completions:
    """``numbers`` below are those of values in declared order, a column for each policy."""

    def __init__(self, space: Space) -> None:
        self._policies, self._space = space.policies, space
        self._order = {policy.name: i for i, policy in enumerate(space.policies)}

    @cached_property
    def _tables(self) -> list[list[tuple[tuple[int, ...], NDArray[np.float64]]]]:
        """For each policy: of each table that it is in, the policies of it that come before, and how many completions
        each value has after those."""
        tables: list[list[tuple[tuple[int, ...], NDArray[np.float64]]]] = [[] for _ in self._policies]
        for constraint in self._tabled:
            places = self._places(constraint)
            allowed = self._check_allowed(constraint, places)
            for depth, place in enumerate(places):
                later = tuple(range(depth + 1, len(places)))
                tables[place].append((places[:depth], allowed.sum(axis=later, dtype=np.float64)))
        return tables

    @cached_property
    def _tabled(self) -> list[Constraint]:
        """The constraints with tables: the smallest first, as long as all are small enough together."""
        known = [c for c in self._space.rules if c.require.names <= self._order.keys()]
        sizes = [math.prod(len(self._policies[i].values) for i in self._places(c)) for c in known]
        chosen, cells = [], 0
        for size, constraint in sorted(zip(sizes, known, strict=True), key=lambda one: one[0]):
            cells += size
            if cells <= _MOST_CELLS and constraint.require.names:
                chosen.append(constraint)
        return chosen

    def _places(self, constraint: Constraint) -> tuple[int, ...]:
        return tuple(sorted(self._order[name] for name in constraint.require.names))

    def _check_allowed(self, constraint: Constraint, places: tuple[int, ...]) -> NDArray[np.bool_]:
        names = [self._policies[i].name for i in places]
        choices = [self._policies[i].values for i in places]
        cells = [
            _holds(constraint.require, dict(zip(names, cell, strict=True))) for cell in product(*choices)
        ]
        return np.array(cells).reshape([len(values) for values in choices])

    def draw(
        self, count: int, rng: "np.random.Generator", near: Mapping[str, object] | None = None
    ) -> Iterator[Configuration]:
        """At most ``count`` that keep every constraint, with repeats; ``near`` one where that is given."""
        numbers, alive = np.zeros((count, len(self._policies)), np.intp), np.ones(count, bool)
        for place, policy in enumerate(self._policies):
            weights = self._weights(place, numbers)
            if near is not None:
                weights[:, policy.values.index(near[policy.name])] *= _NEARER
            total = weights.sum(axis=1)
            alive &= total > 0
            below = rng.random(count)[:, None] * total[:, None] < weights.cumsum(axis=1)
            numbers[:, place] = below.argmax(axis=1)
        for row in numbers[alive].tolist():
            found = Configuration({p.name: p.values[i] for p, i in zip(self._policies, row, strict=True)})
            if not self._space.explain_unexplored(found):
                yield found

    def walk(self, rng: "np.random.Generator") -> Iterator[Configuration]:
        """All of them, in an order of chance, leaving a branch as soon as a table has no completion for it."""

        def descend(row: list[int]) -> Iterator[Configuration]:
            place = len(row)
            chosen = {p.name: p.values[i] for p, i in zip(self._policies, row, strict=False)}
            if self._space.explain_unexplored(chosen):
                return
            if place == len(self._policies):
                yield Configuration(chosen)
                return
            numbers = np.array([row + [0] * (len(self._policies) - place)], np.intp)
            weights = self._weights(place, numbers)[0]
            for i in rng.permutation(np.flatnonzero(weights)).tolist():
                yield from descend([*row, i])

        yield from descend([])

    def _weights(self, place: int, numbers: Numbers) -> NDArray[np.float64]:
        """How often each value of that policy is to be taken, after the policies before it in each row."""
        weights = np.ones((len(numbers), len(self._policies[place].values)))
        for before, completions in self._tables[place]:
            weights *= completions[tuple(numbers[:, i] for i in before)]
        return weights


def _holds(require: Expression, values: Mapping[str, PolicyValue]) -> bool:
    """Also where it has no value: another constraint may exclude that, and what is drawn is tested once more."""
    try:
        return bool(require.evaluate(values))
    except FamilyError:
        return True
