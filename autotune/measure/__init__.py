"""Correct before fast: references, verification, then sampling; ceilings and hardware counters."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.measure.deviation import Deviations
from autotune.measure.profiler_range import nvtx_range
from autotune.measure.reference import Swept, expected_outputs
from autotune.measure.sampling import (
    CPU,
    CUDA,
    LONG_MS,
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
    from autotune.measure.answer import Answer, Reference, answered
    from autotune.measure.ceilings import CEILINGS, measured_ceilings
    from autotune.measure.energy import ENERGY_SECONDS, Energy, call_energies, call_energy, idle_watts
    from autotune.measure.forecasts import PARTS, Forecast, Launched, by_cycles, forecast, unseen_policies
    from autotune.measure.ncu import COUNTERS, find_ncu, profile
    from autotune.measure.traced_ranking import static_ranking
    from autotune.measure.warp_requests import Requests, requests
    from autotune.measure.watched_process import Result, Task, watched

__all__ = [
    "AGAIN",
    "CEILINGS",
    "COUNTERS",
    "CPU",
    "CUDA",
    "ENERGY_SECONDS",
    "GUARD_BYTES",
    "LONG_MS",
    "PARTS",
    "PROOF_VERSION",
    "Answer",
    "Deviations",
    "Energy",
    "Forecast",
    "Launched",
    "Protocol",
    "Reference",
    "Requests",
    "Result",
    "Samples",
    "Swept",
    "Task",
    "Verifier",
    "answered",
    "by_cycles",
    "call_energies",
    "call_energy",
    "expected_outputs",
    "find_ncu",
    "floors",
    "forecast",
    "hopeless_ms",
    "idle_watts",
    "interleave",
    "measure",
    "measured_ceilings",
    "median",
    "nvtx_range",
    "profile",
    "requests",
    "spread",
    "static_ranking",
    "unseen_policies",
    "watched",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "answer": "Answer Reference answered",
    "ceilings": "CEILINGS measured_ceilings",
    "energy": "ENERGY_SECONDS Energy call_energies call_energy idle_watts",
    "forecasts": "PARTS Forecast Launched forecast by_cycles unseen_policies",
    "ncu": "COUNTERS find_ncu profile",
    "warp_requests": "Requests requests",
    "traced_ranking": "static_ranking",
    "watched_process": "Result Task watched",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
