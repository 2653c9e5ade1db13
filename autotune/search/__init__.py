"""Which configuration next."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.search.ask_tell import METHODS, Search, default_trials, search
    from autotune.search.offline import read_results, replay, space

__all__ = ["METHODS", "Search", "default_trials", "read_results", "replay", "search", "space"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "ask_tell": "METHODS Search default_trials search",
    "offline": "read_results replay space",
}


def __getattr__(name: str) -> Any:
    for module, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
