"""Section 4, where energy was measured: a call's joules against its time, and what neither beats."""

import math
from collections.abc import Sequence

from autotune import figures as units
from autotune.record import ENERGY, Study, Trial, cost_text, time_ms
from autotune.report.blocks import CONFIGURATION, SPREAD, TIME, Block, Column, Table
from autotune.report.charts import Point, cloud
from autotune.report.trade_offs import MOST_ON_FRONT, MOST_POINTS, front
from autotune.report.verdict import Roles


def energy_blocks(study: Study, trials: Sequence[Trial], roles: Roles) -> list[Block]:
    """``trials`` are the rows of the page's table, fastest first; nothing where none of them has its energy."""
    known = [
        (row, t, t.measurement) for row, t in enumerate(trials) if t.measurement and t.measurement.energy_j
    ]
    decision = study.decided(ENERGY)
    if not known or decision is None:
        return []
    on = front([(time_ms(t), m.energy_j) for _, t, m in known])
    least = decision.winner.configuration
    spots, rows = [], []
    for (row, trial, measured), is_front in zip(known, on, strict=True):
        own = roles.get(trial.configuration, ())
        named = [str(name) for name in ("winner", "control") if name in own]
        named += ["least energy"] if trial.configuration == least else []
        role = " and ".join(named)
        spots.append(Point(row, measured.energy_j, time_ms(trial), role, front=is_front))
        if is_front or role:
            rows.append((
                role or None, measured.energy_j, measured.energy_spread, measured.power_w, time_ms(trial),
                measured.spread, trial.configuration,
            ))  # fmt: skip
    spots.sort(key=lambda s: (not (s.front or s.role), s.ms))
    title = "energy of a call"
    alt = f"Time of one call against the {title}; a diamond is a configuration that none beats in both"
    columns = (
        Column("role", ""), Column("energy_j", "energy", "energy"), Column("energy_spread_relative", "±", "spread"),
        Column("power_w", "power", "power"), TIME, SPREAD, CONFIGURATION,
    )  # fmt: skip
    caption = f"None has both a shorter time and less energy than one of these ({sum(on)}), beside those with a name"
    return [
        Block(
            title="Time against energy", text=_told(study),
            chart=cloud("front_energy", alt, spots[:MOST_POINTS], "J", title),
            table=Table("energy", caption, columns, tuple(rows[:MOST_ON_FRONT])), folded_table=len(rows) > 8,
        )
    ]  # fmt: skip


def _told(study: Study) -> str:
    decision = study.decided(ENERGY)
    assert decision and decision.winner.measurement
    measured = decision.winner.measurement
    spread = units.spread(measured.energy_spread)
    text = (
        f"The least energy of a call is {cost_text(measured.energy_j, ENERGY)} ({spread}), at "
        f"{units.power(measured.power_w)} in {units.duration(measured.time_ms)}"
    )
    if decision.control and decision.control is not decision.winner:
        over = decision.over_control
        between = "" if math.isnan(over.low) else f" ({units.ratio(over.low)} to {units.ratio(over.high)})"
        text += f"; control takes {units.ratio(over.ratio)} as much{between}"
    idle = study.about.idle_w
    rest = (
        f" With nothing to do the device takes {units.power(idle)}, which is in all of these." if idle else ""
    )
    return f"{text}.{rest}"
