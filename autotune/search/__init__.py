"""Which configuration next: samplers, and the search that gives each configuration once and within limits."""

from autotune.search.search import Search
from autotune.search.strategy import SAMPLERS, Strategy

__all__ = ["SAMPLERS", "Search", "Strategy"]
