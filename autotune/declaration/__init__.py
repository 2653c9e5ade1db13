"""What a family and a workload say: data, kernels, policies, the space they span, expressions."""

from autotune.declaration.expression import Expression, Value
from autotune.declaration.family import Family, families, load_family
from autotune.declaration.members import (
    MOST_LISTED,
    Listed,
    Members,
    Unlisted,
    columns,
    encode,
    listed,
    narrowed,
)
from autotune.declaration.parse import Kernel
from autotune.declaration.shared import SharedInputs
from autotune.declaration.source_files import (
    EDITORS_HEADER,
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

__all__ = [
    "AS_GIVEN",
    "EDITORS_HEADER",
    "MOST_LISTED",
    "SUFFIXES",
    "Configuration",
    "Constraint",
    "Expression",
    "Family",
    "Inputs",
    "Kernel",
    "Listed",
    "MalformedNpy",
    "Members",
    "Policy",
    "PolicyValue",
    "Preset",
    "SharedInputs",
    "Space",
    "Unlisted",
    "Value",
    "Workload",
    "bind",
    "columns",
    "encode",
    "families",
    "find_data",
    "hashed",
    "included_names",
    "listed",
    "load_family",
    "load_workload",
    "narrowed",
    "prepare",
    "reached",
    "read_npy",
    "single_presets",
    "together",
    "workloads",
]
