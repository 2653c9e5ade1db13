"""A data-layout policy autotuner for CUDA kernels.

``load(family)`` gives the tuned kernel, ready to be called; ``sweep(family, ...)`` tunes it, as the command line does,
and only they import that. Importing this package loads nothing; the dispatcher loads numpy and PyYAML and nothing
heavier.
"""

from importlib import import_module
from typing import Any

import lazy_loader

__version__ = "0.1.0"
_load, _, _own = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    from autotune.extensions import EXTENSIONS

    packages = {each: package for package, one in EXTENSIONS.items() for each in one.names}
    if name == "__all__":  # without torch, which would hide the library of that name from import *
        return sorted({*_own, *packages, "__version__"} - {"torch"})
    return getattr(import_module(f"autotune.{packages[name]}"), name) if name in packages else _load(name)


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), "torch"})
