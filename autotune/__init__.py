"""A data-layout policy autotuner for CUDA kernels.

``load(family)`` gives the tuned kernel, ready to be called; ``sweep(family, ...)`` tunes it, as the command line does,
and only they import that. Importing this package loads nothing; the dispatcher loads numpy and PyYAML and nothing
heavier.
"""

import sys
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from autotune.api import Study as Study
    from autotune.api import sweep as sweep
    from autotune.declaration.plain_kernel import Kernel as Kernel
    from autotune.dispatch import (
        Prepared as Prepared,
    )
    from autotune.dispatch import (
        TunedKernel as TunedKernel,
    )
    from autotune.dispatch import (
        load as load,
    )
    from autotune.dispatch import (
        torch_operator,
    )
    from autotune.errors import AutotuneError as AutotuneError
    from autotune.report import study_html as study_html

    torch = torch_operator

__version__ = "0.1.0"
# Not torch: import * would hide the library of that name.
__all__ = [
    "AutotuneError",
    "Kernel",
    "Prepared",
    "Study",
    "TunedKernel",
    "__version__",
    "load",
    "sweep",
]


def lazy(
    package: str,
    names: "Mapping[str, str]",
    face: str = "",
    whole: "Mapping[str, str]" = MappingProxyType({}),
) -> "Callable[[str], Any]":
    """The ``__getattr__`` of ``package``, or of the module ``face`` that offers its names: ``names``, by the module
    that has them, are imported when they are asked for, so that nobody pays for the others. ``whole`` modules are
    offered by a name of their own. ``dir`` of it, which completion asks, has what is offered and nothing else."""
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def imported(name: str) -> Any:
        if name in whole:
            return import_module(f"{package}.{whole[name]}")
        if name not in modules:
            raise AttributeError(f"module {face or package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    own = vars(sys.modules[face or package])
    own["__dir__"] = lambda: sorted({*own.get("__all__", ()), *modules, *whole})
    return imported


__getattr__ = lazy(
    __name__,
    {
        "api": "Study sweep",
        "declaration.plain_kernel": "Kernel",
        "dispatch": "TunedKernel Prepared load",
        "errors": "AutotuneError",
        "report": "study_html",
    },
    whole={"torch": "dispatch.torch_operator"},
)
