"""Section 2: what each policy changes, which matter, and which change each other's effect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from autotune import figures as units
from autotune.declaration import PolicyValue
from autotune.record import Study, Trial
from autotune.report.blocks import Block, Column, Table
from autotune.report.charts import COLOURS, Bar, Chart, Whisker, shares, to_plain_text, whiskers
from autotune.report.policy_effects import Importance, Pairing, Timed, effects_frame, importance, summarise

TOTAL = "whole plan"
MOST_BARS = 64
MOST_CLUSTERS = 8

Key = tuple[int, ...]  # the numbers of some policies' values
Cluster = tuple[tuple[PolicyValue, ...], list[int]]  # the values that its pairs agree in, and those pairs

_FIGURES = (
    Column("pairs", "pairs", "count"), Column("mean_percent", "mean", "change"),
    Column("median_percent", "median", "change"), Column("minimum_percent", "lowest", "change"),
    Column("maximum_percent", "highest", "change"), Column("faster_share", "faster in", "share"),
)  # fmt: skip


def clustered(
    name: str, timed: Timed, pairing: Pairing, partners: Sequence[str], row_of: Mapping[int, int]
) -> Block:
    """``partners`` are the other policies, the most interacting first; ``row_of`` tells for a position in ``timed``
    where the page's table of trials has it. A bar is one pair; where there are more than ``MOST_BARS`` it is the median
    of the pairs that agree in the first partners, with their range."""
    columns = {policy: number for number, policy in enumerate(timed.values)}
    codes = {
        policy: timed.policies[columns[policy]].to_numpy()[pairing.base_rows]
        for policy in partners
        if len(timed.values[policy]) > 1
    }
    by = _limit_settings(codes, list(codes), MOST_BARS)
    outer = _limit_settings(codes, by[:-1][:3], MOST_CLUSTERS)
    keys = _keys(codes, by)
    groups: dict[Key, list[int]] = {}
    for pair, key in enumerate(keys):
        groups.setdefault(key, []).append(pair)
    bars = sorted(groups)
    heads = [key[: len(outer)] for key in bars]
    numbers = {head: i for i, head in enumerate(dict.fromkeys(heads))}
    places = [i + 1.2 * numbers[head] for i, head in enumerate(heads)]  # a gap between clusters
    members: dict[Key, list[int]] = {}
    for key, head in zip(bars, heads, strict=True):
        members.setdefault(head, []).extend(groups[key])
    clusters = [
        (tuple(timed.values[p][c] for p, c in zip(outer, head, strict=True)), of)
        for head, of in members.items()
    ]
    single = len(bars) == len(keys)
    rows = [row_of.get(int(pairing.value_rows[groups[key][0]])) for key in bars] if single else None
    percents = {
        kernel or TOTAL: pairing.percent(timed.times(kernel or None)) for kernel in ("", *timed.kernels)
    }
    pairs = [groups[key] for key in bars]
    choices = {kernel: _heights(percent, pairs, clusters) for kernel, percent in percents.items()}
    typical = summarise(percents[TOTAL])[2]
    title = f"{pairing.policy}: {pairing.base} → {pairing.value}"
    several = f"a bar the median over pairs that agree in {', '.join(by)}, with their range"
    each = "a bar a pair" if single else several
    text = f"{units.percent(float(typical))} at the median"
    text += f"; clustered by {' and '.join(outer)}" if outer else ""
    settings = [[str(timed.values[p][c]) for p, c in zip(by, key, strict=True)] for key in bars]
    figure = _figure(places, heads, settings, by)
    if rows:
        figure["data"][0]["customdata"] = rows
    chart = Chart(name, f"{title}: {text}; {each}", {**figure, "choices": choices}, caption=False)
    table = _table(name, outer, clusters, percents[TOTAL])
    return Block(title=title, text=f"{text}; {each}.", chart=chart, table=table, folded_table=True, half=True)


def _table(name: str, outer: Sequence[str], clusters: Sequence[Cluster], percent: NDArray[Any]) -> Table:
    rows = [(*values, *summarise(percent[pairs])) for values, pairs in clusters]
    heading = tuple(Column(policy, policy) for policy in outer)
    return Table(name, f"As a table, by cluster ({TOTAL})", (*heading, *_FIGURES), tuple(rows))


def _limit_settings(codes: Mapping[str, NDArray[Any]], names: Sequence[str], most: int) -> list[str]:
    """The longest beginning of ``names`` whose settings are at most ``most``."""
    taken = list(names)
    while taken and len(set(_keys(codes, taken))) > most:
        taken.pop()
    return taken


def _keys(codes: Mapping[str, NDArray[Any]], names: Sequence[str]) -> list[Key]:
    if not names:
        return [()] * (len(next(iter(codes.values()))) if codes else 1)
    return list(zip(*(codes[name].tolist() for name in names), strict=True))


def _figure(
    places: Sequence[float], heads: Sequence[Key], settings: Sequence[Sequence[str]], by: Sequence[str]
) -> dict[str, Any]:
    """All but the heights, which the page fills in for the kernel that is chosen: ``by`` and ``settings`` are the other
    policies and their values, bar by bar."""
    centres: dict[Key, list[float]] = {}
    for head, place in zip(heads, places, strict=True):
        centres.setdefault(head, []).append(place)
    trace = {
        "type": "bar", "x": list(places), "width": 0.85, "hoverinfo": "text",
        "by": [to_plain_text(name) for name in by],
        "settings": [[to_plain_text(value) for value in some] for some in settings],
        "faster": COLOURS["winner"], "slower": COLOURS["slow"],
    }  # fmt: skip
    layout = {
        "xaxis": {"tickvals": [sum(of) / len(of) for of in centres.values()], "showgrid": False, "zeroline": False,
                  "ticklen": 0, "tickfont": {"size": 11},
                  "range": [min(places[0], 0) - 1, places[-1] + 1 + max(places[0], 0)]},
        "yaxis": {"ticksuffix": " %", "zeroline": True, "title": {"text": "change of time"}},
        "height": 280,
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def _heights(
    percent: NDArray[Any], bars: Sequence[Sequence[int]], clusters: Sequence[Cluster]
) -> dict[str, Any]:
    """Of one kernel: each bar's median change, the range around it where it is more than one pair, and the clusters'
    labels with their medians: one outlier moves a mean anywhere. The tables have the means too."""
    summaries = [summarise(percent[pairs]) for pairs in bars]
    made: dict[str, Any] = {"y": [round(float(f[2]), 2) if f else None for f in summaries]}
    if len(bars) < len(percent):
        made["array"] = [round(float(f[4] - f[2]), 2) if f else 0 for f in summaries]
        made["arrayminus"] = [round(float(f[2] - f[3]), 2) if f else 0 for f in summaries]
    made["ticktext"] = []
    for values, pairs in clusters:
        of = summarise(percent[pairs])
        median = f"<b>{units.percent(float(of[2])) if of else '–'}</b>"
        made["ticktext"].append("<br>".join([*(to_plain_text(str(value)) for value in values), median]))
    return made


MOST_FIGURES, OPEN_FIGURES = 24, 8
MOST_INTERACTIONS = 15
_CHANGED = (Column("policy", "policy"), Column("base", "from"), Column("value", "to"))


def effects_blocks(study: Study, timed: Timed, trials: list[Trial]) -> list[Block]:
    """``trials`` are the rows of the page's table. Empty when no two configurations differ in one policy."""
    frame = effects_frame(timed)
    if frame.empty:
        return []
    shares = importance(timed)
    main = [row for row in frame.itertuples(index=False, name=None) if row[1] == study.control[row[0]]]
    main.sort(key=lambda row: -shares.alone.get(row[0], 0.0))
    blocks = [_importance(shares)] if shares.together or shares.alone else []
    if main:
        caption = "Change of time against the default value, all other policies equal"
        entries = [
            Whisker(f"{row[0]}: {row[2]}", low=row[6], high=row[7], mean=row[4], median=row[5])
            for row in main
        ]
        table = Table("effects", caption, (*_CHANGED, *_FIGURES), tuple(main))
        chart = whiskers("effects", f"{caption}: range, mean and median", entries)
        blocks.append(Block(title="Main effects", table=table, chart=chart))
    if timed.kernels and main:
        blocks.append(_group_by_kernel(timed, main))
    blocks += _figures(study, timed, shares, trials)
    if found := _interactions(study, timed, shares):
        blocks.append(found)
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


