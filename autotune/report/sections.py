"""The body of a study's report: configurations, effects, why, and the choice across workloads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from autotune.decision import Decision, Minimax, minimax, time_ms
from autotune.record import Study
from autotune.report import units
from autotune.report.charts import Bar, Chart, Point, Whisker, bars, scatter, whiskers
from autotune.report.table import (
    CONFIGURATION,
    OCCUPANCY,
    OVER_WINNER,
    SPREAD,
    TIME,
    Column,
    Table,
    without_empty,
)  # fmt: skip
from autotune.report.verdict import Roles
from autotune.space import Configuration
from autotune.trial import Trial

__all__ = ["Choice", "across", "configurations", "effects_section", "why"]

BEST, WORST = 20, 5
TOP = 4  # configurations of each workload that the choice across workloads shows
MOST_POINTS = 3000  # of a scatter chart; more SVG marks make a browser stutter


def configurations(study: Study, decision: Decision, roles: Roles) -> tuple[Table, Chart]:
    """The fastest and the slowest configurations with their part in the verdict."""
    timed = [trial for trial in study.trials if trial.measurement]
    ranked = sorted(timed, key=lambda t: (time_ms(t), t.configuration.id))
    ranks = [i for i in range(len(ranked)) if i < BEST or i >= len(ranked) - WORST]
    rank, registers = Column("rank", "rank", "count"), Column("registers", "registers", "count")
    columns = (rank, TIME, SPREAD, OVER_WINNER, registers, OCCUPANCY, Column("role", "role"), CONFIGURATION)
    best = time_ms(decision.winner)
    shown = [ranked[i].configuration for i in ranks]
    varying = [name for name in study.control if len({configuration[name] for configuration in shown}) > 1]
    rows, entries = [], []
    for i in ranks:
        trial, ms = ranked[i], time_ms(ranked[i])
        named = roles.get(trial.configuration, ())
        spread = trial.measurement.spread if trial.measurement else None
        figures = (i + 1, ms, spread, ms / best, *_profile(trial))
        rows.append((*figures, ", ".join(named), trial.configuration))
        role = next((r for r in ("winner", "tied", "control") if r in named), "preset" if named else "other")
        if role == "other" and i >= BEST:
            role = "slow"
        text = units.time(ms) + (f"  {', '.join(named)}" if named else "")
        entries.append(Bar(f"{_short(trial.configuration, varying)}  #{i + 1}", f"#{i + 1}", ms, role, text))
    caption = f"The {BEST} fastest and {WORST} slowest of {len(ranked):,} timed configurations"
    if len(ranked) <= BEST + WORST:
        caption = f"All {len(ranked):,} timed configurations, fastest first"
    table = without_empty(Table("configurations", caption, columns, tuple(rows)))
    return table, bars("configurations", f"{caption}; the table has the figures", entries)


def effects_section(effects: pd.DataFrame, study: Study) -> tuple[Table, Table, Chart | None]:
    """Main effects against each policy's default; between its other values; and the chart of the first."""
    columns = (
        Column("policy", "policy"), Column("base", "from"), Column("value", "to"),
        Column("pairs", "pairs", "count"),
        Column("mean_percent", "mean", "percent"), Column("median_percent", "median", "percent"),
        Column("minimum_percent", "lowest", "percent"), Column("maximum_percent", "highest", "percent"),
        Column("faster_share", "faster in", "share"),
    )  # fmt: skip
    rows = [tuple(row) for row in effects.itertuples(index=False, name=None)]
    main = tuple(row for row in rows if row[1] == study.control[row[0]])
    rest = tuple(row for row in rows if row[1] != study.control[row[0]])
    caption = "Change of time against the default value, all other policies equal"
    first = Table("effects", caption, columns, main)
    second = Table("effects_between", "Change of time between the other values", columns, rest)
    if not main:
        return first, second, None
    entries = [
        Whisker(f"{name}: {value}", low, high, mean, median)
        for name, _, value, _, mean, median, low, high, _ in main
    ]
    return first, second, whiskers("effects", f"{caption}: range, mean and median", entries)


