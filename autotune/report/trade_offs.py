"""Section 4, of one workload: what is traded for time, and from how many calls on a costlier layout pays."""

import math
from collections.abc import Sequence

import numpy as np

from autotune import figures as units
from autotune.record import Decision, Trial, cheapest, once_ms, time_ms
from autotune.report.blocks import CONFIGURATION, OVER_WINNER, TIME, Block, Column, Table
from autotune.report.charts import Line, Point, cloud, lines
from autotune.report.verdict import Roles

MOST_POINTS = 3000
MOST_ON_FRONT = 30
NAMED = 4  # of a chart's points


def footprint(trial: Trial) -> float:
    return float(trial.measurement.footprint_bytes) if trial.measurement else math.inf


def front(costs: Sequence[Sequence[float]]) -> list[bool]:
    """Which of ``costs`` nothing beats: no other is at most as high in all and lower in one."""
    table = np.array(costs, dtype=float)
    kept = np.zeros(len(table), dtype=bool)
    found = np.empty_like(table)
    size = 0
    for i in np.lexsort(table.T[::-1]):  # whoever beats i stands before it
        before = found[:size]
        if not ((before <= table[i]).all(axis=1) & (before != table[i]).any(axis=1)).any():
            kept[i], found[size] = True, table[i]
            size += 1
    return [bool(one) for one in kept]


def choice_blocks(decision: Decision, trials: Sequence[Trial], roles: Roles) -> list[Block]:
    """``trials`` are the rows of the page's table, fastest first."""
    timed = [(row, trial) for row, trial in enumerate(trials) if trial.measurement]
    blocks = []
    for cost, key, unit, title in (
        (footprint, "footprint", "bytes", "device memory that the data takes"),
        (once_ms, "once", "ms", "cost of the layout, once"),
    ):
        if len({cost(trial) for _, trial in timed}) < 2:
            continue
        on = front([(time_ms(trial), cost(trial)) for _, trial in timed])
        spots = []
        named = 0
        for (row, trial), is_front in zip(timed, on, strict=True):
            role = next((r for r in roles.get(trial.configuration, ()) if r in ("winner", "control")), "")
            named += bool(role)
            shown = role if named <= NAMED else ""
            spots.append(Point(row, cost(trial), time_ms(trial), shown, front=is_front))
        spots.sort(key=lambda s: (not (s.front or s.role), s.ms))
        alt = f"Time of one call against {title}; a diamond is a configuration that none beats in both"
        chart = cloud(f"front_{key}", alt, spots[:MOST_POINTS], unit, title)
        blocks.append(Block(title=f"Time against {'memory' if key == 'footprint' else 'the cost of the layout'}",
                            chart=chart, half=True))  # fmt: skip
    on = front([(time_ms(t), footprint(t), once_ms(t)) for _, t in timed])
    best = [trial for (_, trial), is_front in zip(timed, on, strict=True) if is_front]
    rows = [(time_ms(t), time_ms(t) / time_ms(decision.winner), footprint(t), once_ms(t), t.configuration)
            for t in best[:MOST_ON_FRONT]]  # fmt: skip
    columns = (TIME, OVER_WINNER, Column("footprint_bytes", "footprint", "bytes"),
               Column("once_ms", "transform and transfer, once", "time"), CONFIGURATION)  # fmt: skip
    caption = f"Pareto front: none is at most as high in time, footprint and cost once, and lower in one ({len(best)})"
    if len(best) > MOST_ON_FRONT:
        caption = f"{caption[:-1]}, the {MOST_ON_FRONT} fastest of them)"
    blocks.append(Block(table=Table("pareto", caption, columns, tuple(rows)), folded_table=len(rows) > 8))
    return [*blocks, *_break_even(decision, [trial for _, trial in timed])]


def _break_even(decision: Decision, timed: Sequence[Trial]) -> list[Block]:
    """Which layout is cheapest for so many calls on the same data, and the lines behind it."""
    if not any(once_ms(trial) for trial in timed):
        return []
    found = cheapest(timed)
    columns = (
        Column("calls_from", "calls from", "count"), Column("calls_to", "to", "count"), TIME,
        Column("once_ms", "once", "time"), CONFIGURATION,
    )  # fmt: skip
    rows = [
        (s.calls_from, None if math.isinf(s.calls_to) else int(s.calls_to), time_ms(s.trial), once_ms(s.trial),
         s.trial.configuration)
        for s in found
    ]  # fmt: skip
    caption = "The cheapest configuration for so many calls on the same data, its cost once included"
    table = Table("break_even", caption, columns, tuple(rows))
    most = max(1000.0, 10.0 * found[-1].calls_from)
    calls = [10 ** (math.log10(most) * i / 60) for i in range(61)]
    shown = [(f"from {s.calls_from:,} {'call' if s.calls_from == 1 else 'calls'}", s.trial) for s in found]
    if decision.control and decision.control not in [trial for _, trial in shown]:
        shown.append(("control", decision.control))
    drawn = [Line(label, calls, [(once_ms(t) + n * time_ms(t)) / n for n in calls]) for label, t in shown]
    alt = "Milliseconds a call, the cost of the layout shared out, against the number of calls"
    chart = lines("break_even", alt, drawn, "calls on the same data", "time a call", logarithmic=(True, True))
    last = found[-1]
    text = f"From {last.calls_from:,} calls on the fastest layout is the cheapest too."
    if len(found) == 1:
        text = "One configuration is the cheapest however often it is called."
    text += f" It costs {units.duration(once_ms(last.trial))} once and {units.duration(time_ms(last.trial))} a call."
    return [Block(title="Break-even launches", text=text, table=table, chart=chart)]
