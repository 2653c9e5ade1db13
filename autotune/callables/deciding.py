"""Which configuration a call runs: what a policy file has for it, or what it is tuned to, by one process at a time."""

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.callables import functions
from autotune.callables.choices import Alternatives
from autotune.callables.tuning import CallProblem, Check, tune_problem
from autotune.callables.winners import FoundWinners, find_winners
from autotune.errors import NothingMeasured, UsageError
from autotune.policy import Frozen, resolve_frozen

_NEAR = 8  # configurations that a call of new sizes tries where policy files predict its time
Others = Literal["wait", "fallback"]


@dataclass(frozen=True, kw_only=True)
class Decider:
    """``check`` and ``options`` are for tuning; the rest as ``tuned`` has it. Raises UsageError."""

    choices: Alternatives
    check: Check = None
    frozen: Frozen | None = None
    agreement: Any = None
    refine: bool = True
    others: Others = "wait"
    policies: str | Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.others not in ("wait", "fallback"):
            raise UsageError(
                f"others={self.others!r}: wait for the process that tunes, or run the fallback meanwhile"
            )

        resolve_frozen(self.frozen)

    def decide(self, problem: CallProblem, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """The values for such a call, of ranks those of the first; None where another process is at it, and the
        fallback is to be run. Raises AutotuneError."""
        if self.agreement is None or functions.is_measuring():
            return self._decide(problem, inputs)
        values: dict[str, Any] | None = self.agreement.decide(lambda: self._decide(problem, inputs))
        return values

    def _decide(self, problem: CallProblem, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        winners = find_winners(problem, self.policies, self.frozen)
        if winners.is_exact:
            return self._values(winners)
        if winners.frozen or functions.is_measuring():
            return self._take_nearest(winners)
        with self._claim_tuning(problem) as is_mine:
            if not is_mine:
                return None
            winners = find_winners(problem, self.policies, self.frozen)
            if winners.is_exact:  # the other process has tuned it
                return self._values(winners)
            chosen: Sequence[Any] = ()
            if self.refine and winners.best is not None and winners.best.match in ("predicted", "nearest"):
                default = self.choices.configuration(self.choices.default)
                chosen = list(dict.fromkeys([default, *winners.configurations[:_NEAR]]))
            result = tune_problem(problem, self.check, inputs, chosen=chosen, **self.options)
            result.save_policy(self.policies)
            return dict(result.configuration)

    def _values(self, found: FoundWinners) -> dict[str, Any]:
        assert found.best is not None and found.best.configuration is not None
        return self.choices.get_values(found.best.configuration)

    def _take_nearest(self, found: FoundWinners) -> dict[str, Any]:
        """What comes nearest where nothing may be tuned. Raises NothingMeasured."""
        if found.best is not None:
            warnings.warn(f"{found.lacks}: it runs {found.best.origin} ({found.best.match})", stacklevel=6)
            return self._values(found)
        if functions.is_measuring():
            return self.choices.default
        raise NothingMeasured(
            f"{found.lacks}; it is frozen: call it once where it is not (frozen=False, AUTOTUNE_FROZEN=0), and ship "
            "that folder"
        )

    @contextmanager
    def _claim_tuning(self, problem: CallProblem) -> Iterator[bool]:
        """Whether this process may tune now: no other one tunes the same call, or no longer does. It ends with the
        process, however that ends."""
        import filelock

        declared = problem.declared
        shapes = [(name, one.shape) for name, one in sorted(declared.arrays.items())]
        told = repr((declared.name, declared.digest, sorted(declared.numbers.items()), shapes))
        folder = Path(self.options.get("out") or Path("autotune-results") / declared.name)
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.lock")
        try:
            lock.acquire(timeout=-1 if self.others == "wait" else 0)
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
