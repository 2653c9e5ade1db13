"""CUB's device radix sort (NVIDIA CCCL, part of the CUDA toolkit) as a shared library, made by nvcc when it is first
wanted and kept in the user's cache."""

import ctypes
import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autotune.compile import (
    Batch,
    BuildError,
    Built,
    Cache,
    CompileFailure,
    VariantSource,
    compile_batch,
    default_root,
    find_nvcc,
)
from autotune.errors import CompilerError

__all__ = ["SharedNvcc", "radix_sort"]

_SOURCE = Path(__file__).with_name("radix_sort.cu")


@dataclass(frozen=True)
class SharedNvcc:
    """A toolchain that makes a shared library for ``arch`` (sm_90). Its identity leaves nvcc's version out: a library
    that is there will do, and then no toolkit is needed."""

    arch: str

    @property
    def identity(self) -> str:
        return f"nvcc shared library {self.arch}"

    @property
    def suffix(self) -> str:
        return ".so"

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with nvcc's message, CompilerError when there is no nvcc."""
        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            made = Path(folder, "library.so")
            options = [
                "-shared", "-Xcompiler", "-fPIC", "-Xlinker", "-s", "-O3", "-std=c++17", f"-arch={self.arch}",
            ]  # fmt: skip
            command = [find_nvcc(), *options, "-o", str(made), str(batch.source)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode:
                raise BuildError(done.stderr or done.stdout)
            return Built(made.read_bytes(), {variant.key: {} for variant in batch.variants}, {})


@cache
def _library(arch: str) -> ctypes.CDLL:
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()
    batch = Batch(_SOURCE, (), (VariantSource(key, _SOURCE.stem, "", ()),))
    (built,) = compile_batch(batch, SharedNvcc(arch), Cache(default_root()))
    if isinstance(built, CompileFailure):
        raise CompilerError(f"nvcc does not compile {_SOURCE.name}: {built.message}")
    return ctypes.CDLL(str(built.image))


def radix_sort(
    arch: str, keys: int, result: int, spare: int, workspace: tuple[int, int], count: int, bits: int, stream: int
) -> None:  # fmt: skip
    """Queue the sort of ``count`` unsigned 32-bit keys by their lowest ``bits`` bits on ``stream``: from address
    ``keys`` to ``result``; ``keys``, ``spare`` and ``workspace`` (address, bytes) are overwritten. ``result`` may be
    ``keys``. Raises CompilerError, and RuntimeError with CUDA's status."""
    place, nbytes = workspace
    pointers = [ctypes.c_void_p(address) for address in (keys, result, spare, place)]
    status = _library(arch).cyclospectrum_radix_sort(
        *pointers,
        ctypes.c_ulonglong(nbytes),
        ctypes.c_int(count),
        ctypes.c_int(bits),
        ctypes.c_void_p(stream),
    )
    if status:
        raise RuntimeError(f"CUB's radix sort of {count} keys: CUDA error {status}")
