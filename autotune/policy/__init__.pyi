from .acceptance import (
    file_refusal as file_refusal,
    known_configuration as known_configuration,
    own_configuration as own_configuration,
    stale as stale,
)
from .claim import Claim as Claim
from .comparison import (
    Change as Change,
    Comparison as Comparison,
    comparisons as comparisons,
    read_side as read_side,
)
from .file import (
    Entry as Entry,
    PolicyFile as PolicyFile,
    file_name as file_name,
    read_policy_file as read_policy_file,
)
from .merge import (
    covering as covering,
    merged as merged,
    new_entries as new_entries,
    update as update,
)
from .prediction import (
    Point as Point,
    Range as Range,
    Taught as Taught,
    feature_values as feature_values,
    next_point as next_point,
    operations as operations,
    promised as promised,
    taught_at as taught_at,
)
from .refined import Refined as Refined
from .selection import (
    Candidate as Candidate,
    MaxError as MaxError,
    Policies as Policies,
    admitted as admitted,
    basis as basis,
    beyond_proved as beyond_proved,
    candidates as candidates,
    choose as choose,
    file_of as file_of,
    find as find,
    of_objective as of_objective,
    untuned as untuned,
)
