"""The engine: compile, place, verify, measure, record, retry."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.sweep.crew import launched as launched
    from autotune.sweep.crew import opened as opened
    from autotune.sweep.engine import Interrupted as Interrupted
    from autotune.sweep.engine import Sweep as Sweep
    from autotune.sweep.process_worker import TRIAL_SECONDS as TRIAL_SECONDS
    from autotune.sweep.sanitizer import TOOLS as TOOLS
    from autotune.sweep.sanitizer import find_sanitizer as find_sanitizer
    from autotune.sweep.sanitizer import findings as findings
    from autotune.sweep.sanitizer import sanitized as sanitized
    from autotune.sweep.worker import Worker as Worker

__all__ = [
    "TOOLS",
    "TRIAL_SECONDS",
    "Interrupted",
    "Sweep",
    "Worker",
    "find_sanitizer",
    "findings",
    "launched",
    "opened",
    "sanitized",
]

_ON_DEMAND = {
    "launched": "crew",
    "opened": "crew",
    "Interrupted": "engine",
    "Sweep": "engine",
    "TRIAL_SECONDS": "process_worker",
    "TOOLS": "sanitizer",
    "find_sanitizer": "sanitizer",
    "findings": "sanitizer",
    "sanitized": "sanitizer",
    "Worker": "worker",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
