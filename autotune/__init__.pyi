from .api import SweepResult as SweepResult, sweep as sweep
from .declaration.plain_kernel import Kernel as Kernel
from .dispatch import (
    Monitor as Monitor,
    Prepared as Prepared,
    TunedKernel as TunedKernel,
    load as load,
)
from .errors import AutotuneError as AutotuneError

import autotune.callables as _callables
import autotune.export as _export
import autotune.program as _program
import autotune.registry as _registry
import autotune.spread as _spread

__version__: str
torch = _export.torch
tune = _callables.tune
tuned = _callables.tuned
Program = _program.Program
Agreement = _spread.Agreement
pull = _registry.pull
push = _registry.push
