"""How a space is searched: by which sampler, for how many trials or how long, from which seed.

exhaustive              presets, a thin spread over the space, the rest
random                  uniform over what is left
auto                    a Gaussian process over whole configurations (surrogate)
tpe, gp, cmaes, nsgaii  Optuna's; what they propose is moved to the nearest member not visited yet (optuna)

cmaes sees a policy's values as steps in declared order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from autotune.declaration import Configuration
from autotune.errors import UnknownName, UsageError
from autotune.files import pip_install

SAMPLERS = ("exhaustive", "random", "tpe", "gp", "cmaes", "nsgaii", "auto")
_PACKAGES = {"gp": ("torch", "scipy"), "cmaes": ("cmaes",)}  # of the extra search
_SHARE = 0.15  # of a listed space; auto was within 2 % of the best by then (benchmarks/search_replay.py)
_FEWEST, _UNLISTED = 24, 500


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """``trials`` limits how many configurations are tried, ``seconds`` for how long. With neither, ``exhaustive`` ends
    with the space and the others after a share of it. Raises UnknownName for a sampler that does not exist, and
    UsageError for limits below 1 and a sampler whose package is missing."""

    sampler: str = "exhaustive"
    trials: int | None = None
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UnknownName("search", self.sampler, SAMPLERS)
        if self.trials is not None and not self.trials > 0:
            raise UsageError(f"--trials {self.trials}: a limit must be above 0; omit it for no limit")
        if self.seed < 0:
            raise UsageError(f"--seed {self.seed}: a seed must be at least 0")
        if missing := [name for name in _PACKAGES.get(self.sampler, ()) if find_spec(name) is None]:
            raise UsageError(
                f"--search {self.sampler} needs {' and '.join(missing)}: {pip_install('search')}"
            )

    @property
    def tries_all(self) -> bool:
        """Whether it ends with the space, so that no result changes what is tried."""
        return self.sampler == "exhaustive" and self.trials is None and self.seconds is None

    @property
    def is_foreseen(self) -> bool:
        """Whether all that is tried is known before the first time is: it can be compiled ahead."""
        return self.sampler in ("exhaustive", "random") and self.seconds is None

    def check(self, configurations: Sequence[Configuration] | None) -> None:
        """Raises UsageError where ``configurations`` are too many to list, and the sampler walks through a list."""
        if configurations is None and self.sampler == "exhaustive":
            raise UsageError(
                "this space is too large to list; take --search auto, or narrow it with --preset or --set"
            )

    def most_trials(self, members: int | None) -> int | None:
        """Return its limit of trials in a space of ``members`` (None: not listed); None: no limit."""
        if self.trials is not None or self.seconds is not None or self.sampler == "exhaustive":
            return self.trials
        return _UNLISTED if members is None else min(members, max(_FEWEST, math.ceil(_SHARE * members)))

    def describe(self) -> dict[str, object]:
        """What a study says of its search: ``by`` what, and with which limits."""
        limits = [f"{self.trials:,} trials"] if self.trials is not None else []
        limits += [f"budget {self.seconds:g} s"] if self.seconds is not None else []
        seed = {} if self.sampler == "exhaustive" else {"seed": self.seed}
        return {"by": self.sampler, **seed, **({"budget": ", ".join(limits)} if limits else {})}
