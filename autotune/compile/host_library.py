"""A family's own C++ for the host, as a library: compiled when it is first wanted and kept in the user's cache."""

import ctypes
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.hostcxx import RuntimeCxx, find_compiler
from autotune.compile.toolchain import Batch, CompileFailure, VariantSource
from autotune.declaration import hashed, reached, together
from autotune.errors import CompilerError

__all__ = ["library"]


@cache
def library(source: Path, *headers: Path, arithmetic: bool = False, **returned: Any) -> ctypes.CDLL:
    """``source``, which includes ``headers`` and needs the C library only. With ``arithmetic`` its loops are made for
    this processor's vectors. ``returned`` has the ctypes type of what a function returns, where that is no int.
    Raises CompilerError, and FamilyError when a file cannot be read or is edited meanwhile."""
    files = hashed(reached((source, *headers), source.parent))
    batch = Batch(
        source, (), (VariantSource(together(files), source.stem, "", ()),), sources=tuple(files.values())
    )
    command = find_compiler()
    (built,) = compile_batch(batch, RuntimeCxx(command, arithmetic), Cache(default_root()))
    if isinstance(built, CompileFailure):
        raise CompilerError(f"{shlex.join(command)} does not compile {source.name}: {built.message}")
    made = ctypes.CDLL(str(built.image))
    for function, kind in returned.items():
        getattr(made, function).restype = kind
    return made
