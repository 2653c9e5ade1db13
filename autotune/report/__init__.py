"""Pages, charts and CSVs, from a record alone; a sweep as a function, and its progress."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.report.files import write_all, write_static_report
    from autotune.report.meter import Live, live, pace
    from autotune.report.static_pass import write_static
    from autotune.report.study import saved, sweep
    from autotune.report.trace import write_trace

__all__ = [
    "Live",
    "live",
    "pace",
    "saved",
    "sweep",
    "write_all",
    "write_static",
    "write_static_report",
    "write_trace",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "files": "write_all write_static_report",
    "meter": "Live live pace",
    "static_pass": "write_static",
    "study": "saved sweep",
    "trace": "write_trace",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
