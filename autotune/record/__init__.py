"""Trials, studies, their identity, what they say (decision, effects, regret), and ways to keep and exchange them."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.record.objective import (
    ENERGY,
    OBJECTIVES,
    accuracy_class,
    checked_objective,
    time_of,
)

if TYPE_CHECKING:
    from autotune.record.baseline import Baseline
    from autotune.record.costs import cost, cost_text, once_ms, time_ms
    from autotune.record.decision import (
        MOST,
        TIE,
        BreakEven,
        Decision,
        Margin,
        Minimax,
        break_even,
        cheapest,
        close_to_winner,
        decide,
        decide_classes,
        fastest_first,
        margin,
        minimax,
        noise,
        ranked,
        set_aside,
    )
    from autotune.record.effects import (
        Importance,
        Pairing,
        Timed,
        contributions,
        effects_frame,
        every_effect,
        importance,
        pairs,
        policy_values,
        settings,
        summarised,
    )
    from autotune.record.identity import header
    from autotune.record.kernel_tuner import ERRORS, parsed, write_cache
    from autotune.record.optuna_log import quiet_optuna
    from autotune.record.provenance import Provenance
    from autotune.record.ranking_csv import RANKING, first_guesses, write_ranking
    from autotune.record.readers import holds_store, import_files, is_table, read_ceilings, read_record
    from autotune.record.regret import Regrets, read_regrets, write_matrix
    from autotune.record.remarks import (
        coverage,
        failures,
        margin_text,
        moved,
        reasons,
        states_text,
        unbeaten,
    )
    from autotune.record.results_csv import read_results, results_frame, write_results
    from autotune.record.store import Store, StudyStore
    from autotune.record.study import Study, latest, newest, newest_of_each, times_of
    from autotune.record.t4 import metadata_t4, results_t4, write_t4
    from autotune.record.trial import FAILED, STATES, Measurement, State, Trial

__all__ = [
    "ENERGY",
    "ERRORS",
    "FAILED",
    "MOST",
    "OBJECTIVES",
    "RANKING",
    "STATES",
    "TIE",
    "Baseline",
    "BreakEven",
    "Decision",
    "Importance",
    "Margin",
    "Measurement",
    "Minimax",
    "Pairing",
    "Provenance",
    "Regrets",
    "State",
    "Store",
    "Study",
    "StudyStore",
    "Timed",
    "Trial",
    "accuracy_class",
    "break_even",
    "cheapest",
    "checked_objective",
    "close_to_winner",
    "contributions",
    "cost",
    "cost_text",
    "coverage",
    "decide",
    "decide_classes",
    "effects_frame",
    "every_effect",
    "failures",
    "fastest_first",
    "first_guesses",
    "header",
    "holds_store",
    "import_files",
    "importance",
    "is_table",
    "latest",
    "margin",
    "margin_text",
    "metadata_t4",
    "minimax",
    "moved",
    "newest",
    "newest_of_each",
    "noise",
    "once_ms",
    "pairs",
    "parsed",
    "policy_values",
    "quiet_optuna",
    "ranked",
    "read_ceilings",
    "read_record",
    "read_regrets",
    "read_results",
    "reasons",
    "results_frame",
    "results_t4",
    "set_aside",
    "settings",
    "states_text",
    "summarised",
    "time_ms",
    "time_of",
    "times_of",
    "unbeaten",
    "write_cache",
    "write_matrix",
    "write_ranking",
    "write_results",
    "write_t4",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "baseline": "Baseline",
    "costs": "cost cost_text once_ms time_ms",
    "decision": "MOST TIE BreakEven Decision Margin Minimax break_even cheapest close_to_winner "
    "decide decide_classes fastest_first margin minimax noise ranked set_aside",
    "provenance": "Provenance",
    "remarks": "coverage failures margin_text moved reasons states_text unbeaten",
    "study": "Study latest newest newest_of_each times_of",
    "trial": "FAILED STATES Measurement State Trial",
    "effects": "Importance Pairing Timed contributions effects_frame every_effect importance pairs "
    "policy_values settings summarised",
    "identity": "header",
    "kernel_tuner": "ERRORS parsed write_cache",
    "optuna_log": "quiet_optuna",
    "ranking_csv": "RANKING first_guesses write_ranking",
    "readers": "holds_store import_files is_table read_ceilings read_record",
    "regret": "Regrets read_regrets write_matrix",
    "results_csv": "read_results results_frame write_results",
    "store": "Store StudyStore",
    "t4": "metadata_t4 results_t4 write_t4",
}


__getattr__ = lazy(__name__, _ON_DEMAND)
