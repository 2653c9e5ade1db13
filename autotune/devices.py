"""From what a user names (auto, cpu, cuda, cuda:1) to a backend."""

import ctypes
import warnings
from typing import Any

from autotune.backends import Backend
from autotune.errors import DeviceError, UnknownName

__all__ = ["has_driver", "open_backend"]


def open_backend(name: str = "auto") -> Backend:
    """The backend for ``name``; ``auto`` is the first GPU, or the cpu with a warning that says why. The caller closes
    it. Raises DeviceError when a GPU was asked for and is not there, UnknownName for anything else."""
    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
        raise UnknownName("device", name, ("auto", "cpu", "cuda", "cuda:N"))
    if kind == "cpu":
        return _cpu()
    try:
        from autotune.backends.cuda import CudaBackend

        return CudaBackend(int(number or 0))
    except DeviceError as problem:
        if kind == "cuda":
            raise
        reason = problem if has_driver() else "no GPU found"
        warnings.warn(f"running on the cpu: {reason}", stacklevel=5)  # at the line that calls autotune.load
        return _cpu()


def has_driver() -> bool:
    """Whether NVIDIA's driver is installed: without it there is no GPU, and nothing to be mended."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _cpu() -> Backend:
    from autotune.backends.cpu import CpuBackend

    backend: Any = CpuBackend()
    return backend  # type: ignore[no-any-return]
