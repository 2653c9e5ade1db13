"""Which configuration next."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.search.ask_tell import METHODS as METHODS
    from autotune.search.ask_tell import Search as Search
    from autotune.search.ask_tell import default_trials as default_trials
    from autotune.search.ask_tell import search as search
    from autotune.search.offline import read_results as read_results
    from autotune.search.offline import replay as replay
    from autotune.search.offline import space as space

__all__ = ["METHODS", "Search", "default_trials", "read_results", "replay", "search", "space"]

_ON_DEMAND = {
    "METHODS": "ask_tell",
    "Search": "ask_tell",
    "default_trials": "ask_tell",
    "search": "ask_tell",
    "read_results": "offline",
    "replay": "offline",
    "space": "offline",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
