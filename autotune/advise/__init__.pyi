from .advice import (
    Advice as Advice,
    Costs as Costs,
    Suggestion as Suggestion,
    make_advice as make_advice,
    trace_configurations as trace_configurations,
)
from .plain import AdoptedKernel as AdoptedKernel, adopt_kernel as adopt_kernel, keep_advised as keep_advised
