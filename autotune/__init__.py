"""A data-layout policy autotuner for CUDA kernels.

``load(family)`` gives the tuned kernel, ready to be called; ``sweep(family, ...)`` tunes it, as the command line does,
and only they import that. Importing this package loads nothing; the dispatcher loads numpy and PyYAML and nothing
heavier.
"""

from importlib import import_module
from typing import Any

import lazy_loader

__version__ = "0.1.0"
_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
__all__.remove("torch_operator")  # as torch it would hide the library of that name from import *


def __getattr__(name: str) -> Any:
    if name == "torch":
        return import_module("autotune.dispatch.torch_operator")
    from autotune.extensions import EXTENSIONS

    package = next((package for package, one in EXTENSIONS.items() if name in one.names), "")
    return getattr(import_module(f"autotune.{package}"), name) if package else _load(name)


def __dir__() -> list[str]:
    return sorted({*__all__, "torch"})