def why(trials: Sequence[Trial], decision: Decision, roles: Roles) -> tuple[Table | None, list[Chart]]:
    """Time by occupancy and what limits it, and a chart of time against registers for each kernel. Empty when
    the record has no registers (a cpu). ``trials`` are the rows of the page's table."""
    points: dict[str, list[Point]] = {}
    groups: dict[tuple[float, str], list[Trial]] = {}
    for row, trial in enumerate(trials):
        if not trial.measurement:
            continue
        for profile in trial.profiles:
            if profile.registers:
                named = ", ".join(r for r in roles.get(trial.configuration, ()) if r != "tied")
                ms = trial.measurement.kernel_ms.get(profile.kernel, trial.measurement.time_ms)
                points.setdefault(profile.kernel, []).append(
                    Point(row, profile.registers, ms, profile.occupancy, named)
                )
        used = [p for p in trial.profiles if p.registers]
        if used:
            least = min(used, key=lambda p: p.occupancy)
            groups.setdefault((least.occupancy, least.limited_by), []).append(trial)
    if not points:
        return None, []
    columns = (
        OCCUPANCY, Column("limited_by", "limited by"), Column("configurations", "configurations", "count"),
        Column("registers_minimum", "registers from", "count"), Column("registers_maximum", "to", "count"),
        Column("best_ms", "best time", "time"), Column("median_ms", "median time", "time"),
        Column("best_over_winner", "best × winner", "ratio"),
    )  # fmt: skip
    rows = []
    for (occupancy, limit), members in sorted(groups.items(), key=lambda item: (-item[0][0], item[0][1])):
        times = pd.Series([time_ms(trial) for trial in members])
        registers = [_profile(trial)[0] or 0 for trial in members]
        best = float(times.min())
        rows.append(
            (
                occupancy,
                limit,
                len(members),
                min(registers),
                max(registers),
                best,
                float(times.median()),
                best / time_ms(decision.winner),
            )
        )
    table = Table(
        "occupancy",
        "Times by theoretical occupancy and what limits it (the least of a plan's kernels)",
        columns,
        tuple(rows),
    )
    charts = []
    for kernel, of_kernel in points.items():
        drawn = sorted(of_kernel, key=lambda p: (not p.role, p.ms))[:MOST_POINTS]
        alt = f"Kernel {kernel}: time against registers, occupancy as colour and shape"
        if len(drawn) < len(of_kernel):
            alt += f"; the {len(drawn):,} fastest of {len(of_kernel):,}"
        charts.append(scatter(f"registers_{kernel}", alt, drawn, f"time of {kernel}"))
    return table, charts


@dataclass(frozen=True)
class Choice:
    """Studies of one family on one device side by side; ``minimax`` is the one choice for all workloads."""

    family: str
    device: str
    control: Configuration
    table: Table
    minimax: Minimax | None


def across(studies: Sequence[Study]) -> Choice:
    """How many times each workload's best time the leading configurations take, the best worst case first."""
    times: dict[str, dict[Configuration, float]] = {}
    for study in studies:
        name = study.workload if study.workload not in times else f"{study.workload} ({study.identity[:8]})"
        times[name] = {t.configuration: time_ms(t) for t in study.trials if t.measurement}
    times = {workload: row for workload, row in times.items() if row}
    best = {workload: min(row.values()) for workload, row in times.items()}
    chosen = minimax(times)
    top = [c for row in times.values() for c in sorted(row, key=lambda c: (row[c], c.id))[:TOP]]
    single = [chosen.configuration] if chosen else []
    leading = dict.fromkeys([*single, *top, *(study.control for study in studies)])
    ratios = {c: [row[c] / best[w] if c in row else None for w, row in times.items()] for c in leading}
    worst = {
        c: max((math.inf if r is None else r for r in row), default=math.inf) for c, row in ratios.items()
    }

    def part(c: Configuration) -> str:
        parts = ["best for all"] if c in single else []
        parts += ["control"] if any(c == study.control for study in studies) else []
        return ", ".join([*parts, *(f"fastest on {w}" for w, row in times.items() if row.get(c) == best[w])])

    columns = (
        Column("role", "role"),
        *(Column(f"time_over_best_{workload}", workload, "regret") for workload in times),
        Column("worst", "worst", "ratio"),
        CONFIGURATION,
    )
    rows = [
        (part(c), *ratios[c], worst[c] if worst[c] < math.inf else None, c)
        for c in sorted(leading, key=lambda c: (worst[c], c.id))
    ]
    caption = "Time over each workload's best; blank where it was not timed"
    table = Table("across_workloads", caption, columns, tuple(rows))
    return Choice(studies[0].family, studies[0].device, studies[0].control, table, chosen)


def _profile(trial: Trial) -> tuple[int | None, float | None]:
    """Most registers and least occupancy of the trial's kernels; None on a cpu."""
    used = [p for p in trial.profiles if p.registers]
    return max((p.registers for p in used), default=None), min((p.occupancy for p in used), default=None)


def _short(configuration: Configuration, names: Sequence[str]) -> str:
    """The values that tell shown configurations apart; a number says whose it is."""
    values = [configuration[name] for name in names]
    return " ".join(f"{n}={v}" if str(v).isdecimal() else str(v) for n, v in zip(names, values, strict=True))
