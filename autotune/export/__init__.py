"""Winners as CUDA C++ for programs without Python."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.export.program import Request, export

__all__ = ["Request", "export"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "program": "Request export",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
