"""What each policy value changes by itself: main effects over pairs that differ in one policy."""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from autotune.decision import time_ms
from autotune.record import Study
from autotune.space import PolicyValue
from autotune.trial import Trial

__all__ = ["effects_frame", "policy_values"]

MOST_VALUES = 12  # of a policy whose values are all compared with each other: 66 rows
_COLUMNS = (
    "policy", "base", "value", "pairs", "mean_percent", "median_percent", "minimum_percent",
    "maximum_percent", "faster_share",
)  # fmt: skip


def policy_values(study: Study) -> dict[str, tuple[PolicyValue, ...]]:
    """The values of each policy that the trials took, the control's first, then as declared, then as met."""
    declared = study.about.get("policies", {})
    met: dict[str, dict[PolicyValue, None]] = {name: {study.control[name]: None} for name in study.control}
    for name, values in met.items():
        seen = dict.fromkeys(trial.configuration[name] for trial in study.trials)
        order = declared.get(name, {}).get("values", ())
        values.update(dict.fromkeys(value for value in order if value in seen))
        values.update(seen)
    names = [name for name in declared if name in met]
    return {name: tuple(met[name]) for name in dict.fromkeys((*names, *met))}


def effects_frame(study: Study, kernel: str | None = None) -> pd.DataFrame:
    """A row for every two values of a policy that were measured with all other policies equal; of a policy
    with more than ``MOST_VALUES`` values, for each against the control's only.

    Such two trials are a pair; a pair's change is ``100 * (time with value / time with base - 1)`` percent,
    negative when ``value`` is faster. Columns: ``policy``, ``base`` (the control's value, or the one declared
    earlier), ``value``, ``pairs`` (how many), ``mean_percent``, ``median_percent``, ``minimum_percent``,
    ``maximum_percent`` over the pairs, and ``faster_share`` (0..1, pairs in which ``value`` is faster). With
    ``kernel``, the times are that kernel's, else the whole plan's.
    """
    values = policy_values(study)
    names = list(values)
    measured = [trial for trial in study.trials if trial.measurement]
    # Columns are numbers: a policy may be called anything, "time" too.
    table = pd.DataFrame(
        [[*(trial.configuration[name] for name in names), _time(trial, kernel)] for trial in measured],
        columns=range(len(names) + 1),
        dtype=object,
    )
    table = table.drop_duplicates(subset=list(range(len(names))), keep="last").dropna()
    rows = [row for i, name in enumerate(names) for row in _effects(table, i, name, values[name])]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _effects(
    table: pd.DataFrame, policy: int, name: str, values: Sequence[PolicyValue]
) -> list[tuple[object, ...]]:
    time = len(table.columns) - 1
    others = [column for column in range(time) if column != policy]
    group = table.groupby(others, sort=False).ngroup() if others else pd.Series(0, index=table.index)
    by_value = {
        value: pd.Series(
            table[time][table[policy] == value].to_numpy(float), index=group[table[policy] == value]
        )
        for value in values
    }
    rows: list[tuple[object, ...]] = []
    pairs = combinations(values, 2) if len(values) <= MOST_VALUES else ((values[0], v) for v in values[1:])
    for base, value in pairs:
        percent = (100 * (by_value[value] / by_value[base] - 1)).dropna()
        if percent.empty:
            continue
        statistics = (percent.mean(), percent.median(), percent.min(), percent.max(), (percent < 0).mean())
        rows.append((name, base, value, len(percent), *map(float, statistics)))
    return rows


def _time(trial: Trial, kernel: str | None) -> float | None:
    if kernel is None:
        return time_ms(trial) or None  # a time of zero has no ratio
    return trial.measurement.kernel_ms.get(kernel) or None if trial.measurement else None
