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
    from autotune.record.effects import COLUMNS as COLUMNS
    from autotune.record.effects import Importance as Importance
    from autotune.record.effects import Pairing as Pairing
    from autotune.record.effects import Timed as Timed
    from autotune.record.effects import contributions as contributions
    from autotune.record.effects import effects_frame as effects_frame
    from autotune.record.effects import every_effect as every_effect
    from autotune.record.effects import importance as importance
    from autotune.record.effects import pairs as pairs
    from autotune.record.effects import policy_values as policy_values
    from autotune.record.effects import settings as settings
    from autotune.record.effects import summarised as summarised
    from autotune.record.identity import header as header
    from autotune.record.kernel_tuner import write_cache as write_cache
    from autotune.record.readers import import_files as import_files
    from autotune.record.readers import latest as latest
    from autotune.record.readers import read_record as read_record
    from autotune.record.regret import print_regrets as print_regrets
    from autotune.record.regret import read as read
    from autotune.record.regret import write_matrix as write_matrix
    from autotune.record.results_csv import read_results as read_results
    from autotune.record.results_csv import text_of as text_of
    from autotune.record.results_csv import write_results as write_results
    from autotune.record.store import Store as Store
    from autotune.record.store import StudyStore as StudyStore
    from autotune.record.t4 import write_t4 as write_t4

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

_ON_DEMAND = {
    "COLUMNS": "effects",
    "Importance": "effects",
    "Pairing": "effects",
    "Timed": "effects",
    "contributions": "effects",
    "effects_frame": "effects",
    "every_effect": "effects",
    "importance": "effects",
    "pairs": "effects",
    "policy_values": "effects",
    "settings": "effects",
    "summarised": "effects",
    "header": "identity",
    "write_cache": "kernel_tuner",
    "import_files": "readers",
    "latest": "readers",
    "read_record": "readers",
    "print_regrets": "regret",
    "read": "regret",
    "write_matrix": "regret",
    "read_results": "results_csv",
    "text_of": "results_csv",
    "write_results": "results_csv",
    "Store": "store",
    "StudyStore": "store",
    "write_t4": "t4",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
