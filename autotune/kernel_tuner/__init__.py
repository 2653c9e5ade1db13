"""Coming from Kernel Tuner: ``from autotune.kernel_tuner import tune_kernel``, and the rest of the program stays.

The arguments are those of Kernel Tuner 1.5.0, and so are the results; in between lie a plain kernel
(``autotune.Kernel``) and a sweep (``autotune.sweep``): compiled ahead in parallel, every configuration verified, timed
in a process of its own. What has no counterpart is left out with a warning that says why.
"""

import sys
from typing import Any

from autotune.kernel_tuner.observers import observer
from autotune.kernel_tuner.results import (
    CompilationFailedConfig,
    InvalidConfig,
    RuntimeFailedConfig,
    get_best_config,
    get_config_string,
    store_metadata_file,
    store_output_file,
    store_results,
)
from autotune.kernel_tuner.tuning import run_kernel, tune_cache, tune_kernel

__all__ = [
    "CompilationFailedConfig",
    "InvalidConfig",
    "RuntimeFailedConfig",
    "get_best_config",
    "get_config_string",
    "run_kernel",
    "store_metadata_file",
    "store_output_file",
    "store_results",
    "tune_cache",
    "tune_kernel",
]

# Kernel Tuner's modules, by whose names all of this can be imported, too.
_MODULES = (
    "accuracy", "file_utils", "integration", "interface", "nvml", "observers.ncu", "observers.nvml",
    "observers.observer", "observers.pmt", "observers.register", "observers.tegra", "util",
)  # fmt: skip
for _name in _MODULES:
    sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]

_ABSENT = {
    "KernelBuilder": "autotune.load calls a kernel",
    "TunablePrecision": "a precision that is tuned is a policy that a family names under accuracy:",
    "create_device_targets": "autotune export writes a header with the winners of devices",
    "tune_kernel_T1": "autotune sweep FILE.json takes a T1 file",
}


def __getattr__(name: str) -> Any:
    if name.endswith("Observer"):
        return observer(name)
    if name in _MODULES:
        return sys.modules[__name__]
    if name in _ABSENT:
        raise ImportError(f"Kernel Tuner's {name} has no counterpart in autotune: {_ABSENT[name]}")
    raise AttributeError(
        f"autotune.kernel_tuner has no {name!r}: of Kernel Tuner it has {', '.join(__all__)}, and observers"
    )


def __dir__() -> list[str]:
    return __all__
