"""A sweep: compile, place, verify, measure, record; failed trials, dead processes; finalists and their proof."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.engine.joining import request_of
    from autotune.engine.process_worker import TRIAL_SECONDS
    from autotune.engine.runner import launched, opened
    from autotune.engine.session import (
        Case,
        Session,
        SweepRequest,
        Swept,
        Watched,
        raise_unless_measured,
        sweeping,
    )
    from autotune.engine.sweep import NotAsked, Sweep, SweepInterrupted
    from autotune.engine.worker import Worker

__all__ = [
    "TRIAL_SECONDS",
    "Case",
    "NotAsked",
    "Session",
    "Sweep",
    "SweepInterrupted",
    "SweepRequest",
    "Swept",
    "Watched",
    "Worker",
    "launched",
    "opened",
    "raise_unless_measured",
    "request_of",
    "sweeping",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "joining": "request_of",
    "process_worker": "TRIAL_SECONDS",
    "runner": "launched opened",
    "session": "Case Session SweepRequest Swept Watched raise_unless_measured sweeping",
    "sweep": "NotAsked Sweep SweepInterrupted",
    "worker": "Worker",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
