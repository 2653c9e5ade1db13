"""Pages, charts and CSVs, from a record alone."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.report.files import write_all, write_static_report
    from autotune.report.static_pass import write_static

__all__ = ["write_all", "write_static", "write_static_report"]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "files": "write_all write_static_report",
    "static_pass": "write_static",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
