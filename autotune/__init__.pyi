from .api import SweepResult as SweepResult, sweep as sweep
from .declaration.plain_kernel import Kernel as Kernel
from .dispatch import Prepared as Prepared, TunedKernel as TunedKernel, load as load, torch_operator
from .errors import AutotuneError as AutotuneError
from .program import Program as Program

import autotune.callables as _callables

__version__: str
torch = torch_operator
tune = _callables.tune
tuned = _callables.tuned
