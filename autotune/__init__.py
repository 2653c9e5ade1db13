"""A data-layout policy autotuner for CUDA kernels.

``load(family)`` gives the tuned kernel, ready to be called; everything that tunes is imported only by the
command line. Importing this package loads nothing; the dispatcher loads numpy and PyYAML and nothing heavier.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotune.dispatch import Kernel as Kernel
    from autotune.dispatch import Prepared as Prepared
    from autotune.dispatch import load as load
    from autotune.errors import AutotuneError as AutotuneError
    from autotune.report.notebook import study_html as study_html

__version__ = "0.1.0"
__all__ = ["AutotuneError", "Kernel", "Prepared", "__version__", "load"]

_LAZY = {
    "load": "autotune.dispatch",
    "Kernel": "autotune.dispatch",
    "Prepared": "autotune.dispatch",
    "AutotuneError": "autotune.errors",
    "study_html": "autotune.report.notebook",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'autotune' has no attribute {name!r}")
