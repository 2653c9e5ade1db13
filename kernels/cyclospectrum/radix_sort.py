"""CUB's device radix sort (NVIDIA CCCL, part of the CUDA toolkit) as a shared library, made by nvcc when it is first
wanted and kept in the user's cache."""

import ctypes
from pathlib import Path

from autotune.family import cuda_library

__all__ = ["radix_sort"]

_SOURCE = Path(__file__).with_name("radix_sort.cu")


def radix_sort(
    arch: str, keys: int, result: int, spare: int, workspace: tuple[int, int], count: int, bits: int, stream: int
) -> None:  # fmt: skip
    """Queue the sort of ``count`` unsigned 32-bit keys by their lowest ``bits`` bits on ``stream``: from address
    ``keys`` to ``result``; ``keys``, ``spare`` and ``workspace`` (address, bytes) are overwritten. ``result`` may be
    ``keys``. Raises CompilerError, and RuntimeError with CUDA's status."""
    place, nbytes = workspace
    pointers = [ctypes.c_void_p(address) for address in (keys, result, spare, place)]
    status = cuda_library(_SOURCE, arch).cyclospectrum_radix_sort(
        *pointers,
        ctypes.c_ulonglong(nbytes),
        ctypes.c_int(count),
        ctypes.c_int(bits),
        ctypes.c_void_p(stream),
    )
    if status:
        raise RuntimeError(f"CUB's radix sort of {count} keys: CUDA error {status}")
