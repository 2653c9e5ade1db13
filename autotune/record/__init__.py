"""Trials and studies, what they say (decision, effects, regret), and every way to keep or exchange them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotune.record.ceilings_file import read_limits
from autotune.record.decision import (
    MOST,
    OBJECTIVES,
    TIE,
    BreakEven,
    Decision,
    Margin,
    Minimax,
    accuracy_class,
    break_even,
    close_to_winner,
    cost_ms,
    decide_classes,
    margin,
    minimax,
    noise,
    objective_ms,
    ranked,
    time_ms,
)
from autotune.record.remarks import coverage, margin_text, moved, unbeaten
from autotune.record.study import Study
from autotune.record.trial import FAILED, STATES, Measurement, State, Trial

if TYPE_CHECKING:
    from autotune.record.effects import (
        COLUMNS,
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
    from autotune.record.kernel_tuner import write_cache
    from autotune.record.readers import import_files, latest, read_record
    from autotune.record.regret import print_regrets, read, write_matrix
    from autotune.record.results_csv import read_results, text_of, write_results
    from autotune.record.store import Store, StudyStore
    from autotune.record.t4 import write_t4

__all__ = [
    "COLUMNS",
    "FAILED",
    "MOST",
    "OBJECTIVES",
    "STATES",
    "TIE",
    "BreakEven",
    "Decision",
    "Importance",
    "Margin",
    "Measurement",
    "Minimax",
    "Pairing",
    "State",
    "Store",
    "Study",
    "StudyStore",
    "Timed",
    "Trial",
    "accuracy_class",
    "break_even",
    "close_to_winner",
    "contributions",
    "cost_ms",
    "coverage",
    "decide_classes",
    "effects_frame",
    "every_effect",
    "header",
    "import_files",
    "importance",
    "latest",
    "margin",
    "margin_text",
    "minimax",
    "moved",
    "noise",
    "objective_ms",
    "pairs",
    "policy_values",
    "print_regrets",
    "ranked",
    "read",
    "read_limits",
    "read_record",
    "read_results",
    "settings",
    "summarised",
    "text_of",
    "time_ms",
    "unbeaten",
    "write_cache",
    "write_matrix",
    "write_results",
    "write_t4",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "effects": "COLUMNS Importance Pairing Timed contributions effects_frame every_effect importance pairs "
    "policy_values settings summarised",
    "identity": "header",
    "kernel_tuner": "write_cache",
    "readers": "import_files latest read_record",
    "regret": "print_regrets read write_matrix",
    "results_csv": "read_results text_of write_results",
    "store": "Store StudyStore",
    "t4": "write_t4",
}


def __getattr__(name: str) -> Any:
    for module, names in _ON_DEMAND.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
