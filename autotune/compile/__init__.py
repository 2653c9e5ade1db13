"""From a configuration to a binary with its static profile: variants, batches, cache, occupancy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotune.compile.batches import compile_batch, compile_many, compilers, worthwhile
from autotune.compile.cache import Cache, default_root, is_trusted, put_file
from autotune.compile.host_library import library
from autotune.compile.hostcxx import HostCxx, RuntimeCxx, cpu_model, find_compiler, runtime_batch
from autotune.compile.toolchain import (
    Batch,
    BuildError,
    Built,
    Compiled,
    CompileFailure,
    Toolchain,
    VariantSource,
)
from autotune.compile.variant import Geometry, Variant, batch, default_header, scalar_bytes

if TYPE_CHECKING:
    from autotune.compile.nvcc import Nvcc as Nvcc
    from autotune.compile.nvcc import find_nvcc as find_nvcc
    from autotune.compile.nvrtc import Nvrtc as Nvrtc
    from autotune.compile.occupancy_model import LIMITS as LIMITS
    from autotune.compile.occupancy_model import occupancy as occupancy
    from autotune.compile.profile import KernelProfile as KernelProfile
    from autotune.compile.profile import profiles as profiles
    from autotune.compile.same_code import idle_policies as idle_policies
    from autotune.compile.same_code import sameness as sameness
    from autotune.compile.static_pass import _HINTS as _HINTS
    from autotune.compile.static_pass import BLOCK_SIZES as BLOCK_SIZES
    from autotune.compile.static_pass import OF_THE_BLOCK as OF_THE_BLOCK
    from autotune.compile.static_pass import Known as Known
    from autotune.compile.static_pass import StaticProfile as StaticProfile
    from autotune.compile.static_pass import _figures as _figures
    from autotune.compile.static_pass import better_neighbours as better_neighbours
    from autotune.compile.static_pass import occupancy_curve as occupancy_curve
    from autotune.compile.static_pass import registers_to_next_block as registers_to_next_block
    from autotune.compile.static_pass import static_sweep as static_sweep
    from autotune.compile.static_pass import static_toolchain as static_toolchain

__all__ = [
    "BLOCK_SIZES",
    "LIMITS",
    "OF_THE_BLOCK",
    "_HINTS",
    "Batch",
    "BuildError",
    "Built",
    "Cache",
    "CompileFailure",
    "Compiled",
    "Geometry",
    "HostCxx",
    "KernelProfile",
    "Known",
    "Nvcc",
    "Nvrtc",
    "RuntimeCxx",
    "StaticProfile",
    "Toolchain",
    "Variant",
    "VariantSource",
    "_figures",
    "batch",
    "better_neighbours",
    "compile_batch",
    "compile_many",
    "compilers",
    "cpu_model",
    "default_header",
    "default_root",
    "find_compiler",
    "find_nvcc",
    "idle_policies",
    "is_trusted",
    "library",
    "occupancy",
    "occupancy_curve",
    "profiles",
    "put_file",
    "registers_to_next_block",
    "runtime_batch",
    "sameness",
    "scalar_bytes",
    "static_sweep",
    "static_toolchain",
    "worthwhile",
]

_ON_DEMAND = {
    "Nvcc": "nvcc",
    "find_nvcc": "nvcc",
    "Nvrtc": "nvrtc",
    "LIMITS": "occupancy_model",
    "occupancy": "occupancy_model",
    "KernelProfile": "profile",
    "profiles": "profile",
    "idle_policies": "same_code",
    "sameness": "same_code",
    "BLOCK_SIZES": "static_pass",
    "Known": "static_pass",
    "OF_THE_BLOCK": "static_pass",
    "StaticProfile": "static_pass",
    "_HINTS": "static_pass",
    "_figures": "static_pass",
    "better_neighbours": "static_pass",
    "occupancy_curve": "static_pass",
    "registers_to_next_block": "static_pass",
    "static_sweep": "static_pass",
    "static_toolchain": "static_pass",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
