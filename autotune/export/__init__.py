"""Winners as CUDA C++ for programs without Python."""

from autotune.export.program import ExportRequest, export

__all__ = ["ExportRequest", "export"]
