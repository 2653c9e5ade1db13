"""Winners as CUDA C++ for programs without Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.export.program import Request as Request
    from autotune.export.program import export as export

__all__ = ["Request", "export"]

_ON_DEMAND = {
    "Request": "program",
    "export": "program",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
