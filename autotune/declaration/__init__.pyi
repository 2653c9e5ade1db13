from . import (
    kernel_text as kernel_text,
    source_files as source_files,
    tolerance as tolerance,
    yamlfile as yamlfile,
)
from .access import KEYWORDS as KEYWORDS, POINTER as POINTER, SYMBOL as SYMBOL, cpp_type as cpp_type
from .expression import Expression as Expression, Value as Value, compile_node as compile_node
from .family import families as families, load_family as load_family
from .family_folder import Family as Family
from .orders import DeclaredOrder as DeclaredOrder
from .parse import BASELINE as BASELINE, FamilyKernel as FamilyKernel
from .plain_kernel import keep_files as keep_files
from .source_files import CONVERT as CONVERT, LIBRARY as LIBRARY
from .source_text import SourceText as SourceText
from .space import (
    FULL as FULL,
    POSSIBLE as POSSIBLE,
    Configuration as Configuration,
    Constraint as Constraint,
    Policy as Policy,
    PolicyValue as PolicyValue,
    Space as Space,
    Steps as Steps,
    find_single_presets as find_single_presets,
)
from .tolerance import Tolerance as Tolerance
from .workload import (
    Inputs as Inputs,
    Units as Units,
    Workload as Workload,
    bind as bind,
    find_data as find_data,
    load_workload as load_workload,
    make_array as make_array,
    prepare as prepare,
    read_npy as read_npy,
    workloads as workloads,
)
