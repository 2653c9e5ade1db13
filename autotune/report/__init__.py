"""CSV and HTML from the record alone: no device, no kernel source, no network.

Importing this package loads neither pandas nor plotly; the first use of a name does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.report.page import write_report
    from autotune.report.results import write_results

__all__ = ["write_report", "write_results"]


def __getattr__(name: str) -> Any:
    if name == "write_report":
        from autotune.report.page import write_report

        return write_report
    if name == "write_results":
        from autotune.report.results import write_results

        return write_results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
