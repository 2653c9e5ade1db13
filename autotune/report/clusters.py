"""The figures 4 to 9 of the MUMmerGPU 2.0 paper for any family: what one policy value changes with all others fixed,
a bar for each setting of the others, clustered by those that matter most to it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.effects import Pairing, Timed, summarised
from autotune.report import units
from autotune.report.charts import COLOURS, Chart, plain
from autotune.report.table import Block, Column, Table

__all__ = ["TOTAL", "clustered"]

TOTAL = "whole plan"
MOST_BARS = 64
MOST_CLUSTERS = 8
LABEL_ROOM = 62  # characters of a label's font below a chart of half the width of a small screen
_FIGURES = (
    Column("pairs", "pairs", "count"), Column("mean_percent", "mean", "change"),
    Column("median_percent", "median", "change"), Column("minimum_percent", "lowest", "change"),
    Column("maximum_percent", "highest", "change"), Column("faster_share", "faster in", "share"),
)  # fmt: skip


def clustered(
    name: str,
    timed: Timed,
    pairing: Pairing,
    partners: Sequence[str],
    row_of: Mapping[int, int],
    *,
    half: bool = True,
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
    by = _most(codes, list(codes), MOST_BARS)
    outer = _most(codes, by[:-1][:3], _room(timed, by[:-1][:3]))
    keys = _keys(codes, by)
    groups: dict[tuple[int, ...], list[int]] = {}
    for pair, key in enumerate(keys):
        groups.setdefault(key, []).append(pair)
    bars = sorted(groups)
    heads = [key[: len(outer)] for key in bars]
    shown = [str(timed.values[p][c]) for head in heads for p, c in zip(outer, head, strict=True)]
    places = _places(heads, max([7, *map(len, shown)]))
    single = len(bars) == len(keys)
    rows = [row_of.get(int(pairing.value_rows[groups[key][0]])) for key in bars] if single else None
    percents = {
        kernel or TOTAL: pairing.percent(timed.times(kernel or None)) for kernel in ("", *timed.kernels)
    }
    choices = {
        kernel: _heights(percent, bars, groups, heads, timed, outer) for kernel, percent in percents.items()
    }
    typical = summarised(percents[TOTAL])[2]
    title = f"{pairing.policy}: {pairing.base} → {pairing.value}"
    each = (
        "a bar a pair"
        if single
        else f"a bar the median over pairs that agree in {', '.join(by)}, with their range"
    )
    text = f"{units.percent(float(typical))} at the median"
    text += f"; clustered by {' and '.join(outer)}" if outer else ""
    settings = [[str(timed.values[p][c]) for p, c in zip(by, key, strict=True)] for key in bars]
    figure = _figure(places, heads, settings, by)
    if rows:
        figure["data"][0]["customdata"] = rows
    chart = Chart(name, f"{title}: {text}; {each}", {**figure, "choices": choices}, caption=False)
    table_rows = []
    percent = percents[TOTAL]
    for head in dict.fromkeys(heads):
        members = [pair for key in bars if key[: len(outer)] == head for pair in groups[key]]
        values = [timed.values[p][c] for p, c in zip(outer, head, strict=True)]
        table_rows.append((*values, *summarised(percent[members])))
    heading = tuple(Column(policy, policy) for policy in outer)
    table = Table(name, f"As a table, by cluster ({TOTAL})", (*heading, *_FIGURES), tuple(table_rows))
    return Block(title=title, text=f"{text}; {each}.", chart=chart, table=table, folded_table=True, half=half)


def _most(codes: Mapping[str, NDArray[Any]], names: Sequence[str], most: int) -> list[str]:
    """The longest beginning of ``names`` whose settings are at most ``most``."""
    taken = list(names)
    while taken and len(set(_keys(codes, taken))) > most:
        taken.pop()
    return taken


def _places(heads: Sequence[tuple[int, ...]], longest: int) -> list[float]:
    """Where the bars stand: a gap between clusters, and each cluster as wide as its label of ``longest`` characters."""
    sizes = [len(list(some)) for _, some in groupby(heads)]
    widths = [float(size) for size in sizes]
    for _ in range(20):  # a wider cluster leaves the others less of the chart
        least = min(longest, LABEL_ROOM // len(sizes)) * sum(widths) / LABEL_ROOM
        widths = [max(size, least) for size in sizes]
    places, at = [], 0.0
    for size, width in zip(sizes, widths, strict=True):
        places += [at + (width - size) / 2 + i for i in range(size)]
        at += width + 1.2
    return [round(place, 2) for place in places]


def _room(timed: Timed, names: Sequence[str]) -> int:
    """How many clusters have room for their labels side by side, the longest value of ``names`` in each."""
    longest = max((len(str(value)) for name in names for value in timed.values[name]), default=1)
    return max(2, min(MOST_CLUSTERS, LABEL_ROOM // max(7, min(longest, 10))))


def _keys(codes: Mapping[str, NDArray[Any]], names: Sequence[str]) -> list[tuple[int, ...]]:
    if not names:
        return [()] * (len(next(iter(codes.values()))) if codes else 1)
    return list(zip(*(codes[name].tolist() for name in names), strict=True))


def _cut(text: str, most: int) -> str:
    """``text`` in at most ``most`` characters; the table below has it whole."""
    return text if len(text) <= most else f"{text[: max(1, most - 1)]}…"


def _figure(
    places: Sequence[float],
    heads: Sequence[tuple[int, ...]],
    settings: Sequence[Sequence[str]],
    by: Sequence[str],
) -> dict[str, Any]:
    """All but the heights, which the page fills in for the kernel that is chosen: ``by`` and ``settings`` are the other
    policies and their values, bar by bar."""
    centres: dict[tuple[int, ...], list[float]] = {}
    for head, place in zip(heads, places, strict=True):
        centres.setdefault(head, []).append(place)
    trace = {
        "type": "bar", "x": list(places), "width": 0.85, "hoverinfo": "text",
        "by": [plain(name) for name in by], "settings": [[plain(value) for value in some] for some in settings],
        "faster": COLOURS["winner"], "slower": COLOURS["slow"],
    }  # fmt: skip
    layout = {
        "xaxis": {"tickvals": [sum(of) / len(of) for of in centres.values()], "showgrid": False, "zeroline": False,
                  "ticklen": 0, "tickangle": 0, "tickfont": {"size": 11},
                  "range": [min(places[0], 0) - 1, places[-1] + 1 + max(places[0], 0)]},
        "yaxis": {"ticksuffix": " %", "zeroline": True, "title": {"text": "change of time"}},
        "height": 280,
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def _heights(
    percent: NDArray[np.float64],
    bars: Sequence[tuple[int, ...]],
    groups: Mapping[tuple[int, ...], list[int]],
    heads: Sequence[tuple[int, ...]],
    timed: Timed,
    outer: Sequence[str],
) -> dict[str, Any]:
    """Of one kernel: each bar's median change, the range around it where it is more than one pair, and the clusters'
    labels with their medians: one outlier moves a mean anywhere. The tables have the means too."""
    found = [summarised(percent[groups[key]]) for key in bars]
    made: dict[str, Any] = {"y": [round(float(f[2]), 2) if f else None for f in found]}
    if len(bars) < len(percent):
        made["array"] = [round(float(f[4] - f[2]), 2) if f else 0 for f in found]
        made["arrayminus"] = [round(float(f[2] - f[3]), 2) if f else 0 for f in found]
    clusters: dict[tuple[int, ...], list[int]] = {}
    for key, head in zip(bars, heads, strict=True):
        clusters.setdefault(head, []).extend(groups[key])
    made["ticktext"] = []
    for head, members in clusters.items():
        of = summarised(percent[members])
        values = [
            plain(_cut(str(timed.values[policy][c]), LABEL_ROOM // len(clusters)))
            for policy, c in zip(outer, head, strict=True)
        ]
        made["ticktext"].append(
            "<br>".join([*values, f"<b>{units.percent(float(of[2])) if of else '–'}</b>"])
        )
    return made
