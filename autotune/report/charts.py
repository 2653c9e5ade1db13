"""Charts as Plotly figures in plain dicts. Colours of text and grid are the page's, set where it is drawn.

The palette is Okabe and Ito's, told apart by colour-blind readers; no chart says anything by colour alone.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.report import units
from autotune.report.results import clean

__all__ = [
    "COLOURS", "Bar", "Chart", "Point", "Whisker", "bars", "label_axis", "log_ticks", "plain", "scatter",
    "shares", "time_axis", "whiskers",
]  # fmt: skip

COLOURS = {
    "winner": "#0072B2", "tied": "#56B4E9", "control": "#E69F00", "preset": "#009E73", "slow": "#D55E00",
    "other": "#8C8C8C",
}  # fmt: skip
_BUCKETS = (  # of occupancy: upper bound, colour, symbol
    (0.25, "#D55E00", "triangle-down"),
    (0.50, "#E69F00", "square"),
    (0.75, "#56B4E9", "diamond"),
    (1.00, "#009E73", "circle"),
)
_PLOT_PIXELS = 360  # height of a scatter chart's plot, roughly: to keep labels apart
LOG_ABOVE = 30  # a range of values wider than this gets a logarithmic axis


@dataclass(frozen=True)
class Chart:
    """``alt`` says in words what is drawn, ``caption`` whether that stands below it too; ``figure`` is Plotly's
    ``data`` and ``layout``, with ``narrow``, shorter axis labels for a small screen."""

    name: str
    alt: str
    figure: dict[str, Any]
    caption: bool = True


@dataclass(frozen=True)
class Bar:
    """A bar of ``ms`` milliseconds; ``narrow`` is its label on a small screen."""

    label: str
    narrow: str
    ms: float
    role: str
    text: str


@dataclass(frozen=True)
class Whisker:
    """A range of percent changes with its mean and median."""

    label: str
    low: float
    high: float
    mean: float
    median: float


@dataclass(frozen=True)
class Point:
    """One trial: time in ms against registers. ``row`` is where the page's table of trials has it."""

    row: int
    registers: int
    ms: float
    occupancy: float
    role: str = ""


def bars(name: str, alt: str, entries: Sequence[Bar]) -> Chart:
    """Horizontal bars, the first on top; times on a logarithmic axis when they spread over more than 30x."""
    times = [bar.ms for bar in entries]
    axis, factor = time_axis(times, "time", from_zero=True)
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [bar.ms * factor for bar in entries],
        "y": list(range(len(entries))),
        "text": [plain(bar.text) for bar in entries],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [plain(f"{bar.label}: {units.time(bar.ms)}") for bar in entries],
        "hoverinfo": "text",
        "marker": {"color": [COLOURS[bar.role] for bar in entries]},
    }
    layout = {
        "xaxis": axis,
        "yaxis": label_axis([bar.label for bar in entries]),
        "height": 110 + 26 * len(entries),
    }
    return Chart(
        name, alt, {"data": [trace], "layout": layout, "narrow": [plain(bar.narrow) for bar in entries]}
    )


def shares(name: str, alt: str, entries: Sequence[Bar]) -> Chart:
    """Horizontal bars of shares of one (in ``ms``), the first on top."""
    trace = {
        "type": "bar", "orientation": "h", "x": [100 * bar.ms for bar in entries], "y": list(range(len(entries))),
        "text": [plain(bar.text) for bar in entries], "textposition": "outside", "cliponaxis": False,
        "hovertext": [plain(f"{bar.label}: {bar.text}") for bar in entries], "hoverinfo": "text",
        "marker": {"color": [COLOURS[bar.role] for bar in entries]},
    }  # fmt: skip
    most = max(bar.ms for bar in entries)
    layout = {
        "xaxis": {"ticksuffix": " %", "range": [0, 145 * most or 1]},
        "yaxis": label_axis([bar.label for bar in entries]),
        "height": 90 + 26 * len(entries),
    }
    return Chart(name, alt, {"data": [trace], "layout": layout})


