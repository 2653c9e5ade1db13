"""Pages, charts and CSVs, from a record alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.report.files import write_all as write_all
    from autotune.report.files import write_static_report as write_static_report
    from autotune.report.static_pass import write_static as write_static

__all__ = ["write_all", "write_static", "write_static_report"]

_ON_DEMAND = {
    "write_all": "files",
    "write_static_report": "files",
    "write_static": "static_pass",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
