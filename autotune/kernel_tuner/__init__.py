"""Coming from Kernel Tuner: ``from autotune.kernel_tuner import tune_kernel``, and the rest of the program stays.

The arguments are those of Kernel Tuner 1.5.0, and so are the results; in between lie a plain kernel
(``autotune.Kernel``) and a sweep (``autotune.sweep``): compiled ahead in parallel, every configuration verified, timed
in a process of its own. What has no counterpart is left out with a warning that says why.
"""

import sys
from typing import Any

import lazy_loader

_listed, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Kernel Tuner's modules, by whose names all of this can be imported, too.
_MODULES = (
    "accuracy", "file_utils", "integration", "interface", "nvml", "observers", "observers.ncu", "observers.nvml",
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
    if name in __all__:
        return _listed(name)
    if name.endswith("Observer"):
        return _listed("observer")(name)
    if name in _MODULES:
        return sys.modules[__name__]
    if name in _ABSENT:
        raise ImportError(f"Kernel Tuner's {name} has no counterpart in autotune: {_ABSENT[name]}")
    raise AttributeError(
        f"autotune.kernel_tuner has no {name!r}: of Kernel Tuner it has {', '.join(__all__)}, and observers"
    )
