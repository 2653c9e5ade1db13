"""Which configuration to try next: ``exhaustive``, ``random``, ``auto``, or one of Optuna's samplers.

    search(...) -> ask, ask, … tell, ask, tell …

No configuration is asked for twice, none outside the space is asked for, and the same seed with the same
answers asks for the same configurations. Presets, then ``seeds`` (the winners of other devices and workloads),
come first in every method.

What cannot run is pruned only by what cannot be wrong: ``exclusion`` is asked about each configuration before
it is handed out (``Variant.exclusion``: constraints that read sizes or options, layouts larger than the device's
memory or textures allow, grids, blocks and shared memory outside the launch limits). It costs no trial, and
``excluded`` lists it with its reason. No estimate of a time ever prunes.

    exhaustive              presets, a thin spread over the space, the rest
    random                  uniform over what is left
    auto                    a Gaussian process over whole configurations (search_surrogate)
    tpe, gp, cmaes, nsgaii  Optuna's; what they propose is moved to the nearest member not visited yet
                            (search_optuna)

Optuna's gp needs the packages torch and scipy, its cmaes the package cmaes. cmaes sees a policy's values as steps
in declared order. Two objectives (``minimise``): any method but cmaes; ``pareto`` gives the front.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol

import numpy as np

from autotune.declaration import Configuration, Listed, Members, Space, Unlisted
from autotune.errors import UnknownName, UsageError
from autotune.record import Trial, time_ms
from autotune.search.surrogate import Surrogate

__all__ = ["METHODS", "Search", "default_trials", "objectives", "pareto", "search"]


METHODS = ("exhaustive", "random", "tpe", "gp", "cmaes", "nsgaii", "auto")

_PACKAGES = {"gp": ("torch", "scipy"), "cmaes": ("cmaes",)}  # beyond what autotune depends on

_SHARE = 0.15  # of a listed space; auto was within 2 % of the best by then (benchmarks/search_replay.py)

_FEWEST, _UNLISTED = 24, 500


Told = float | Sequence[float] | None


class Search(Protocol):
    @property
    def excluded(self) -> Mapping[Configuration, str]:
        """What ``exclusion`` refused, and why; to be recorded as excluded."""

    def ask(self) -> Configuration | None:
        """The next to try, or None when nothing is left or a limit is reached. Several may be asked for before any
        is told."""

    def tell(self, configuration: Configuration, value_ms: Told, /) -> None:
        """Its time in milliseconds, or with two objectives one figure each in the order of ``minimise``; None when
        it failed. What was never asked for may be told too (a resumed record): it is learnt from and not asked for.
        A second telling changes nothing."""


def search(
    space: Space,
    configurations: Sequence[Configuration] | None,
    method: str,
    *,
    seed: int = 0,
    trials: int | None = None,
    seconds: float | None = None,
    seeds: Sequence[Configuration] = (),
    minimise: Sequence[str] = ("time_ms",),
    exclusion: Callable[[Configuration], str] = lambda _configuration: "",
    clock: Callable[[], float] = time.monotonic,
) -> Search:
    """A search over ``configurations``, or over all of ``space`` without listing it when they are None.

    ``trials`` limits how many are asked for, ``seconds`` for how long from now. With neither, ``exhaustive`` ends
    with the space and the others after ``default_trials``. ``seeds`` outside the space are left out. Raises
    UnknownName for a method that does not exist, and UsageError for limits below 1, a space that cannot be listed,
    a method that cannot take two objectives, and a sampler whose package is missing.
    """
    if method not in METHODS:
        raise UnknownName("search", method, METHODS)
    for name, limit in (("trials", trials), ("time", seconds)):
        if limit is not None and not limit > 0:
            raise UsageError(f"--{name} {limit}: a limit is above 0; leave it out for none")
    if seed < 0:
        raise UsageError(f"--seed {seed}: a seed is 0 or above")
    if configurations is None and method == "exhaustive":
        raise UsageError(
            "this space is too large to list; take --search auto, or narrow it with --preset or --set"
        )
    if len(minimise) > 1 and method == "cmaes":
        raise UsageError(f"cmaes minimises one objective, not {', '.join(minimise)}; take auto or nsgaii")
    if missing := [p for p in _PACKAGES.get(method, ()) if find_spec(p) is None]:
        raise UsageError(f"--search {method} needs {', '.join(missing)}: pip install {' '.join(missing)}")
    members = Unlisted(space) if configurations is None else Listed(space.policies, configurations)
    if trials is None and seconds is None and method != "exhaustive":
        trials = default_trials(None if configurations is None else len(configurations))
    first = [*_presets(space), *seeds]
    if method == "exhaustive":
        first += configurations[:: max(1, len(configurations) // 24)] if configurations else []
    return _Search(
        members,
        _proposer(method, members, seed, trials, len(minimise)),
        [c for c in dict.fromkeys(first) if c in members],
        math.inf if trials is None else trials,
        math.inf if seconds is None else clock() + seconds,
        len(minimise),
        exclusion,
        clock,
    )


def _presets(space: Space) -> list[Configuration]:
    """The presets of one configuration, in declared order; one that a narrowed space breaks is left out."""
    singles = (space.single(name) for name in space.preset_names if name != "full")
    return [configuration for configuration in singles if configuration is not None]


def default_trials(members: int | None) -> int:
    """How many trials a search without limits gets in a space of so many members (None: not listed)."""
    return _UNLISTED if members is None else min(members, max(_FEWEST, math.ceil(_SHARE * members)))


class _Proposer(Protocol):
    def propose(self, forced: Configuration | None) -> Configuration | None:
        """``forced``, or the method's own next; None when nothing is left."""

    def learn(self, configuration: Configuration, values: Sequence[float] | None, /) -> None:
        """Logarithms of the figures told; None when it failed."""


