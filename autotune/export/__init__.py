"""Winners as CUDA C++ for programs without Python."""

from autotune.export.program import export

__all__ = ["export"]
