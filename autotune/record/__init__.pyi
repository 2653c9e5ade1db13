from . import remarks as remarks
from .decision import (
    MOST as MOST,
    TIE as TIE,
    Decision as Decision,
    Margin as Margin,
    Minimax as Minimax,
    accuracy_class as accuracy_class,
    break_even as break_even,
    find_cheapest as find_cheapest,
    close_to_winner as close_to_winner,
    decide as decide,
    decide_classes as decide_classes,
    fastest_first as fastest_first,
    margin as margin,
    minimax as minimax,
    noise as noise,
    rank_trials as rank_trials,
    set_aside as set_aside,
)
from .identity import header as header
from .provenance import Baseline as Baseline, Provenance as Provenance
from .readers import (
    RANKING as RANKING,
    read_first_guesses as read_first_guesses,
    is_table as is_table,
    read_ceilings as read_ceilings,
    read_record as read_record,
)
from .results_csv import (
    read_results as read_results,
    results_frame as results_frame,
    write_results as write_results,
)
from .storages import holds_store as holds_store
from .store import Store as Store, StudyStore as StudyStore
from .study import (
    Study as Study,
    describe_study as describe_study,
    merge_latest as merge_latest,
    find_newest as find_newest,
    times_of as times_of,
)
from .trial import (
    FAILED as FAILED,
    STATES as STATES,
    Measurement as Measurement,
    State as State,
    Trial as Trial,
)