def whiskers(name: str, alt: str, entries: Sequence[Whisker]) -> Chart:
    """A line from the lowest to the highest change, with mean and median, an entry each; the first on top."""
    low, high = (1 + f(getattr(e, side) for e in entries) / 100 for f, side in ((min, "low"), (max, "high")))
    logarithmic = low > 0 and high / low > LOG_ABOVE

    def place(percent: float) -> float:
        return 1 + percent / 100 if logarithmic else percent

    if logarithmic:
        ticks = log_ticks(low, high)
        text = [units.percent(100 * (tick - 1)).replace(".0 %", " %") for tick in ticks]
        edges = [math.log10(low / 1.2), math.log10(high * 1.2)]
        axis: dict[str, Any] = {"type": "log", "range": edges, "tickvals": ticks, "ticktext": text}
    else:
        axis = {"ticksuffix": " %"}
    rows = range(len(entries))
    lines = {
        "type": "scatter", "mode": "lines", "name": "lowest to highest", "line": {"width": 3},
        "hoverinfo": "skip",
        "x": [x for e in entries for x in (place(e.low), place(e.high), None)],
        "y": [y for row in rows for y in (row, row, None)],
        "marker": {"color": COLOURS["other"]},
    }  # fmt: skip
    marks = [
        {
            "type": "scatter", "mode": "markers", "name": field, "y": list(rows), "hoverinfo": "text",
            "x": [place(getattr(e, field)) for e in entries],
            "hovertext": [plain(f"{e.label}: {field} {units.percent(getattr(e, field))}") for e in entries],
            "marker": {"size": 11, "symbol": symbol, "color": COLOURS[colour]},
        }
        for field, symbol, colour in (("median", "circle", "winner"), ("mean", "diamond", "control"))
    ]  # fmt: skip
    zero = place(0)
    line = {"type": "line", "x0": zero, "x1": zero, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
    layout = {
        "xaxis": {**axis, "title": {"text": "change of time (left is faster)"}},
        "yaxis": label_axis([entry.label for entry in entries]),
        "height": 140 + 26 * len(entries),
        "shapes": [line],
        "showlegend": True,
    }
    return Chart(name, alt, {"data": [lines, *marks], "layout": layout})


def scatter(
    name: str, alt: str, points: Sequence[Point], label: str, steps: Sequence[tuple[int, str]] = ()
) -> Chart:
    """Time against registers, occupancy as colour and symbol; points with a role are named on the chart. ``steps`` are
    (registers, text): a line right of so many registers."""
    axis, factor = time_axis([point.ms for point in points], label, from_zero=False)
    data = []
    lower = 0.0
    for upper, colour, symbol in _BUCKETS:
        bucket = [p for p in points if lower < p.occupancy <= upper or (lower == 0 and p.occupancy == 0)]
        if bucket:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{units.share(lower)} to {units.share(upper)}",
                    "x": [p.registers for p in bucket],
                    "y": [p.ms * factor for p in bucket],
                    "customdata": [p.row for p in bucket],  # the page writes the text beside the pointer
                    "hoverinfo": "text",
                    "marker": {"color": colour, "symbol": symbol, "size": 7},
                }
            )
        lower = upper
    layout = {
        "xaxis": _whole([point.registers for point in points], "registers per thread"),
        "yaxis": axis,
        "height": 460,
        "annotations": [*_named(points, axis, factor), *(_step(at, text) for at, text in steps)],
        "shapes": [{**_UPRIGHT, "x0": at + 0.5, "x1": at + 0.5} for at, _ in steps],
        "showlegend": True,
        "legend": {"title": {"text": "occupancy"}},
        "hovermode": "closest",
    }
    return Chart(name, alt, {"data": data, "layout": layout})


