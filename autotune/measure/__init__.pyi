from .answer import Answer as Answer, Reference as Reference, answered as answered
from .ceilings import CEILINGS as CEILINGS, measured_ceilings as measured_ceilings
from .deviation import Deviations as Deviations
from .energy import (
    ENERGY_SECONDS as ENERGY_SECONDS,
    Energy as Energy,
    call_energies as call_energies,
    call_energy as call_energy,
    idle_watts as idle_watts,
)
from .ncu import COUNTERS as COUNTERS, find_ncu as find_ncu, profile as profile
from .profiler_range import nvtx_range as nvtx_range
from .reference import Swept as Swept, expected_outputs as expected_outputs
from .sampling import (
    CPU as CPU,
    CUDA as CUDA,
    LONG_MS as LONG_MS,
    Protocol as Protocol,
    Samples as Samples,
    floors as floors,
    hopeless_ms as hopeless_ms,
    interleave as interleave,
    measure as measure,
    median as median,
    spread as spread,
)
from .verify import (
    AGAIN as AGAIN,
    GUARD_BYTES as GUARD_BYTES,
    PROOF_VERSION as PROOF_VERSION,
    Verifier as Verifier,
)
from .watched_process import Result as Result, Task as Task, watched as watched
