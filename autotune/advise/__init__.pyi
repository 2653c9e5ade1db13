from .advice import (
    Advice as Advice,
    Costs as Costs,
    Suggestion as Suggestion,
    make_advice as make_advice,
    trace_configurations as trace_configurations,
)
from .changes import LayoutChange as LayoutChange, find_arrays as find_arrays, find_changes as find_changes
