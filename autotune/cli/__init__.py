"""The commands: their options, what they print, and ``lint`` and ``new`` for families."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.cli.commands import app, main

__all__ = ["app", "main"]


__getattr__ = lazy(__name__, {"commands": "app main"})  # one that needs no options of others does without
