from .api import SweepResult as SweepResult, sweep as sweep
from .declaration.plain_kernel import Kernel as Kernel
from .dispatch import (
    Prepared as Prepared,
    TunedKernel as TunedKernel,
    Watch as Watch,
    load as load,
    torch_operator,
)
from .errors import AutotuneError as AutotuneError

import autotune.callables as _callables
import autotune.program as _program

__version__: str
torch = torch_operator
tune = _callables.tune
tuned = _callables.tuned
Program = _program.Program
