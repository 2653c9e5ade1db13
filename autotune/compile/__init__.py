"""From a configuration to a binary with its static profile: variants, batches, cache, occupancy."""

from typing import TYPE_CHECKING

from autotune import lazy

if TYPE_CHECKING:
    from autotune.compile.batches import compile_batch, compile_many, compile_one, compilers, worthwhile
    from autotune.compile.cache import Cache, default_root, is_trusted, put_file
    from autotune.compile.host_library import cuda_library, library
    from autotune.compile.hostcxx import (
        HostCxx,
        RuntimeCxx,
        cpu_model,
        find_compiler,
        runtime_batch,
        symbol_function,
    )
    from autotune.compile.listing import ptx, sass
    from autotune.compile.mangled import variable_names
    from autotune.compile.nvcc import Nvcc, find_nvcc, toolkit_program
    from autotune.compile.nvrtc import Nvrtc
    from autotune.compile.occupancy_model import LIMITS, occupancy
    from autotune.compile.plain_source import element_type, enumeration
    from autotune.compile.pool import Pool, ProcessDied
    from autotune.compile.profile import KernelProfile, profiles
    from autotune.compile.same_code import idle_policies, sameness
    from autotune.compile.stand_ins import lacked, lacking
    from autotune.compile.static_pass import (
        BLOCK_SIZES,
        OF_THE_BLOCK,
        Known,
        StaticProfile,
        better_neighbours,
        occupancy_curve,
        registers_to_next_block,
        static_sweep,
        static_toolchain,
    )
    from autotune.compile.told_version import is_compiler
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

__all__ = [
    "BLOCK_SIZES",
    "LIMITS",
    "OF_THE_BLOCK",
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
    "Pool",
    "ProcessDied",
    "RuntimeCxx",
    "StaticProfile",
    "Toolchain",
    "Variant",
    "VariantSource",
    "batch",
    "better_neighbours",
    "compile_batch",
    "compile_many",
    "compile_one",
    "compilers",
    "cpu_model",
    "cuda_library",
    "default_header",
    "default_root",
    "element_type",
    "enumeration",
    "find_compiler",
    "find_nvcc",
    "idle_policies",
    "is_compiler",
    "is_trusted",
    "lacked",
    "lacking",
    "library",
    "occupancy",
    "occupancy_curve",
    "profiles",
    "ptx",
    "put_file",
    "registers_to_next_block",
    "runtime_batch",
    "sameness",
    "sass",
    "scalar_bytes",
    "static_sweep",
    "static_toolchain",
    "symbol_function",
    "toolkit_program",
    "variable_names",
    "worthwhile",
]

_ON_DEMAND = {  # by module: who asks for a compiler's name pays for no other
    "listing": "ptx sass",
    "mangled": "variable_names",
    "nvcc": "Nvcc find_nvcc toolkit_program",
    "nvrtc": "Nvrtc",
    "occupancy_model": "LIMITS occupancy",
    "profile": "KernelProfile profiles",
    "same_code": "idle_policies sameness",
    "static_pass": "BLOCK_SIZES Known OF_THE_BLOCK StaticProfile better_neighbours "
    "occupancy_curve registers_to_next_block static_sweep static_toolchain",
    "batches": "compile_batch compile_many compile_one compilers worthwhile",
    "cache": "Cache default_root is_trusted put_file",
    "host_library": "cuda_library library",
    "hostcxx": "HostCxx RuntimeCxx cpu_model find_compiler runtime_batch symbol_function",
    "pool": "Pool ProcessDied",
    "told_version": "is_compiler",
    "toolchain": "Batch BuildError Built Compiled CompileFailure Toolchain VariantSource",
    "plain_source": "element_type enumeration",
    "stand_ins": "lacked lacking",
    "variant": "Geometry Variant batch default_header scalar_bytes",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
