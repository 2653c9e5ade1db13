from . import acceptance as acceptance, prediction as prediction
from .file import (
    Entry as Entry,
    PolicyFile as PolicyFile,
    content as content,
    file_name as file_name,
    lock as lock,
    read_policy_file as read_policy_file,
    write as write,
)
from .frozen import Frozen as Frozen, resolve_frozen as resolve_frozen
from .merge import (
    record_coverage as record_coverage,
    merge_winners as merge_winners,
    new_entries as new_entries,
    update as update,
)
from .prediction import feature_values as feature_values
from .refined import keep_refined as keep_refined
from .selection import (
    Candidate as Candidate,
    Policies as Policies,
    admit as admit,
    basis as basis,
    find_beyond_proved as find_beyond_proved,
    candidates as candidates,
    choose as choose,
    file_of as file_of,
    rank_challengers as rank_challengers,
    find as find,
    select_objective as select_objective,
    explain_untuned as explain_untuned,
)
