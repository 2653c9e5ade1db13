"""Section 4, of one workload: what is traded for time, and from how many calls on a costlier layout pays."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autotune import figures as units
from autotune.declaration import Configuration
from autotune.measure import OBJECTIVES, Objective
from autotune.record import Decision, Study, Trial, find_cheapest
from autotune.report.blocks import (
    CONFIGURATION,
    FOOTPRINT,
    ONCE,
    SPREAD,
    TIME,
    Block,
    Column,
    Table,
    figure_column,
    make_over_winner,
    spread_column,
)
from autotune.report.charts import Chart, Line, Point, cloud, lines
from autotune.report.result_section import Roles

MOST_POINTS = 3000
MOST_ON_FRONT = 30
_NAMED = ("winner", "control")  # of a chart's points


def find_front(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Which of ``costs`` nothing beats: no other is at most as high in all and lower in one."""
    table = np.array(costs, dtype=float)
    kept = np.zeros(len(table), dtype=bool)
    beaten = np.empty_like(table)
    size = 0
    for i in np.lexsort(table.T[::-1]):  # what beats i comes before it
        before = beaten[:size]
        if not ((before <= table[i]).all(axis=1) & (before != table[i]).any(axis=1)).any():
            kept[i], beaten[size] = True, table[i]
            size += 1
    return [bool(one) for one in kept]


def choice_blocks(study: Study, decision: Decision, trials: Sequence[Trial], roles: Roles) -> list[Block]:
    """``trials`` are the rows of the page's table, fastest first."""
    timed = [trial for trial in trials if trial.measurement]
    rows = {trial.configuration: row for row, trial in enumerate(trials)}
    blocks = []
    for column, against, title in (
        (FOOTPRINT, "memory", "device memory that the data takes"),
        (ONCE, "the cost of the layout", "cost of the layout, once"),
    ):
        values = {column.of(trial) for trial in timed}
        if len(values) > 1 and None not in values:
            points = _points(column, timed, rows, roles)
            blocks.append(
                Block(title=f"Time against {against}", chart=_chart(column, points, title), half=True)
            )
    columns = (
        TIME, make_over_winner(decision), FOOTPRINT, replace(ONCE, label="transform and transfer, once"), CONFIGURATION
    )  # fmt: skip
    on = find_front([(t.time_ms, t.footprint_bytes, t.once_ms) for t in timed])
    best = [trial for trial, is_front in zip(timed, on, strict=True) if is_front]
    caption = f"Pareto front: none is at most as high in time, footprint and cost once, and lower in one ({len(best)})"
    if len(best) > MOST_ON_FRONT:
        caption = f"{caption[:-1]}, the {MOST_ON_FRONT} fastest of them)"
    table = Table.make("pareto", caption, columns, best[:MOST_ON_FRONT])
    blocks.append(Block(table=table, folded_table=len(table.rows) > 8))
    blocks += _break_even(decision, timed)
    for objective in OBJECTIVES.values():
        known = [] if objective.is_time else [t for t in timed if math.isfinite(t.cost(objective.name))]
        if known and (own := study.decide(objective.name)):
            blocks.append(_plot_against(objective, own, known, rows, roles))
    return blocks


def _points(
    column: Column,
    timed: Sequence[Trial],
    rows: dict[Configuration, int],
    roles: Roles,
    least: Trial | None = None,
) -> list[Point]:
    """Time against ``column``, those on the front and those with a name first; ``least`` has the least of it."""
    on = find_front([(trial.time_ms, column.of(trial)) for trial in timed])
    points = []
    for trial, is_front in zip(timed, on, strict=True):
        named = [name for name in _NAMED if name in roles.get(trial.configuration, ())]
        named += [f"least {column.label}"] if trial is least else []
        at = rows[trial.configuration]
        points.append(Point(at, column.of(trial), trial.time_ms, " and ".join(named), front=is_front))
    return sorted(points, key=lambda point: (not (point.front or point.role), point.ms))


