"""The tuned kernel as a function of arrays, on one device or several."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.dispatch.prepared import Prepared
from autotune.dispatch.tuned_kernel import TunedKernel, explained, load

if TYPE_CHECKING:
    from autotune.dispatch.spread.plan import ALLOCATIONS, Chunk, Units
    from autotune.dispatch.spread.rank_spread import RankKernel, RankSpread
    from autotune.dispatch.spread.ranks import RankLost
    from autotune.dispatch.spread.spread import Report, Spread, SpreadKernel
    from autotune.dispatch.spread.team import Member

__all__ = [
    "ALLOCATIONS",
    "Chunk",
    "Member",
    "Prepared",
    "RankKernel",
    "RankLost",
    "RankSpread",
    "Report",
    "Spread",
    "SpreadKernel",
    "TunedKernel",
    "Units",
    "explained",
    "load",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "spread.plan": "ALLOCATIONS Chunk Units",
    "spread.rank_spread": "RankKernel RankSpread",
    "spread.ranks": "RankLost",
    "spread.spread": "Report Spread SpreadKernel",
    "spread.team": "Member",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
