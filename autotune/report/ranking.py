"""The configurations in order of their times: which are shown, and what stands next to their bars."""

from autotune import figures as units
from autotune.record import Decision, Study, Trial, rank_trials
from autotune.report.blocks import (
    CONFIGURATION,
    ERROR,
    OCCUPANCY,
    REGISTERS,
    SPREAD,
    TIME,
    Column,
    Table,
    drop_empty_columns,
    make_over_winner,
)
from autotune.report.charts import Bar, Chart, bars
from autotune.report.result_section import Roles

BEST, WORST = 20, 5
LONGEST = 70  # characters of a bar's label


def configurations(study: Study, decision: Decision, roles: Roles) -> tuple[Table, Chart]:
    """The fastest and the slowest configurations with their part in the result."""
    order = rank_trials(study.trials, decision)
    shown = [trial for i, trial in enumerate(order) if i < BEST or i >= len(order) - WORST]
    place = {trial.configuration: i for i, trial in enumerate(order, 1)}
    is_mixed = len({_is_retimed(trial) for trial in order}) > 1
    columns = (
        Column("rank", "rank", "count", lambda trial: place[trial.configuration]),
        TIME,
        Column("timed_again", "timed again", of=lambda t: "yes" if is_mixed and _is_retimed(t) else None),
        SPREAD,
        make_over_winner(decision),
        ERROR,
        REGISTERS,
        OCCUPANCY,
        Column("role", "role", of=lambda trial: ", ".join(roles.get(trial.configuration, ()))),
        CONFIGURATION,
    )
    entries = []
    for trial in shown:
        rank, named = place[trial.configuration], roles.get(trial.configuration, ())
        role = next((r for r in ("winner", "tied", "control") if r in named), "preset" if named else "other")
        if role == "other" and rank > BEST:
            role = "slow"
        text = units.duration(trial.time_ms) + (f"  {', '.join(named)}" if named else "")
        changes = trial.configuration.changes(study.control)  # the table has it whole
        label = changes if len(changes) <= LONGEST else f"{changes[: LONGEST - 1].rstrip(' ,')}…"
        entries.append(Bar(f"{label}  #{rank}", f"#{rank}", trial.time_ms, role, text))
    caption = f"The {BEST} fastest and {WORST} slowest of {len(order):,} timed configurations, best first"
    if len(order) <= BEST + WORST:
        caption = f"All {len(order):,} timed configurations, best first"
    table = drop_empty_columns(Table.make("configurations", caption, columns, shown))
    alt = f"{caption}; the table has the figures"
    return table, bars("configurations", alt, entries)


def _is_retimed(trial: Trial) -> bool:
    return trial.measurement is not None and trial.measurement.retimed_ms > 0


def explain_untied(study: Study, decision: Decision) -> str:
    """Why some that are faster than members of the tie set are not in it; empty where there are none."""
    slowest = max(trial.time_ms for trial in decision.tie_set)
    faster = [t for t in study.trials if t not in decision.tie_set and t.time_ms < slowest]
    if not faster:
        return ""
    return (
        f"{len(faster):,} that are not in the tie set have a shorter time than one that is: they were not among the "
        "finalists, which were timed again side by side, and a time from before does not compare with those."
    )
