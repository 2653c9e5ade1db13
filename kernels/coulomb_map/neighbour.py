"""The modules of the coulomb family, which this one builds on."""

from importlib import import_module
from types import ModuleType

from autotune.family import load_family

__all__ = ["coulomb"]


def coulomb(name: str) -> ModuleType:
    """``kernels/coulomb/<name>.py``, as that family loads it."""
    family = load_family("coulomb", check=False).module
    assert family is not None, "kernels/coulomb/family.py ships with this family"
    return import_module(f"{family.__name__}.{name}")
