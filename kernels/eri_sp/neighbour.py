"""The modules of the eri family, which this one builds on."""

import functools
from importlib import import_module
from types import ModuleType

from autotune.family import load_family

__all__ = ["eri"]


@functools.cache  # a family is read anew each time
def eri(name: str) -> ModuleType:
    """``kernels/eri/<name>.py``, as that family loads it."""
    family = load_family("eri", check=False).module
    assert family is not None, "kernels/eri/family.py ships with this family"
    return import_module(f"{family.__name__}.{name}")
