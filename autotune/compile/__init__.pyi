from . import (
    occupancy_model as occupancy_model,
    same_code as same_code,
    stand_ins as stand_ins,
    static_pass as static_pass,
)
from .batches import (
    compile_batch as compile_batch,
    compile_many as compile_many,
    compile_one as compile_one,
    compilers as compilers,
    limit_processes as limit_processes,
)
from .cache import (
    Cache as Cache,
    default_root as default_root,
    is_trusted as is_trusted,
    put_file as put_file,
)
from .host_library import cuda_library as cuda_library, library as library
from .hostcxx import (
    VIOLATION as VIOLATION,
    HostCxx as HostCxx,
    RuntimeCxx as RuntimeCxx,
    make_checking_command as make_checking_command,
    cpu_model as cpu_model,
    find_compiler as find_compiler,
    is_compiler as is_compiler,
    runtime_batch as runtime_batch,
    symbol_function as symbol_function,
)
from .nvcc import (
    Nvcc as Nvcc,
    sass as sass,
    toolkit_program as toolkit_program,
    variable_names as variable_names,
)
from .nvrtc import Nvrtc as Nvrtc, ptx as ptx
from .plain_source import element_type as element_type, enumeration as enumeration
from .pool import Pool as Pool, ProcessDied as ProcessDied, do_job as do_job
from .profile import KernelProfile as KernelProfile, profiles as profiles
from .static_pass import StaticProfile as StaticProfile
from .toolchain import (
    Batch as Batch,
    BuildError as BuildError,
    Built as Built,
    Compiled as Compiled,
    CompileFailure as CompileFailure,
    Toolchain as Toolchain,
    VariantSource as VariantSource,
)
from .variant import (
    Geometry as Geometry,
    Variant as Variant,
    batch as batch,
    default_header as default_header,
    scalar_bytes as scalar_bytes,
)
