"""Which configuration next: samplers, and the search that gives each configuration once and within limits."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.search.search import Search
    from autotune.search.strategy import SAMPLERS, Strategy

__all__ = ["SAMPLERS", "Search", "Strategy"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "search": "Search",
    "strategy": "SAMPLERS Strategy",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
