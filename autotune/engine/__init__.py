"""A sweep: compile, place, verify, measure, record; failed trials, dead processes; finalists and their proof."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.engine.process_worker import TRIAL_SECONDS
    from autotune.engine.runner import launched, opened
    from autotune.engine.sanitizer import TOOLS, find_sanitizer, findings, sanitized
    from autotune.engine.sweep import Sweep, SweepInterrupted
    from autotune.engine.worker import Worker

__all__ = [
    "TOOLS",
    "TRIAL_SECONDS",
    "Sweep",
    "SweepInterrupted",
    "Worker",
    "find_sanitizer",
    "findings",
    "launched",
    "opened",
    "sanitized",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "sweep": "Sweep SweepInterrupted",
    "process_worker": "TRIAL_SECONDS",
    "runner": "launched opened",
    "sanitizer": "TOOLS find_sanitizer findings sanitized",
    "worker": "Worker",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
