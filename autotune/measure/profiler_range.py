"""Named ranges for NVIDIA's profilers: what a sweep does at a moment, beside its kernels in Nsight Systems.

The package nvtx makes them (``pip install '.[nvtx]'``); without it, with one that was built for another Python,
or without a profiler, they are nothing.
"""

import importlib
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

_DOMAIN = "autotune"


def nvtx_range(name: str, category: str) -> AbstractContextManager[Any]:
    """``category`` is ``trial`` or ``phase``; ranges may lie within each other."""
    nvtx = _nvtx()
    return nvtx.annotate(message=name, category=category, domain=_DOMAIN) if nvtx else nullcontext()


@cache
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None
