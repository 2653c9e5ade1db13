"""The commands: their options, what they print, and ``lint`` and ``new`` for families."""

from autotune.cli.commands import app, main

__all__ = ["app", "main"]
