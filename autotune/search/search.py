"""A search over a space: ask it for the next configuration, tell it what came of that.

    Search(...) -> ask, ask, … tell, ask, tell …

No configuration is asked for twice, none outside the space is asked for, and the same seed with the same
answers asks for the same configurations. Presets, then ``seeds`` (the winners of other devices and workloads),
come first with every sampler.

What cannot run is pruned only by what cannot be wrong: ``exclusion`` is asked about each configuration before
it is handed out (``Variant.explain_exclusion``: constraints that read sizes or options, layouts larger than the
device's memory or textures allow, grids, blocks and shared memory outside the launch limits). It costs no trial, and
``excluded`` lists it with its reason. No estimate of a time ever prunes.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from autotune.declaration import Configuration, Space, find_single_presets
from autotune.search.members import Listed, Members, Unlisted
from autotune.search.prior import Prior
from autotune.search.strategy import Strategy
from autotune.search.surrogate import Surrogate

if TYPE_CHECKING:
    from autotune.search.optuna import OptunaSampler

SURE = 0.9  # the probability with which the rest of a space is said to be no faster than that
_SPREAD = 24  # members of a listed space that come early, so that a good time to beat is found early


class Search:
    """A search over ``configurations``, or, if they are None, over all of ``space`` without listing it. ``seeds``
    outside the space are left out; ``strategy``'s seconds count from ``began``, by default now. With a ``prior``
    ``auto`` makes every second proposal with it, the others without: if it misleads, no more than half of them are
    lost. The other samplers begin with its winners, and ``exhaustive`` then follows its order. ``excluded`` are the
    configurations for which ``exclusion`` gives a reason, with the reason; the caller records them as excluded. Raises
    UsageError for a space that cannot be listed if the sampler needs a list."""

    def __init__(
        self,
        space: Space,
        configurations: Sequence[Configuration] | None,
        strategy: Strategy,
        *,
        seeds: Sequence[Configuration] = (),
        prior: Prior | None = None,
        exclusion: Callable[[Configuration], str] = lambda _configuration: "",
        began: float | None = None,
    ) -> None:
        strategy.check(configurations)

        def all_members() -> Members:
            return Unlisted(space) if configurations is None else Listed(space.policies, configurations)

        self._members = all_members()
        count = None if configurations is None else len(configurations)
        first = [*find_single_presets(space).values(), *seeds]
        if prior and strategy.sampler != "auto":
            first += prior.winners
        if configurations and strategy.sampler == "exhaustive":
            thin = configurations[:: max(1, len(configurations) // _SPREAD)]
            first += prior.rank(configurations) if prior else (*thin, *configurations)
        self._first = deque(c for c in dict.fromkeys(first) if c in self._members)
        trials = strategy.most_trials(count)
        self._trials = math.inf if trials is None else trials
        start = monotonic() if began is None else began
        self._until = math.inf if strategy.seconds is None else start + strategy.seconds
        is_guided = strategy.sampler == "auto" and prior
        self._guided = Surrogate(self._members, strategy.seed, prior) if is_guided else None
        self._is_guided = False  # the last proposal
        self._alone = all_members() if self._guided else self._members
        self._model = _model(strategy, self._alone, trials)
        self._apart: set[Configuration] = set()  # proposed with the prior, and not known to the other model
        self._unheard: dict[Configuration, float | None] = {}  # of these, what came of them
        self._rng = np.random.default_rng(strategy.seed) if strategy.sampler == "random" else None
        self._exclusion = exclusion
        self.excluded: dict[Configuration, str] = {}
        self._asked: set[Configuration] = set()
        self._told: set[Configuration] = set()

    def ask(self) -> Configuration | None:
        """Return the next configuration to try, or None if nothing is left or a limit is reached. Several may be
        asked for before the first result."""
        while len(self._asked) < self._trials and not self.is_late:
            chosen = self._choose_next()
            if chosen is None:
                return None
            self._take(chosen)
            if reason := self._exclusion(chosen):
                self.excluded[chosen] = reason
                self._told.add(chosen)
                self._learn(chosen, None)
                continue
            self._asked.add(chosen)
            return chosen
        return None

    @property
    def is_late(self) -> bool:
        """Whether its time is over."""
        return monotonic() >= self._until

    def estimate_gain_left(self, sure: float) -> float | None:
        """How much less time than the best so far the best of what is left takes at most, as a share of it, with that
        probability as the model has it; 1 before the model is fitted, None where only ``auto`` could tell."""
        model = self._guided or self._model
        return model.estimate_gain_left(sure) if isinstance(model, Surrogate) else None

    def tell(self, configuration: Configuration, cost: float | None, /) -> None:
        """Report the cost to minimize: a time in milliseconds, or a call's joules; None or infinite if there is none.
        The search also learns from configurations that it never asked for (a resumed record), and does not ask for
        them. A second report of one changes nothing."""
        if configuration in self._told or configuration not in self._members:
            return
        self._told.add(configuration)
        self._take(configuration)
        log_ms = None if cost is None or not math.isfinite(cost) else math.log(max(cost, 1e-9))
        self._learn(configuration, log_ms)

    def _choose_next(self) -> Configuration | None:
        """What comes first, then what the sampler chooses; None when nothing is left."""
        forced = None
        while self._first and forced is None:
            first = self._first.popleft()
            forced = None if first in self._told else first
        if self._model:
            return self._propose(self._model, forced)
        return self._members.draw(self._rng) if forced is None and self._rng else forced

    def _propose(
        self, model: "Surrogate | OptunaSampler", forced: Configuration | None
    ) -> Configuration | None:
        """``forced``, or what the two models propose in turn. The one with the prior learns from all that was tried,
        ``model`` as if it were alone: what it proposes and the other had tried costs nothing."""
        if forced or not self._guided:
            if self._guided:
                self._guided.propose(forced)
            return model.propose(forced)
        self._is_guided = not self._is_guided
        if self._is_guided:
            chosen = self._guided.propose(None)
            if chosen:
                self._apart.add(chosen)
            return chosen
        while (chosen := model.propose(None)) in self._apart:
            self._apart.remove(chosen)
            self._take(chosen)
            if chosen in self._unheard:
                model.learn(chosen, self._unheard.pop(chosen))
        return self._guided.propose(chosen) if chosen else None

    def _take(self, configuration: Configuration) -> None:
        self._members.take(configuration)
        if configuration not in self._apart:
            self._alone.take(configuration)

    def _learn(self, configuration: Configuration, log_ms: float | None) -> None:
        if self._guided:
            self._guided.learn(configuration, log_ms)
        if configuration in self._apart:
            self._unheard[configuration] = log_ms
        elif self._model:
            self._model.learn(configuration, log_ms)


def _model(strategy: Strategy, members: Members, trials: int | None) -> "Surrogate | OptunaSampler | None":
    """What learns from times; None where nothing does."""
    if strategy.sampler in ("exhaustive", "random"):
        return None
    if strategy.sampler == "auto":
        return Surrogate(members, strategy.seed)
    from autotune.search.optuna import OptunaSampler  # a second to import, and only these need it

    return OptunaSampler(strategy.sampler, members, strategy.seed, trials)
