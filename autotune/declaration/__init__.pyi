from . import yamlfile as yamlfile
from .access import KEYWORDS as KEYWORDS, POINTER as POINTER, SYMBOL as SYMBOL, cpp_type as cpp_type
from .expression import Expression as Expression, Value as Value, compiled as compiled
from .family import families as families, load_family as load_family
from .family_folder import Family as Family
from .kernel_text import (
    Parameter as Parameter,
    another_type as another_type,
    definition as definition,
    signature as signature,
    without_comments as without_comments,
)
from .members import (
    MOST_LISTED as MOST_LISTED,
    Listed as Listed,
    Members as Members,
    Unlisted as Unlisted,
    can_be_listed as can_be_listed,
    columns as columns,
    encode as encode,
    listed as listed,
    narrowed as narrowed,
)
from .orders import ORDERS as ORDERS, DeclaredOrder as DeclaredOrder
from .parse import BASELINE as BASELINE, ITSELF as ITSELF, FamilyKernel as FamilyKernel
from .shared import (
    SharedArray as SharedArray,
    SharedInputs as SharedInputs,
    has_arrays as has_arrays,
    read_arrays as read_arrays,
    shared_array as shared_array,
    shared_arrays as shared_arrays,
    write_arrays as write_arrays,
)
from .source_files import (
    CONVERT as CONVERT,
    EDITORS_HEADER as EDITORS_HEADER,
    LIBRARY as LIBRARY,
    SUFFIXES as SUFFIXES,
    hashed as hashed,
    quoted_includes as quoted_includes,
    reached as reached,
    together as together,
)
from .space import (
    AS_GIVEN as AS_GIVEN,
    FULL as FULL,
    POSSIBLE as POSSIBLE,
    Configuration as Configuration,
    Constraint as Constraint,
    Policy as Policy,
    PolicyValue as PolicyValue,
    Preset as Preset,
    Space as Space,
    Steps as Steps,
    single_presets as single_presets,
)
from .tolerance import FOR_FLOATS as FOR_FLOATS, IGNORE as IGNORE, WRONG as WRONG, Tolerance as Tolerance
from .workload import (
    Inputs as Inputs,
    MalformedNpy as MalformedNpy,
    Units as Units,
    Workload as Workload,
    bind as bind,
    find_data as find_data,
    load_workload as load_workload,
    prepare as prepare,
    read_npy as read_npy,
    workloads as workloads,
)
