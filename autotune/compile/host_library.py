"""A family's own code as a library: compiled when it is first wanted and kept in the user's cache."""

import ctypes
import hashlib
import shlex
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from autotune.compile.batches import compile_one
from autotune.compile.cache import Cache, default_root
from autotune.compile.hostcxx import RuntimeCxx, find_compiler
from autotune.compile.toolchain import Batch, BuildError, Built, Toolchain, VariantSource, run_compiler
from autotune.declaration import source_files


@cache
def library(source: Path, *headers: Path, arithmetic: bool = False, **returned: Any) -> ctypes.CDLL:
    """Compile C++ for the host and load it.

    ``source`` includes ``headers`` and needs the C library only. With ``arithmetic`` its loops are compiled for this
    processor's vectors. ``returned`` has the ctypes type of what a function returns, if that is not int. Raises
    CompilerError, and FamilyError if a file cannot be read or is edited during the compilation.
    """
    files = source_files.hash_files(source_files.follow_includes((source, *headers), source.parent))
    batch = Batch(
        source,
        (),
        (VariantSource(source_files.combine(files), source.stem, "", ()),),
        sources=tuple(files.values()),
    )
    command = find_compiler()
    made = _load(batch, RuntimeCxx(command, arithmetic), shlex.join(command))
    for function, kind in returned.items():
        getattr(made, function).restype = kind
    return made


@cache
def cuda_library(source: Path, arch: str) -> ctypes.CDLL:
    """Compile and load one CUDA file that calls a library of the toolkit, by nvcc, for devices of ``arch`` (sm_90).

    Raises CompilerError, also if there is no nvcc.
    """
    key = hashlib.sha256(source.read_bytes()).hexdigest()
    batch = Batch(source, (), (VariantSource(key, source.stem, "", ()),))
    return _load(batch, _SharedNvcc(arch), "nvcc")


def _load(batch: Batch, toolchain: Toolchain, compiler: str) -> ctypes.CDLL:
    failed = f"{compiler} does not compile {batch.source.name}: "
    return ctypes.CDLL(str(compile_one(batch, toolchain, Cache(default_root()), failed).image))


@dataclass(frozen=True)
class _SharedNvcc:
    """A toolchain that makes a shared library for ``arch``. Its identity leaves nvcc's version out: a library that is
    there will do, and then no toolkit is needed."""

    arch: str
    suffix: ClassVar = ".so"

    @property
    def identity(self) -> str:
        return f"nvcc shared library {self.arch}"

    def build(self, batch: Batch) -> Built:
        """Raises BuildError with nvcc's message, CompilerError when there is no nvcc."""
        from autotune.compile.nvcc import find_nvcc

        with tempfile.TemporaryDirectory(prefix="autotune-") as folder:
            made = Path(folder, "library.so")
            options = [
                "-shared", "-Xcompiler", "-fPIC", "-Xlinker", "-s", "-O3", "-std=c++17", f"-arch={self.arch}",
            ]  # fmt: skip
            command = [find_nvcc(), *options, "-o", str(made), str(batch.source)]
            status, answer, complaint = run_compiler(command)
            if status:
                raise BuildError(complaint or answer)
            return Built(made.read_bytes(), {variant.key: {} for variant in batch.variants}, {})
