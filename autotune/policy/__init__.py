"""Winners kept in policy files, compared, refused, and chosen for an input."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.policy.acceptance import (
    accuracy_asked,
    changed,
    entry_refusal,
    file_refusal,
    known_configuration,
    other_accuracy,
    stale,
)
from autotune.policy.admission import MaxError, admitted, fastest_admitted
from autotune.policy.device_crossover import crossover, operations, volume
from autotune.policy.features import Features, feature_values, nearest
from autotune.policy.file import (
    Crossover,
    Entry,
    PolicyFile,
    device_told,
    file_name,
    read_policy_file,
    write,
)
from autotune.policy.selection import (
    Candidate,
    Policies,
    basis,
    beyond_proved,
    candidates,
    choose,
    file_of,
    find,
    find_ahead,
    of_objective,
    untuned,
)

if TYPE_CHECKING:
    from autotune.policy.comparison import Change, Comparison, comparisons, read_side
    from autotune.policy.coverage import MOST_NUMBERS, Point, Range, next_point, promised
    from autotune.policy.merge import covering, locked, merged, new_entries, put, update
    from autotune.policy.prediction import Taught
    from autotune.policy.refined import Refined, write_refined
    from autotune.policy.renewal import contradictions, figures, needed, renewable, renewed

__all__ = [
    "MOST_NUMBERS",
    "Candidate",
    "Change",
    "Comparison",
    "Crossover",
    "Entry",
    "Features",
    "MaxError",
    "Point",
    "Policies",
    "PolicyFile",
    "Range",
    "Refined",
    "Taught",
    "accuracy_asked",
    "admitted",
    "basis",
    "beyond_proved",
    "candidates",
    "changed",
    "choose",
    "comparisons",
    "contradictions",
    "covering",
    "crossover",
    "device_told",
    "entry_refusal",
    "fastest_admitted",
    "feature_values",
    "figures",
    "file_name",
    "file_of",
    "file_refusal",
    "find",
    "find_ahead",
    "known_configuration",
    "locked",
    "merged",
    "nearest",
    "needed",
    "new_entries",
    "next_point",
    "of_objective",
    "operations",
    "other_accuracy",
    "promised",
    "put",
    "read_policy_file",
    "read_side",
    "renewable",
    "renewed",
    "stale",
    "untuned",
    "update",
    "volume",
    "write",
    "write_refined",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "comparison": "Change Comparison comparisons read_side",
    "coverage": "MOST_NUMBERS Point Range next_point promised",
    "merge": "covering locked merged new_entries put update",
    "prediction": "Taught",
    "refined": "Refined write_refined",
    "renewal": "contradictions figures needed renewable renewed",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
