"""One module a command; printing only here."""

from autotune.cli.commands import app, main

__all__ = ["app", "main"]
