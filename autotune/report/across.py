"""Studies of one family on one device side by side: the winners, the effects, and the choice for all workloads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from autotune.declaration import Configuration
from autotune.record import Minimax, Study, minimax, times_of
from autotune.report.blocks import CONFIGURATION, SPREAD, TIME, Block, Column, Table
from autotune.report.charts import heat
from autotune.report.policy_effects import effects_frame

TOP = 4  # configurations of each workload that the choice across workloads shows
MOST_COLUMNS = 400  # of the heat map


@dataclass(frozen=True)
class Across:
    """``minimax`` is the one choice for all workloads; None when no configuration was timed on all."""

    studies: tuple[Study, ...]
    minimax: Minimax | None
    result: Block
    effects: Block | None
    choice: tuple[Block, ...]

    @property
    def control(self) -> Configuration:
        return self.studies[0].control


def compare_across(studies: Sequence[Study]) -> Across:
    times = times_of(studies)
    chosen = minimax(times)
    return Across(
        studies=tuple(studies), minimax=chosen, result=_winners(studies, chosen), effects=_effects(studies),
        choice=tuple(_choice(studies, times, chosen)) if times else (),
    )  # fmt: skip


def _winners(studies: Sequence[Study], chosen: Minimax | None) -> Block:
    columns = (
        Column("workload", "workload"), TIME, SPREAD, Column("tie_set", "tie set", "count"),
        Column("margin_over_runner_up", "runner-up ×", "ratio"), Column("margin_over_control", "control ×", "ratio"),
        Column("margin_over_control_low", "from", "ratio"), Column("margin_over_control_high", "to", "ratio"),
        Column("minimax_over_winner", "best for all ×", "ratio"), Column("configuration", "winner", "configuration"),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for study in studies:
        if not (decision := study.decision):
            rows.append((study.workload, *[None] * 8, None))
            continue
        measured = decision.winner.measurement
        common = study.times.get(chosen.configuration) if chosen else None
        over_control = decision.over_control
        margins = (decision.over_runner_up.ratio, over_control.ratio, over_control.low, over_control.high)
        over = common / decision.winner.time_ms if common else None
        rows.append(
            (study.workload, decision.winner.time_ms, measured.spread if measured else None, len(decision.tie_set),
             *(m if math.isfinite(m) else None for m in margins), over, decision.winner.configuration)
        )  # fmt: skip
    caption = "The winner of each workload, and how many times its time others take"
    return Block(table=Table("winners", caption, columns, tuple(rows)))


def _effects(studies: Sequence[Study]) -> Block | None:
    """Mean change of each policy value against the default, a column a workload."""
    means: dict[tuple[Any, ...], dict[int, float]] = {}
    for i, study in enumerate(studies):
        for row in effects_frame(study).itertuples(index=False, name=None):
            if row[1] == study.control[row[0]]:
                means.setdefault(tuple(row[:3]), {})[i] = row[4]
    if not means:
        return None
    columns = (
        Column("policy", "policy"), Column("base", "from"), Column("value", "to"),
        *(Column(f"mean_percent_{s.workload}", s.workload, "change") for s in studies),
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        (*key, *(of.get(i) for i in range(len(studies)))) for key, of in means.items()
    ]
    rows.sort(key=lambda row: -max(abs(v) for v in row[3:] if v is not None))
    caption = "Mean change of time against the default value, all other policies equal"
    return Block(table=Table("effects_across", caption, columns, tuple(rows)))


def _choice(
    studies: Sequence[Study], times: dict[str, dict[Configuration, float]], chosen: Minimax | None
) -> list[Block]:
    best = {workload: min(row.values()) for workload, row in times.items()}
    every = dict.fromkeys(c for row in times.values() for c in row)
    ratios = {c: [row[c] / best[w] if c in row else None for w, row in times.items()] for c in every}
    worst = {c: max(math.inf if r is None else r for r in row) for c, row in ratios.items()}
    order = sorted(every, key=lambda c: (worst[c], c.id))
    drawn = order[:MOST_COLUMNS]
    alt = "Time over each workload's best, a column a configuration"
    if len(drawn) < len(order):
        alt += f"; the {len(drawn):,} of {len(order):,} with the best worst case"
    chart = heat("regrets", alt, list(times), [c.id for c in drawn],
                 [[ratios[c][i] for c in drawn] for i in range(len(times))])  # fmt: skip
    single = [chosen.configuration] if chosen else []
    top = [c for row in times.values() for c in sorted(row, key=lambda c: (row[c], c.id))[:TOP]]
    named: dict[Configuration, list[str]] = {}
    for study in studies:
        for name, one in study.roles().items():
            known = named.setdefault(one, [])
            known += [name] if name not in known else []
    leading = dict.fromkeys([*single, *top, *named])

    def part(c: Configuration) -> str:
        fastest = (f"fastest on {w}" for w, row in times.items() if row.get(c) == best[w])
        return ", ".join([*(["best for all"] if c in single else []), *named.get(c, ()), *fastest])

    columns = (
        Column("role", "role"), *(Column(f"time_over_best_{w}", w, "regret") for w in times),
        Column("worst", "worst", "ratio"), CONFIGURATION,
    )  # fmt: skip
    blank = [None] * len(times)
    rows = [
        (part(c), *ratios.get(c, blank), worst[c] if worst.get(c, math.inf) < math.inf else None, c)
        for c in sorted(leading, key=lambda c: (worst.get(c, math.inf), c.id))
    ]
    caption = "Time over each workload's best; blank where it was not timed"
    table = Table("across_workloads", caption, columns, tuple(rows))
    return [Block(title="Regret", chart=chart, table=table, stacked=True), _correlations(times)]


def _correlations(times: dict[str, dict[Configuration, float]]) -> Block:
    correlations = pd.DataFrame(
        {workload: {c.id: ms for c, ms in row.items()} for workload, row in times.items()}
    ).corr(method="spearman")
    columns = (Column("workload", "workload"), *(Column(f"correlation_{w}", w, "correlation") for w in times))
    rows = tuple((str(w), *(None if pd.isna(v) else v for v in of)) for w, of in correlations.iterrows())
    text = "1 where two workloads rank the configurations alike, 0 where the rankings are unrelated."
    caption = "Rank correlation (Spearman) of the times of what was timed on both"
    return Block(title="Rank correlation", text=text, table=Table("rank_correlation", caption, columns, rows))