def _whole(values: Sequence[int], title: str) -> dict[str, Any]:
    """An axis of whole numbers: no ticks between them."""
    axis: dict[str, Any] = {"title": {"text": title}, "tickformat": "d"}
    return axis | ({"dtick": 1} if max(values) - min(values) < 12 else {})


_UPRIGHT = {"type": "line", "y0": 0, "y1": 1, "yref": "paper", "layer": "below", "line": {"dash": "dash"}}


def _step(at: int, text: str) -> dict[str, Any]:
    """What a line says, beside its upper end."""
    return {
        "x": at + 0.5, "y": 1, "yref": "paper", "text": plain(text), "textangle": -90, "showarrow": False,
        "xanchor": "right", "yanchor": "top", "name": "step",
    }  # fmt: skip


def _named(points: Sequence[Point], axis: Mapping[str, Any], factor: float) -> list[dict[str, Any]]:
    """Labels for the points that have a role, beside them and clear of each other."""
    logarithmic = axis.get("type") == "log"
    least, most = axis["range"]
    middle = (min(p.registers for p in points) + max(p.registers for p in points)) / 2
    notes = []
    named = sorted((p for p in points if p.role), key=lambda p: -p.ms)
    heights = [math.log10(p.ms) if logarithmic else p.ms * factor for p in named]
    places = [
        _PLOT_PIXELS * (most - y) / (most - least) for y in heights
    ]  # in pixels from the top of the plot
    labels: list[float] = []
    for at in places:  # each below the one above
        labels.append(max(at - 12, labels[-1] + 24 if labels else 10.0))
    floor = _PLOT_PIXELS - 14.0
    for i in reversed(range(len(labels))):  # and none below the plot
        labels[i] = min(labels[i], floor)
        floor = labels[i] - 24
    for point, y, at, label in zip(named, heights, places, labels, strict=True):
        right = point.registers <= middle
        notes.append(
            {
                "x": point.registers,
                "y": y,
                "text": plain(point.role),
                "ax": 60 if right else -60,
                "ay": label - at,
                "xanchor": "left" if right else "right",
            }
        )
    return notes


def plain(text: str) -> str:
    """Text for Plotly, which reads a few HTML tags in labels: what comes from a record must show as it is."""
    return html.escape(" ".join(clean(text).split()), quote=False)


def label_axis(labels: Sequence[str]) -> dict[str, Any]:
    count = len(labels)
    return {
        "tickvals": list(range(count)),
        "ticktext": [plain(label) for label in labels],
        "range": [count - 0.4, -0.6],
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
    }


def time_axis(
    times: Sequence[float], title: str, *, from_zero: bool, logarithmic: bool = False
) -> tuple[dict[str, Any], float]:
    """A Plotly axis for times in ms, and the factor that brings them to its unit; logarithmic when they spread over
    more than ``LOG_ABOVE`` times."""
    low, high = min(times), max(times)
    if low > 0 and (logarithmic or high / low > LOG_ABOVE):
        start, room = (
            (low / 2, 4.0) if from_zero else (low / 1.3, 1.3)
        )  # room for the text beside the longest bar
        ticks = log_ticks(low, high)
        return {
            "type": "log",
            "range": [math.log10(start), math.log10(high * room)],
            "tickvals": ticks,
            "ticktext": [units.time(tick).replace(".00 ", " ").replace(".0 ", " ") for tick in ticks],
            "title": {"text": f"{plain(title)} (logarithmic)"},
        }, 1.0
    unit = units.time(high).split()[-1]
    factor = {"ns": 1e6, "µs": 1e3, "ms": 1.0, "s": 1e-3}[unit]
    axis: dict[str, Any] = {"title": {"text": f"{plain(title)} ({unit})"}}
    room = (high - low) * 0.06 or high * 0.06
    axis["range"] = [0, high * 1.3 * factor] if from_zero else [(low - room) * factor, (high + room) * factor]
    return axis, factor


def log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 3000 else (1,)
    return [step * 10.0**power for power in decades for step in steps]
