"""Tables as values: raw figures with the unit in the column's key, shown rounded, downloaded whole."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from autotune.report import units
from autotune.space import Configuration

__all__ = [
    "CONFIGURATION",
    "OCCUPANCY",
    "OVER_WINNER",
    "SPREAD",
    "TIME",
    "Column",
    "Kind",
    "Table",
    "without_empty",
]

Kind = Literal[
    "text", "configuration", "count", "time", "spread", "percent", "share", "ratio", "rate", "regret"
]
_SHOW: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "count": units.count, "time": units.time, "spread": units.spread, "percent": units.percent,
        "share": units.share, "ratio": units.ratio, "rate": units.si, "regret": units.ratio,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """``key`` is the column's name in the download, with its unit; ``label`` the heading; ``kind`` how a
    value is shown (``regret`` is a ratio with a shade behind it)."""

    key: str
    label: str
    kind: Kind = "text"

    @property
    def numeric(self) -> bool:
        return self.kind in _SHOW

    def show(self, value: Any) -> str:
        """``value`` for people; empty when there is none."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return _SHOW[self.kind](float(value)) if self.numeric else str(value)

    def raw(self, value: Any) -> str:
        """``value`` for the download."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return value.id if isinstance(value, Configuration) else str(value)

    def shade(self, value: Any) -> float:
        """How dark the cell is: 0 at a ratio of 1 to 0.45 from 2 on, so that the text stays readable."""
        if self.kind != "regret" or value is None or math.isnan(value):
            return 0.0
        return round(0.45 * min(1.0, math.sqrt(max(0.0, value - 1))), 3)


@dataclass(frozen=True)
class Table:
    """``name`` is the download's file name without its ending; a row has a value (or None) per column."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


def without_empty(table: Table) -> Table:
    """``table`` without the columns that have no value in any row (registers on a cpu)."""
    kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)


TIME = Column("time_ms", "time", "time")
SPREAD = Column("spread_relative", "±", "spread")
OVER_WINNER = Column("time_over_winner", "× winner", "ratio")
OCCUPANCY = Column("occupancy", "occupancy", "share")
CONFIGURATION = Column("configuration", "configuration", "configuration")
