from .acceptance import (
    accuracy_asked as accuracy_asked,
    changed as changed,
    entry_refusal as entry_refusal,
    file_refusal as file_refusal,
    known_configuration as known_configuration,
    other_accuracy as other_accuracy,
    stale as stale,
)
from .admission import MaxError as MaxError, admitted as admitted, fastest_admitted as fastest_admitted
from .comparison import (
    Change as Change,
    Comparison as Comparison,
    comparisons as comparisons,
    read_side as read_side,
)
from .coverage import (
    MOST_NUMBERS as MOST_NUMBERS,
    Point as Point,
    Range as Range,
    next_point as next_point,
    promised as promised,
)
from .device_crossover import crossover as crossover, operations as operations, volume as volume
from .features import Features as Features, feature_values as feature_values, nearest as nearest
from .file import (
    Crossover as Crossover,
    Entry as Entry,
    PolicyFile as PolicyFile,
    device_told as device_told,
    file_name as file_name,
    read_policy_file as read_policy_file,
    write as write,
)
from .merge import (
    covering as covering,
    locked as locked,
    merged as merged,
    new_entries as new_entries,
    put as put,
    update as update,
)
from .prediction import Taught as Taught
from .refined import Refined as Refined, write_refined as write_refined
from .renewal import (
    contradictions as contradictions,
    figures as figures,
    needed as needed,
    renewable as renewable,
    renewed as renewed,
)
from .selection import (
    Candidate as Candidate,
    Policies as Policies,
    basis as basis,
    beyond_proved as beyond_proved,
    candidates as candidates,
    choose as choose,
    file_of as file_of,
    find as find,
    of_objective as of_objective,
    untuned as untuned,
)
