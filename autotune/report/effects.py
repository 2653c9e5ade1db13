"""Section 2: what each policy changes, which matter, and which change each other's effect."""

from dataclasses import replace
from typing import Any

from autotune.effects import Importance, Timed, effects_frame, importance, summarised
from autotune.record import Study
from autotune.report import units
from autotune.report.charts import Bar, Whisker, shares, whiskers
from autotune.report.clusters import TOTAL, clustered
from autotune.report.table import Block, Column, Table
from autotune.trial import Trial

__all__ = ["effects_blocks"]

MOST_FIGURES, OPEN_FIGURES = 24, 8
MOST_INTERACTIONS = 15
_COLUMNS = (
    Column("policy", "policy"), Column("base", "from"), Column("value", "to"), Column("pairs", "pairs", "count"),
    Column("mean_percent", "mean", "change"), Column("median_percent", "median", "change"),
    Column("minimum_percent", "lowest", "change"), Column("maximum_percent", "highest", "change"),
    Column("faster_share", "faster in", "share"),
)  # fmt: skip


def effects_blocks(study: Study, timed: Timed, trials: list[Trial]) -> list[Block]:
    """``trials`` are the rows of the page's table. Empty when no two configurations differ in one policy."""
    frame = effects_frame(timed)
    if frame.empty:
        return []
    found = importance(timed)
    rows = [tuple(row) for row in frame.itertuples(index=False, name=None)]
    main = [row for row in rows if row[1] == study.control[row[0]]]
    rest = tuple(row for row in rows if row[1] != study.control[row[0]])
    main.sort(key=lambda row: -found.alone.get(row[0], 0.0))
    blocks = [_importance(found)] if found.together or found.alone else []
    if main:
        caption = "Change of time against the default value, all other policies equal"
        entries = [
            Whisker(f"{row[0]}: {row[2]}", low=row[6], high=row[7], mean=row[4], median=row[5])
            for row in main
        ]
        blocks.append(
            Block(
                title="Main effects",
                table=Table("effects", caption, _COLUMNS, tuple(main)),
                chart=whiskers("effects", f"{caption}: range, mean and median", entries),
            )
        )
    if timed.kernels and main:
        blocks.append(_by_kernel(timed, main))
    blocks += _figures(study, timed, found, trials)
    if table := _interactions(study, timed, found):
        blocks.append(table)
    if rest:
        caption = "Change of time between the other values"
        blocks.append(
            Block(title=caption, table=Table("effects_between", caption, _COLUMNS, rest), folded=True)
        )
    return blocks


def _importance(found: Importance) -> Block:
    names = sorted(found.alone, key=lambda name: -found.alone[name])
    entries = [Bar(n, n, found.alone[n], "winner", units.share(found.alone[n])) for n in names]
    columns = (
        Column("policy", "policy"), Column("variance_share", "alone", "share"),
        Column("partner", "acts most with"), Column("variance_share_together", "together, beyond both", "share"),
    )  # fmt: skip
    rows = []
    for name in names:
        partner = next(iter(found.partners(name)), None)
        together = next((share for two, share in found.together.items() if set(two) == {name, partner}), None)
        rows.append((name, found.alone[name], partner, together))
    text = (
        f"One term for each value of each policy, added up, explains {units.share(found.additive)} of the "
        "variance of log time; the rest is what policies do together, and noise."
    )
    alt = "Share of the variance of log time that no other policy explains"
    table = Table("importance", alt, columns, tuple(rows))
    return Block(title="Importance", text=text, table=table, chart=shares("importance", alt, entries))


def _by_kernel(timed: Timed, main: list[tuple[Any, ...]]) -> Block:
    """Mean change of each kernel; the whole plan's first."""
    frames = {kernel: effects_frame(timed, kernel or None) for kernel in ("", *timed.kernels)}
    means = {
        kernel: {(row[0], row[1], row[2]): row[4] for row in frame.itertuples(index=False, name=None)}
        for kernel, frame in frames.items()
    }
    columns = [Column(f"mean_percent_{kernel or 'plan'}", kernel or TOTAL, "change") for kernel in means]
    head = (Column("policy", "policy"), Column("base", "from"), Column("value", "to"))
    rows = tuple((*row[:3], *(of.get(row[:3]) for of in means.values())) for row in main)
    caption = "Mean change of each kernel's time"
    return Block(title="By kernel", table=Table("effects_by_kernel", caption, (*head, *columns), rows))


def _figures(study: Study, timed: Timed, found: Importance, trials: list[Trial]) -> list[Block]:
    """The clustered bars, the most important policy first; those after the first few are folded away."""
    row = {trial.configuration: i for i, trial in enumerate(trials)}
    row_of = {i: row[one] for i, one in enumerate(timed.configurations) if one in row}
    main = [
        p
        for p in timed.pairings
        if p.base == study.control[p.policy] and summarised(p.percent(timed.times()))
    ]
    main.sort(key=lambda p: -found.alone.get(p.policy, 0.0))
    blocks = []
    for i, pairing in enumerate(main[:MOST_FIGURES]):
        partners = found.partners(pairing.policy)
        partners += [name for name in timed.values if name not in partners and name != pairing.policy]
        block = clustered(f"pairs_{i + 1}", timed, pairing, partners, row_of)
        blocks.append(replace(block, folded=i >= OPEN_FIGURES))
    return blocks


def _interactions(study: Study, timed: Timed, found: Importance) -> Block | None:
    """The pairs of policies whose effects change most with each other's value."""
    times, rows = timed.times(), []
    for pairing in timed.pairings:
        if pairing.base != study.control[pairing.policy]:
            continue
        percent = pairing.percent(times)
        given = {(name, value): summarised(percent[has]) for name, value, has in timed.given(pairing)}
        for (name, value), at_value in given.items():
            at_base = given.get((name, study.control[name]), ())
            if value != study.control[name] and at_value and at_base:
                two = found.together.get((pairing.policy, name), found.together.get((name, pairing.policy)))
                change = (at_base[1], at_value[1], at_value[1] - at_base[1])
                rows.append((pairing.policy, pairing.value, name, study.control[name], value, *change, two))
    if not rows:
        return None
    rows.sort(key=lambda row: -abs(row[7]))
    columns = (
        Column("policy", "policy"), Column("value", "set to"), Column("given_policy", "while"),
        Column("given_default", "is default"), Column("given_value", "or is"),
        Column("mean_percent_given_default", "mean with default", "change"),
        Column("mean_percent_given_value", "mean with other", "change"),
        Column("difference_points", "difference", "points"), Column("variance_share", "of variance", "share"),
    )  # fmt: skip
    caption = f"The {min(len(rows), MOST_INTERACTIONS)} strongest of {len(rows)}; effects.csv has all"
    table = Table("interactions", caption, columns, tuple(rows[:MOST_INTERACTIONS]))
    text = "What one policy changes while another has its default, and while it has another value."
    return Block(title="Pairwise interactions", text=text, table=table)
