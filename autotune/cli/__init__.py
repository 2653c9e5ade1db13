"""One module a command; printing only here."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.cli.commands import app, main

__all__ = ["app", "main"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "commands": "app main",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
