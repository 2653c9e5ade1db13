"""Pages, charts and CSVs, from a record alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.report.files import write_all, write_static_report
    from autotune.report.static_pass import write_static

__all__ = ["write_all", "write_static", "write_static_report"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "files": "write_all write_static_report",
    "static_pass": "write_static",
}


def __getattr__(name: str) -> Any:
    for module, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