def _chart(column: Column, points: Sequence[Point], title: str) -> Chart:
    alt = f"Time of one call against {title}; a diamond is a configuration that none beats in both"
    return cloud(f"front_{column.key.rpartition('_')[0]}", alt, points[:MOST_POINTS], column.key, title)


def _plot_against(
    objective: Objective,
    decision: Decision,
    known: Sequence[Trial],
    rows: dict[Configuration, int],
    roles: Roles,
) -> Block:
    """What ``objective`` counts, which is no time, against time: what neither beats, and what has a name."""
    own = figure_column(objective.figure)
    points = _points(own, known, rows, roles, decision.winner)
    shown = {point.row: point.role for point in points if point.front or point.role}
    columns = (
        Column("role", "", of=lambda trial: shown[rows[trial.configuration]] or None),
        own, spread_column(objective.figure), *map(figure_column, objective.beside), TIME, SPREAD, CONFIGURATION,
    )  # fmt: skip
    count = sum(point.front for point in points)
    caption = f"None has both a shorter time and less {own.label} than these ({count}) and those with a name"
    named = [trial for trial in known if rows[trial.configuration] in shown][:MOST_ON_FRONT]
    return Block(
        title=f"Time against {own.label}", text=_describe(objective, decision),
        chart=_chart(own, points, own.label),
        table=Table.make(objective.name, caption, columns, named), folded_table=len(named) > 8,
    )  # fmt: skip


def _describe(objective: Objective, decision: Decision) -> str:
    measured = decision.winner.measurement
    assert measured
    parts = [*objective.texts(measured.figures), f"in {units.duration(measured.time_ms)}"]
    text = f"Least {objective.noun}: {', '.join(parts)}"
    if decision.control and decision.control is not decision.winner:
        over = decision.over_control
        between = "" if math.isnan(over.low) else f" ({units.ratio(over.low)} to {units.ratio(over.high)})"
        text += f"; control takes {units.ratio(over.ratio)} as much{between}"
    return f"{text}."


def _break_even(decision: Decision, timed: Sequence[Trial]) -> list[Block]:
    """Show which layout is cheapest for which number of calls on the same data, and the lines it follows from."""
    if not any(trial.once_ms for trial in timed):
        return []
    stretches = find_cheapest(timed)
    columns = (
        Column("calls_from", "calls from", "count"), Column("calls_to", "to", "count"), TIME, ONCE, CONFIGURATION
    )  # fmt: skip
    rows = tuple(
        (s.calls_from, None if math.isinf(s.calls_to) else int(s.calls_to), s.trial.time_ms, s.trial.once_ms,
         s.trial.configuration)
        for s in stretches
    )  # fmt: skip
    caption = "The cheapest configuration by the number of calls on the same data, its one-time cost included"
    table = Table("break_even", caption, columns, rows)
    most = max(1000.0, 10.0 * stretches[-1].calls_from)
    calls = [10 ** (math.log10(most) * i / 60) for i in range(61)]
    shown = [
        (f"from {s.calls_from:,} {'call' if s.calls_from == 1 else 'calls'}", s.trial) for s in stretches
    ]
    if decision.control and decision.control not in [trial for _, trial in shown]:
        shown.append(("control", decision.control))
    drawn = [Line(label, calls, [(t.once_ms + n * t.time_ms) / n for n in calls]) for label, t in shown]
    alt = "Milliseconds a call, the cost of the layout shared out, against the number of calls"
    chart = lines("break_even", alt, drawn, "calls on the same data", "time a call", logarithmic=(True, True))
    last = stretches[-1]
    text = f"From {last.calls_from:,} calls on the fastest layout is the cheapest too."
    if len(stretches) == 1:
        text = "One configuration is the cheapest however often it is called."
    text += f" It costs {units.duration(last.trial.once_ms)} once and {units.duration(last.trial.time_ms)} a call."
    return [Block(title="Break-even launches", text=text, table=table, chart=chart)]
