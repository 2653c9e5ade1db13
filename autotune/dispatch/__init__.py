"""The tuned kernel as a function of arrays, on one device or several."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotune.dispatch.kernel import Kernel, explained, load
from autotune.dispatch.prepared import Prepared

if TYPE_CHECKING:
    from autotune.dispatch.spread.plan import ALLOCATIONS as ALLOCATIONS
    from autotune.dispatch.spread.plan import Chunk as Chunk
    from autotune.dispatch.spread.plan import Units as Units
    from autotune.dispatch.spread.report import Report as Report
    from autotune.dispatch.spread.spread import Spread as Spread
    from autotune.dispatch.spread.spread import SpreadKernel as SpreadKernel
    from autotune.dispatch.spread.team import Member as Member

__all__ = [
    "ALLOCATIONS",
    "Chunk",
    "Kernel",
    "Member",
    "Prepared",
    "Report",
    "Spread",
    "SpreadKernel",
    "Units",
    "explained",
    "load",
]

_ON_DEMAND = {
    "ALLOCATIONS": "spread.plan",
    "Chunk": "spread.plan",
    "Units": "spread.plan",
    "Report": "spread.report",
    "Spread": "spread.spread",
    "SpreadKernel": "spread.spread",
    "Member": "spread.team",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