class _Search:
    """Limits, the first configurations and bookkeeping around a proposer."""

    def __init__(
        self,
        members: Members,
        proposer: _Proposer,
        first: Sequence[Configuration],
        trials: float,
        until: float,
        objectives: int,
        exclusion: Callable[[Configuration], str],
        clock: Callable[[], float],
    ) -> None:
        self._excluded: dict[Configuration, str] = {}
        self._members, self._proposer, self._first = members, proposer, list(first)
        self._trials, self._until, self._objectives = trials, until, objectives
        self._exclusion, self._clock = exclusion, clock
        self._asked: set[Configuration] = set()
        self._told: set[Configuration] = set()

    @property
    def excluded(self) -> Mapping[Configuration, str]:
        return self._excluded

    def ask(self) -> Configuration | None:
        while len(self._asked) < self._trials and self._clock() < self._until:
            chosen = self._proposer.propose(self._forced())
            if chosen is None:
                return None
            self._members.take(chosen)
            if reason := self._exclusion(chosen):
                self._excluded[chosen] = reason
                self._told.add(chosen)
                self._proposer.learn(chosen, None)
                continue
            self._asked.add(chosen)
            return chosen
        return None

    def tell(self, configuration: Configuration, value_ms: Told, /) -> None:
        if configuration in self._told or configuration not in self._members:
            return
        values = None if value_ms is None else value_ms if isinstance(value_ms, Sequence) else [value_ms]
        if values is not None and len(values) != self._objectives:
            raise ValueError(f"{len(values)} figures were told, and the search minimises {self._objectives}")
        usable = values is not None and all(math.isfinite(v) for v in values)
        self._told.add(configuration)
        self._members.take(configuration)
        logarithms = [math.log(max(v, 1e-9)) for v in values or ()]
        self._proposer.learn(configuration, logarithms if usable else None)

    def _forced(self) -> Configuration | None:
        while self._first:
            if (configuration := self._first.pop(0)) not in self._told:
                return configuration
        return None


class _InOrder:
    """The list from its beginning."""

    def __init__(self, members: Listed) -> None:
        self._rest = iter(members.all)
        self._given: set[Configuration] = set()

    def propose(self, forced: Configuration | None) -> Configuration | None:
        chosen = forced or next((c for c in self._rest if c not in self._given), None)
        if chosen:
            self._given.add(chosen)
        return chosen

    def learn(self, configuration: Configuration, _values: Sequence[float] | None, /) -> None:
        self._given.add(configuration)


class _AtRandom:
    def __init__(self, members: Members, seed: int) -> None:
        self._members, self._rng = members, np.random.default_rng(seed)

    def propose(self, forced: Configuration | None) -> Configuration | None:
        return forced or self._members.random(self._rng)

    def learn(self, configuration: Configuration, values: Sequence[float] | None, /) -> None:
        """Chance learns nothing."""


def _proposer(method: str, members: Members, seed: int, trials: int | None, objectives: int) -> _Proposer:
    if isinstance(members, Listed) and method == "exhaustive":
        return _InOrder(members)
    if method == "random":
        return _AtRandom(members, seed)
    if method == "auto":
        return Surrogate(members, seed)
    from autotune.search.optuna import Sampled  # a second to import, and only these need it

    return Sampled(method, members, seed, trials, objectives)


# -- two objectives ---------------------------------------------------------------------------------------


def objectives(trial: Trial, names: Sequence[str]) -> tuple[float, ...] | None:
    """The figures of a measured trial by name: ``time_ms``, or a field of Measurement such as ``footprint_bytes``
    or ``transform_ms``; None when it was not measured. Raises UnknownName."""
    fields = trial.measurement.__dataclass_fields__ if trial.measurement else {}
    figures = {"time_ms": time_ms(trial)}
    figures |= {n: v for n in fields if isinstance(v := getattr(trial.measurement, n), int | float)}
    if trial.measurement is None:
        return None
    for name in names:
        if name not in figures:
            raise UnknownName("objective", name, figures)
    return tuple(float(figures[name]) for name in names)


def pareto(trials: Sequence[Trial], names: Sequence[str] = ("time_ms", "footprint_bytes")) -> list[Trial]:
    """The measured trials that no other beats in one objective without losing in another, the best in the first
    objective first. Of trials that are equal in all, the one with the smallest id. Raises UnknownName."""
    figures = [(found, trial) for trial in trials if (found := objectives(trial, names)) is not None]
    front: list[tuple[tuple[float, ...], Trial]] = []
    # Whatever is beaten is beaten by something before it in this order, so one pass over the front is enough.
    for found, trial in sorted(figures, key=lambda pair: (pair[0], pair[1].configuration.id)):
        if not any(all(a <= b for a, b in zip(other, found, strict=True)) for other, _ in front):
            front.append((found, trial))
    return [trial for _, trial in front]
