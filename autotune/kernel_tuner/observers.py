"""What stands for Kernel Tuner's observers: a program that makes some goes on, and nothing is observed."""

import warnings
from typing import Any

NOTHING = "power, clocks and registers are not observed (hardware counters: autotune profile)"


class _Observer:
    def __init__(self, *_given: Any, **_named: Any) -> None:
        warnings.warn(f"{type(self).__name__} has no counterpart in autotune: {NOTHING}", stacklevel=2)


def observer(name: str) -> type:
    """A class of that name, to be called and inherited from."""
    return type(name, (_Observer,), {})


def __getattr__(name: str) -> type:
    if name.endswith("Observer"):
        return observer(name)
    raise AttributeError(f"autotune.kernel_tuner.observers has no {name!r}")
