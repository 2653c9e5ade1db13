from .api import SweepResult as SweepResult, sweep as sweep
from .declaration.plain_kernel import Kernel as Kernel
from .dispatch import (
    Monitor as Monitor,
    Prepared as Prepared,
    TunedKernel as TunedKernel,
    load as load,
    torch_operator,
)
from .errors import AutotuneError as AutotuneError

import autotune.callables as _callables
import autotune.program as _program
import autotune.spread as _spread

__version__: str
torch = torch_operator
tune = _callables.tune
tuned = _callables.tuned
Program = _program.Program
Agreement = _spread.Agreement
