"""One module a command; printing only here."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.cli.commands import app, main

__all__ = ["app", "main"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "commands": "app main",
}


def __getattr__(name: str) -> Any:
    for module, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
