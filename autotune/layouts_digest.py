"""The host side of the layout library as a hash: part of what a measurement depends on."""

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["layouts_digest"]

_FILES = ("data.py", "layout.py", "order.py", "packing.py")


@cache
def layouts_digest() -> str:
    """sha256 over the modules that transform arrays (their device side is in a family's source digest)."""
    digest = hashlib.sha256()
    for name in _FILES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()
