"""Tables as values: raw figures with the unit in the column's key, shown rounded, downloaded whole."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from autotune import figures as units
from autotune.declaration import Configuration
from autotune.measure import QUANTITIES, unit
from autotune.record import Decision, Trial
from autotune.report.charts import Chart

Kind = Literal[
    "text", "configuration", "count", "time", "spread", "percent", "change", "points", "share", "ratio", "rate",
    "regret", "correlation", "bytes", "number", "seconds", "error", "energy", "power",
]  # fmt: skip
_KINDS: Mapping[str, Kind] = {"ms": "time", "bytes": "bytes", "j": "energy", "w": "power", "s": "seconds"}

_SHOW: Mapping[str, Callable[[float], str]] = {
    "count": units.count, "time": units.duration, "spread": units.spread, "percent": units.percent,
    "share": units.share, "ratio": units.ratio, "rate": units.si, "regret": units.ratio,
    "change": units.percent, "points": units.points, "correlation": units.correlation, "bytes": units.size,
    "number": units.number, "seconds": units.seconds, "error": units.error, "energy": units.energy,
    "power": units.power,
}  # fmt: skip


# What a cell's shade says, and how much of the darkest one it gets: a regret's from 2 on, a change's from 50 %.
_SHADES: Mapping[str, Callable[[float], tuple[str, float]]] = {
    "regret": lambda ratio: ("worse", math.sqrt(max(0.0, ratio - 1))),
    "change": lambda percent: ("worse" if percent > 0 else "better", abs(percent) / 50),
    "correlation": lambda number: ("better" if number > 0 else "worse", abs(number)),
}


@dataclass(frozen=True)
class Column:
    """``key`` is the column's name in the download, with its unit; ``label`` the heading; ``kind`` how a
    value is shown: ``regret`` is a ratio, ``change`` a percent and ``correlation`` a number with a shade behind it;
    ``of`` gives a trial's value."""

    key: str
    label: str
    kind: Kind = "text"
    of: Callable[[Trial], Any] = lambda trial: None

    @property
    def numeric(self) -> bool:
        return self.kind in _SHOW

    def show(self, value: Any) -> str:
        """``value`` for people; empty when there is none."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return _SHOW[self.kind](float(value)) if self.numeric else str(value)

    def format_raw(self, value: Any) -> str:
        """``value`` for the download."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return value.id if isinstance(value, Configuration) else str(value)

    def shade(self, value: Any) -> tuple[str, float]:
        """``worse``, ``better`` or nothing, and how dark it is, 0 to 0.4, so that the text stays readable."""
        if self.kind not in _SHADES or value is None or math.isnan(value):
            return "", 0.0
        said, share = _SHADES[self.kind](value)
        return said, round(0.4 * min(1.0, share), 3)


@dataclass(frozen=True)
class Table:
    """``name`` is the download's file name without its ending; a row has a value (or None) per column."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def make(cls, name: str, caption: str, columns: Sequence[Column], trials: Iterable[Trial]) -> "Table":
        """A row for each of ``trials``."""
        rows = tuple(tuple(column.of(trial) for column in columns) for trial in trials)
        return cls(name, caption, tuple(columns), rows)


def drop_empty_columns(table: Table) -> Table:
    """``table`` without the columns that have no value in any row (registers on a cpu)."""
    kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A chart, the table with its figures, or both, under a ``title`` with a ``text``. On a wide screen they stand side
    by side unless ``stacked``; ``folded`` hides the block, ``folded_table`` only the table, until asked for; ``half``
    blocks stand two in a row."""

    title: str = ""
    text: str = ""
    table: Table | None = None
    chart: Chart | None = None
    stacked: bool = False
    folded: bool = False
    folded_table: bool = False
    half: bool = False


def figure_column(name: str) -> Column:
    """The column of a figure."""
    return Column(name, QUANTITIES[name].label, _KINDS[unit(name)], _part(name, "value"))


def spread_column(name: str) -> Column:
    """The column of a figure's interval."""
    stem = name.rpartition("_")[0]
    key = "spread_relative" if stem == "time" else f"{stem}_spread_relative"
    return Column(key, "±", "spread", _part(name, "spread"))


def _part(name: str, part: str) -> Callable[[Trial], Any]:
    """That part of a trial's figure; None where it was not measured."""
    return lambda trial: getattr(trial.measurement and trial.measurement.figure(name), part, None)


def make_over_winner(decision: Decision) -> Column:
    """The column of a time over the winner's."""
    return replace(
        OVER_WINNER, of=lambda trial: trial.time_ms / decision.winner.time_ms if trial.measurement else None
    )


TIME: Column = figure_column("time_ms")
SPREAD: Column = spread_column("time_ms")
FOOTPRINT: Column = figure_column("footprint_bytes")
SENT = figure_column("transfer_bytes")
ONCE = Column("once_ms", "once", "time", lambda trial: trial.once_ms if trial.measurement else None)
OVER_WINNER: Column = Column("time_over_winner", "× winner", "ratio")
ERROR = Column("error_relative", "error", "error", lambda trial: trial.error)
REGISTERS: Column = Column("registers", "registers", "count", lambda trial: trial.registers)
OCCUPANCY: Column = Column("occupancy", "occupancy", "share", lambda trial: trial.occupancy)
CONFIGURATION: Column = Column(
    "configuration", "configuration", "configuration", lambda trial: trial.configuration
)
