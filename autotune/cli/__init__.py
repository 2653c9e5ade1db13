"""One module a command; printing only here."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.cli.commands import app as app
    from autotune.cli.commands import main as main

__all__ = ["app", "main"]

_ON_DEMAND = {
    "app": "commands",
    "main": "commands",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
