"""Which configurations a search may still visit: a list of them, or a space too large to list.

Both say what is near a configuration, in one measure: a policy whose values are words differs (1) or not
(0); between two numbers it is how many declared values lie between them, as a share of all.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration, Policy, PolicyValue, Space, Steps
from autotune.search.completions import Completions

MOST_LISTED = 50_000  # more are searched without a list; this list takes a second and some megabytes
POOL = 12_000  # candidates that a model is asked about at once
_DRAWS = 64  # at once, before a method that always ends


class Members(Protocol):
    """What is left of a space. ``draw``, ``draw_some`` and ``pool`` give only members that were not taken."""

    policies: tuple[Policy, ...]

    def __contains__(self, configuration: object) -> bool: ...

    def take(self, configuration: Configuration) -> None:
        """``configuration`` is not given again."""

    def draw(self, rng: "np.random.Generator") -> Configuration | None:
        """One at random; None when nothing is left."""

    def draw_some(self, count: int, rng: "np.random.Generator") -> "Candidates":
        """At most ``count`` different ones at random; none only when nothing is left."""

    def pool(self, best: Sequence[Configuration], rng: "np.random.Generator") -> "Candidates":
        """Candidates for a model: all that is left when that is little, else a random part and what differs little
        from ``best``."""


@dataclass(frozen=True)
class Candidates:
    """Configurations with their rows of ``encode``. ``are_all`` says whether nothing else is left."""

    configurations: Sequence[Configuration]
    rows: NDArray[np.float64]
    are_all: bool


class Listed:
    """A space as a list. ``draw`` is uniform."""

    def __init__(self, policies: tuple[Policy, ...], configurations: Iterable[Configuration]) -> None:
        self.policies = policies
        self.all = tuple(dict.fromkeys(configurations))
        self._index = {configuration: i for i, configuration in enumerate(self.all)}
        self._left = np.ones(len(self.all), dtype=bool)

    @cached_property
    def _codes(self) -> NDArray[np.float64]:  # only samplers that compare configurations pay for them
        return encode(self.policies, self.all)

    def __contains__(self, configuration: object) -> bool:
        return configuration in self._index

    def take(self, configuration: Configuration) -> None:
        if configuration in self._index:
            self._left[self._index[configuration]] = False

    def draw(self, rng: "np.random.Generator") -> Configuration | None:
        left = np.flatnonzero(self._left)
        return self.all[int(rng.choice(left))] if len(left) else None

    def draw_some(self, count: int, rng: "np.random.Generator") -> Candidates:
        left = np.flatnonzero(self._left)
        drawn = rng.choice(left, min(count, len(left)), replace=False) if len(left) else left
        return Candidates([self.all[i] for i in drawn], self._codes[drawn], len(left) <= count)

    def pool(self, best: Sequence[Configuration], rng: "np.random.Generator") -> Candidates:
        left = np.flatnonzero(self._left)
        are_all = len(left) <= POOL
        if not are_all:
            chosen = [rng.choice(left, POOL // 2, replace=False)]
            share = POOL // 2 // max(1, len(best))
            for configuration in best:
                chosen.append(left[np.argsort(self._distance(configuration, left), kind="stable")[:share]])
            left = np.unique(np.concatenate(chosen))
        return Candidates([self.all[i] for i in left], self._codes[left], are_all)

    def _distance(self, configuration: Configuration, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        away: NDArray[np.float64] = ((self._codes[rows] - encode(self.policies, [configuration])) ** 2).sum(
            axis=1
        )
        return away


class Unlisted:
    """A space that is never listed: members are drawn, with constraints narrowed on the way (``completions``).

    Where nothing new is drawn, ``draw`` walks through all that is left, so None means that none is.
    """

    def __init__(self, space: Space) -> None:
        self.policies = space.policies
        self._space = space
        self._completions = Completions(space)
        self._taken: set[Configuration] = set()

    def __contains__(self, configuration: object) -> bool:
        if not isinstance(configuration, Configuration) or len(configuration) != len(self.policies):
            return False
        declared = all(configuration.get(p.name) in p.values for p in self.policies)
        return declared and not self._space.explain_unexplored(configuration)

    def take(self, configuration: Configuration) -> None:
        self._taken.add(configuration)

    def draw(self, rng: "np.random.Generator") -> Configuration | None:
        found = chain(self._completions.draw(_DRAWS, rng), self._completions.walk(rng))
        return next((one for one in found if one not in self._taken), None)

    def draw_some(self, count: int, rng: "np.random.Generator") -> Candidates:
        drawn = [found for found in self._completions.draw(count, rng) if found not in self._taken]
        if not drawn and (one := self.draw(rng)) is not None:
            drawn = [one]
        free = list(dict.fromkeys(drawn))
        return Candidates(free, encode(self.policies, free), are_all=False)

    def pool(self, best: Sequence[Configuration], rng: "np.random.Generator") -> Candidates:
        pool: dict[Configuration, None] = {}
        for configuration in best:
            pool.update(dict.fromkeys(self._list_neighbours(configuration)))
            pool.update(dict.fromkeys(self._completions.draw(2 * _DRAWS, rng, configuration)))
        pool.update(dict.fromkeys(self._completions.draw(2 * _DRAWS, rng)))
        if (drawn := self.draw(rng)) is not None:
            pool[drawn] = None
        free = [configuration for configuration in pool if configuration not in self._taken][:POOL]
        return Candidates(free, encode(self.policies, free), are_all=False)

    def _list_neighbours(self, configuration: Configuration) -> Iterator[Configuration]:
        """The members that differ from it in one policy."""
        for policy in self.policies:
            for value in policy.values:
                changed = Configuration({**configuration, policy.name: value})
                if value != configuration[policy.name] and not self._space.explain_unexplored(changed):
                    yield changed


def list_configurations(space: Space, most: int = MOST_LISTED) -> tuple[Configuration, ...] | None:
    """``space.configurations()``, or None when there are more than ``most`` or they are too rare to list."""
    steps = Steps(20 * most)
    found = tuple(islice(space.walk(steps=steps), most + 1))
    return None if len(found) > most or steps.are_spent else found


def can_be_listed(space: Space) -> bool:
    """Whether ``list_configurations`` has an answer; a space that is small without its constraints is not listed to
    tell."""
    return (
        math.prod(len(policy.values) for policy in space.policies) <= MOST_LISTED
        or list_configurations(space) is not None
    )


def narrow(space: Space, held: dict[str, Sequence[Any]]) -> Space:
    """``space`` with the policies in ``held`` limited to the given values (values or their text): what
    ``configurations(narrowed=...)`` lists, without listing it, and as there what is possible where nothing of them is
    explored. Raises UnknownName."""
    values = space.select_values(held)
    narrowed = replace(
        space, policies=tuple(replace(p, values=values.get(p.name, p.values)) for p in space.policies)
    )
    steps = Steps(20 * MOST_LISTED)
    is_explored = next(narrowed.walk(steps=steps), None) is not None or steps.are_spent
    return narrowed if is_explored else narrowed.possible


def encode(policies: Sequence[Policy], configurations: Sequence[Configuration]) -> NDArray[np.float64]:
    """A row for each configuration, such that the squared distance of two rows is the sum over policies of how far
    apart their values are, 0..1 each (see the module): one column a word, and one a step between numbers."""
    blocks = []
    for policy in policies:
        table, name = _table(policy), policy.name
        place = {value: i for i, value in enumerate(table)}
        places = np.fromiter((place[c[name]] for c in configurations), np.intp, len(configurations))
        blocks.append(np.array(list(table.values()), dtype=float)[places])
    return np.hstack(blocks) if blocks else np.zeros((len(configurations), 0))


def columns(policies: Sequence[Policy]) -> NDArray[np.intp]:
    """The number of the policy behind each column of ``encode``."""
    return np.repeat(np.arange(len(policies)), [len(_table(p)[p.values[0]]) for p in policies])


def _table(policy: Policy) -> dict[PolicyValue, tuple[float, ...]]:
    count = len(policy.values)
    if all(isinstance(value, int) for value in policy.values):
        step = max(1, count - 1) ** -0.5
        ordered = sorted(policy.values, key=int)
        return {v: (step,) * i + (0.0,) * (count - 1 - i) for i, v in enumerate(ordered)}
    return {v: tuple(0.5**0.5 * (i == j) for j in range(count)) for i, v in enumerate(policy.values)}
