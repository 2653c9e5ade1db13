"""The engine: compile, place, verify, measure, record, retry."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.sweep.crew import launched, opened
    from autotune.sweep.engine import Interrupted, Sweep
    from autotune.sweep.process_worker import TRIAL_SECONDS
    from autotune.sweep.sanitizer import TOOLS, find_sanitizer, findings, sanitized
    from autotune.sweep.worker import Worker

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

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "crew": "launched opened",
    "engine": "Interrupted Sweep",
    "process_worker": "TRIAL_SECONDS",
    "sanitizer": "TOOLS find_sanitizer findings sanitized",
    "worker": "Worker",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
