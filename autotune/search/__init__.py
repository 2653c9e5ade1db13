"""Which configuration next."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.search.ask_tell import METHODS, Search, default_trials, search
    from autotune.search.offline import read_results, replay, space

__all__ = ["METHODS", "Search", "default_trials", "read_results", "replay", "search", "space"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "ask_tell": "METHODS Search default_trials search",
    "offline": "read_results replay space",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
