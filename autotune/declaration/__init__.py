"""What a family and a workload say: data, kernels, policies, the space they span, expressions; the YAML itself."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.declaration import yamlfile
from autotune.declaration.access import ACCESSOR, POINTER, SYMBOL, cpp_type
from autotune.declaration.auto_values import written_out
from autotune.declaration.compile_options import MIN_BLOCKS
from autotune.declaration.completions import Completions
from autotune.declaration.expression import Expression, Value
from autotune.declaration.family import families, load_family
from autotune.declaration.family_folder import Family
from autotune.declaration.kernel_text import another_type
from autotune.declaration.members import (
    MOST_LISTED,
    Listed,
    Members,
    Unlisted,
    can_be_listed,
    columns,
    encode,
    listed,
    narrowed,
)
from autotune.declaration.orders import ORDERS, DeclaredOrder
from autotune.declaration.parse import BASELINE, ITSELF, Kernel
from autotune.declaration.source_files import (
    CONVERT,
    EDITORS_HEADER,
    LIBRARY,
    SUFFIXES,
    hashed,
    included_names,
    reached,
    together,
)
from autotune.declaration.space import (
    AS_GIVEN,
    Configuration,
    Constraint,
    Policy,
    PolicyValue,
    Preset,
    Space,
    single_presets,
)
from autotune.declaration.tolerance import FOR_FLOATS, IGNORE, WRONG, Tolerance
from autotune.declaration.workload import (
    Inputs,
    MalformedNpy,
    Workload,
    bind,
    find_data,
    load_workload,
    prepare,
    read_npy,
    workloads,
)

if TYPE_CHECKING:
    from autotune.declaration.asked_kernel import AskedKernel, KernelArgument, kept
    from autotune.declaration.formula import evaluated
    from autotune.declaration.parameters import BLOCK_NAMES, Parameters
    from autotune.declaration.shared import (
        SharedArray,
        SharedInputs,
        has_arrays,
        read_arrays,
        shared_array,
        shared_arrays,
        write_arrays,
    )

__all__ = [
    "ACCESSOR",
    "AS_GIVEN",
    "BASELINE",
    "BLOCK_NAMES",
    "CONVERT",
    "EDITORS_HEADER",
    "FOR_FLOATS",
    "IGNORE",
    "ITSELF",
    "LIBRARY",
    "MIN_BLOCKS",
    "MOST_LISTED",
    "ORDERS",
    "POINTER",
    "SUFFIXES",
    "SYMBOL",
    "WRONG",
    "AskedKernel",
    "Completions",
    "Configuration",
    "Constraint",
    "DeclaredOrder",
    "Expression",
    "Family",
    "Inputs",
    "Kernel",
    "KernelArgument",
    "Listed",
    "MalformedNpy",
    "Members",
    "Parameters",
    "Policy",
    "PolicyValue",
    "Preset",
    "SharedArray",
    "SharedInputs",
    "Space",
    "Tolerance",
    "Unlisted",
    "Value",
    "Workload",
    "another_type",
    "bind",
    "can_be_listed",
    "columns",
    "cpp_type",
    "encode",
    "evaluated",
    "families",
    "find_data",
    "has_arrays",
    "hashed",
    "included_names",
    "kept",
    "listed",
    "load_family",
    "load_workload",
    "narrowed",
    "prepare",
    "reached",
    "read_arrays",
    "read_npy",
    "shared_array",
    "shared_arrays",
    "single_presets",
    "together",
    "workloads",
    "write_arrays",
    "written_out",
    "yamlfile",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "asked_kernel": "AskedKernel KernelArgument kept",
    "formula": "evaluated",
    "parameters": "BLOCK_NAMES Parameters",
    "shared": "SharedArray SharedInputs has_arrays read_arrays shared_array shared_arrays write_arrays",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
