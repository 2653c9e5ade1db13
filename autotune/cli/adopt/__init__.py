"""``autotune adopt``: a family folder from a kernel's text, and the proof that both do the same."""

from autotune.cli.adopt.command import Asked, adopt

__all__ = ["Asked", "adopt"]
