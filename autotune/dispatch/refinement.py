"""The first calls on an input that nobody measured: the few best configurations in turn, until the fastest is known.

Each call is a real one, and the caller gets its result. Times come from marks in the stream that are read after they
have passed, so that nothing waits. A time counts only if the device was busy before the call: otherwise the host's time
to launch is between the marks. The time that may be lost has a bound: see ``Refinement``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

CALLS = 20  # that are timed, unless the caller says otherwise
TRIED = 8  # configurations
_LOSS = 5.0  # calls of the first choice
_UNKNOWN = 2.0  # times the first choice, at most, for one without a prediction
_DEVIATIONS = 2.0  # of a prediction that count as its upper end
_NEAR = 1.25  # of the best time: what is slower is not run again,
_NEAR_ONCE = 2.0  # or after its first run, which finds its code in no cache
_SAME = 0.01  # a difference at which the earlier one is kept


@dataclass
class Refinement:
    """Which of several configurations a call runs, the first of which would run otherwise: of each the ``expected``
    time in ms (0 where nothing is predicted) and its relative spread. At most ``calls`` are timed. What the others cost
    more than the first one's time is at most five calls of it: one is not run when what was lost, with what it may lose
    by the upper end of its prediction, would be more. One whose time is not known yet is not run again."""

    expected: Sequence[tuple[float, float]]
    calls: int = CALLS
    times: list[list[float]] = field(init=False)
    _queued: list[int] = field(init=False)
    _out: set[int] = field(init=False, default_factory=set)
    _begun: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.times = [[] for _ in self.expected]
        self._queued = [0] * len(self.expected)

    @property
    def best(self) -> int:
        """The fastest so far; the first one before anything is known."""
        known = [at for at, times in enumerate(self.times) if times and at not in self._out]
        if not known:
            return 0
        least = min(self.time(at) for at in known)
        return next(at for at in known if self.time(at) <= least * (1 + _SAME))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to try, and all that was tried is known."""
        return not any(self._queued) and self._choose_next() is None

    def time(self, at: int) -> float:
        """The least in ms: what is between the marks next to the kernels (the host that is not done launching, code
        that is in no cache yet) only adds to it."""
        return min(self.times[at])

    def take(self) -> tuple[int, bool]:
        """Which one runs now, and whether it is to be timed (``note``)."""
        at = self._choose_next()
        if at is None:
            return self.best, False
        self._queued[at] += 1
        self._begun += 1
        return at, True

    def note(self, at: int, ms: float) -> None:
        """What one took that ``take`` gave."""
        self._queued[at] -= 1
        self.times[at].append(ms)

    def forget(self, at: int) -> None:
        """What ``take`` gave ran, and nobody can say for how long."""
        self._queued[at] -= 1

    def leave_out(self, at: int) -> None:
        """It cannot run."""
        self._out.add(at)
        self._queued[at] = 0

    def _choose_next(self) -> int | None:
        if self._begun >= self.calls:
            return None
        tried = [at for at in range(len(self.expected)) if at not in self._out]
        open_ = [at for at in tried if not self._queued[at]]
        new = [at for at in open_ if not self.times[at] and self._is_affordable(at)]
        if new:
            return new[0]
        known = [at for at in tried if self.times[at]]
        if len(known) < 2:
            return None
        best = min(self.time(at) for at in known)
        near = [
            at for at in known if self.time(at) <= best * (_NEAR_ONCE if len(self.times[at]) == 1 else _NEAR)
        ]
        if len(near) < 2:
            return None
        ready = [at for at in near if at in open_ and self._is_affordable(at)]
        return min(ready, key=lambda at: (len(self.times[at]), at), default=None)

    def _is_affordable(self, at: int) -> bool:
        if at == 0:
            return True
        base = self.time(0) if self.times[0] else self.expected[0][0]
        if not base:  # the first one's time is neither predicted nor measured yet
            return False
        lost = sum(max(0.0, ms - base) for times in self.times[1:] for ms in times)
        may = sum(self._upper(i, base) * queued for i, queued in enumerate(self._queued) if i)
        return lost + may + self._upper(at, base) <= _LOSS * base

    def _upper(self, at: int, base: float) -> float:
        """What a run may take beyond ``base``."""
        if self.times[at]:
            return max(0.0, self.time(at) - base)
        (first_ms, _), (expected_ms, spread) = self.expected[0], self.expected[at]
        if not first_ms or not expected_ms:
            return (_UNKNOWN - 1) * base
        return max(0.0, expected_ms / first_ms * math.exp(_DEVIATIONS * spread) - 1) * base
