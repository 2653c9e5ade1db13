"""The article's balance over several GPUs: an estimated time for each subclass, and work allocated by it.

Its four factors are the work-units of a subclass (N), the components of each (m), the time of a component (t_c), and
the time to transfer a work-unit (t_x); a subclass takes T = N (m t_c + t_x) + t_0, where t_0 starts it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.family import UsageError

__all__ = ["CostModel", "Share", "calibrated", "chunked", "efficiency", "equal_counts", "whole_subclasses"]


@dataclass(frozen=True)
class Share:
    """``units`` work-units of the subclass with ``components`` components each."""

    components: int
    units: int


Allocation = tuple[tuple[Share, ...], ...]  # of each GPU


@dataclass(frozen=True)
class CostModel:
    """Seconds: of a component, of a work-unit beside its components (its transfer), and of a start."""

    component: float
    transfer: float
    start: float

    def seconds(self, share: Share) -> float:
        return share.units * (share.components * self.component + self.transfer) + self.start

    def predicted(self, allocation: Allocation) -> tuple[float, ...]:
        """Seconds of each GPU."""
        return tuple(sum(self.seconds(share) for share in shares) for shares in allocation)


def calibrated(measured: Sequence[tuple[Share, float]]) -> CostModel:
    """The model nearest to (share, seconds) pairs: least squares of the relative errors, no term below 0. Raises
    UsageError where fewer than three shares are given."""
    if len(measured) < 3:
        raise UsageError(f"{len(measured)} measured shares; three are needed to tell three times apart")
    seconds = np.array([took for _, took in measured])
    rows = np.array([(share.units * share.components, share.units, 1) for share, _ in measured], np.float64)
    scaled = rows / seconds[:, None]
    width = np.linalg.norm(scaled, axis=0)
    used = [0, 1, 2]
    found = np.zeros(3)
    while used:  # a term that comes out negative is none
        best, *_ = np.linalg.lstsq(scaled[:, used] / width[used], np.ones(len(seconds)))
        if (best >= 0).all():
            found[used] = best / width[used]
            break
        used = [term for term, value in zip(used, best, strict=True) if value >= 0]
    return CostModel(*found.tolist())


def efficiency(seconds: Sequence[float]) -> float:
    """Mean over largest: 1 when all end at once."""
    return sum(seconds) / len(seconds) / max(seconds) if max(seconds) > 0 else 1.0


# ---- allocations


def equal_counts(subclasses: Sequence[Share], gpus: int) -> Allocation:
    """The work-units in the order of ``subclasses``, cut into ``gpus`` runs of equal length: what the article calls
    insufficient."""
    _check(gpus)
    total = sum(share.units for share in subclasses)
    ends = [total * (gpu + 1) // gpus for gpu in range(gpus)]
    given: list[list[Share]] = [[] for _ in range(gpus)]
    gpu = place = 0
    for share in subclasses:
        left = share.units
        while left:
            while place == ends[gpu]:
                gpu += 1
            taken = min(left, ends[gpu] - place)
            given[gpu].append(Share(share.components, taken))
            place += taken
            left -= taken
    return tuple(map(tuple, given))


def whole_subclasses(subclasses: Sequence[Share], gpus: int, model: CostModel) -> Allocation:
    """The article's: each subclass to one GPU, the longest first, always to the GPU that is done first (Graham's
    longest processing time rule)."""
    _check(gpus)
    given: list[list[Share]] = [[] for _ in range(gpus)]
    busy = [0.0] * gpus
    for share in sorted(subclasses, key=lambda s: (-model.seconds(s), -s.components)):
        gpu = min(range(gpus), key=busy.__getitem__)
        given[gpu].append(share)
        busy[gpu] += model.seconds(share)
    return tuple(map(tuple, given))


def chunked(subclasses: Sequence[Share], gpus: int, model: CostModel, largest: float = 1 / 256) -> Allocation:
    """As ``whole_subclasses``, after subclasses above a share ``largest`` of all time were cut into equal pieces."""
    total = sum(model.seconds(share) for share in subclasses)
    pieces = []
    for share in subclasses:
        count = (
            min(share.units, max(1, int(np.ceil(model.seconds(share) / (largest * total))))) if total else 1
        )
        cuts = [share.units * piece // count for piece in range(count + 1)] if count else []
        pieces += [Share(share.components, b - a) for a, b in itertools.pairwise(cuts) if b > a]
    return whole_subclasses(pieces, gpus, model)


def _check(gpus: int) -> None:
    if gpus < 1:
        raise UsageError(f"{gpus} GPUs; at least one is needed")
