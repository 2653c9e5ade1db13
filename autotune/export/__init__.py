"""Winners as CUDA C++ for programs without Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.export.program import Request, export

__all__ = ["Request", "export"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "program": "Request export",
}


def __getattr__(name: str) -> Any:
    for module, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
