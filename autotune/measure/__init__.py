"""Right before fast: references, verification, then sampling; ceilings and hardware counters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotune.measure.reference import expected_outputs
from autotune.measure.sampling import (
    CPU,
    CUDA,
    Protocol,
    Samples,
    floors,
    hopeless_ms,
    interleave,
    measure,
    median,
    spread,
)
from autotune.measure.verify import AGAIN, GUARD_BYTES, PROOF_VERSION, Verifier

if TYPE_CHECKING:
    from autotune.measure.ceilings import CEILINGS as CEILINGS
    from autotune.measure.ceilings import measured as measured
    from autotune.measure.ncu import COUNTERS as COUNTERS
    from autotune.measure.ncu import find_ncu as find_ncu
    from autotune.measure.ncu import profile as profile
    from autotune.measure.ncu_process import Result as Result
    from autotune.measure.ncu_process import Task as Task
    from autotune.measure.ncu_process import watched as watched

__all__ = [
    "AGAIN",
    "CEILINGS",
    "COUNTERS",
    "CPU",
    "CUDA",
    "GUARD_BYTES",
    "PROOF_VERSION",
    "Protocol",
    "Result",
    "Samples",
    "Task",
    "Verifier",
    "expected_outputs",
    "find_ncu",
    "floors",
    "hopeless_ms",
    "interleave",
    "measure",
    "measured",
    "median",
    "profile",
    "spread",
    "watched",
]

_ON_DEMAND = {
    "CEILINGS": "ceilings",
    "measured": "ceilings",
    "COUNTERS": "ncu",
    "find_ncu": "ncu",
    "profile": "ncu",
    "Result": "ncu_process",
    "Task": "ncu_process",
    "watched": "ncu_process",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
