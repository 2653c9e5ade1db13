from . import ceilings as ceilings, ncu as ncu, sampling as sampling
from .deviation import Deviations as Deviations
from .figure import (
    KERNEL as KERNEL,
    OBJECTIVES as OBJECTIVES,
    ONE_CALL as ONE_CALL,
    QUANTITIES as QUANTITIES,
    TIME as TIME,
    Figure as Figure,
    Objective as Objective,
    find_objective as find_objective,
    spread as spread,
    unit as unit,
)
from .profiled_process import (
    WatchedResult as WatchedResult,
    WatchedTask as WatchedTask,
    run_watched as run_watched,
)
from .reference import (
    GivenOutputs as GivenOutputs,
    Reference as Reference,
    SweptDevice as SweptDevice,
    evaluate_reference as evaluate_reference,
    compute_expected as compute_expected,
)
from .sampling import (
    CPU as CPU,
    CUDA as CUDA,
    Protocol as Protocol,
    Samples as Samples,
    Timing as Timing,
)
from .verify import (
    AGAIN as AGAIN,
    GUARD_BYTES as GUARD_BYTES,
    PROOF_VERSION as PROOF_VERSION,
    Verifier as Verifier,
)