def _group_by_kernel(timed: Timed, main: list[tuple[Any, ...]]) -> Block:
    """Mean change of each kernel; the whole plan's first."""
    frames = {kernel: effects_frame(timed, kernel or None) for kernel in ("", *timed.kernels)}
    means = {
        kernel: {(row[0], row[1], row[2]): row[4] for row in frame.itertuples(index=False, name=None)}
        for kernel, frame in frames.items()
    }
    columns = [Column(f"mean_percent_{kernel or 'plan'}", kernel or TOTAL, "change") for kernel in means]
    rows = tuple((*row[:3], *(of.get(row[:3]) for of in means.values())) for row in main)
    caption = "Mean change of each kernel's time"
    return Block(title="By kernel", table=Table("effects_by_kernel", caption, (*_CHANGED, *columns), rows))


def _figures(study: Study, timed: Timed, found: Importance, trials: list[Trial]) -> list[Block]:
    """The clustered bars, the most important policy first; those after the first few are folded away."""
    row = {trial.configuration: i for i, trial in enumerate(trials)}
    row_of = {i: row[one] for i, one in enumerate(timed.configurations) if one in row}
    main = [
        p for p in timed.pairings if p.base == study.control[p.policy] and summarise(p.percent(timed.times()))
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
        given = {
            (name, value): summarise(percent[has]) for name, value, has in timed.list_conditions(pairing)
        }
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
