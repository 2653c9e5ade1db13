"""Charts as Plotly figures in plain dicts. Colours of text and grid are the page's, set where it is drawn.

The palette is Okabe and Ito's, distinguished by colour-blind readers; no chart says anything by colour alone.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune import figures as units
from autotune.files import clean
from autotune.measure import unit

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
    """One trial: time in ms against ``x``, registers or a cost in the chart's unit. ``row`` is where the page's table
    of trials has it; ``front`` says that nothing beats it in both."""

    row: int
    x: float
    ms: float
    role: str
    occupancy: float = 0.0
    front: bool = False


def bars(name: str, alt: str, entries: Sequence[Bar]) -> Chart:
    """Horizontal bars, the first on top; times on a logarithmic axis when they spread over more than 30x."""
    axis, factor = time_axis([bar.ms for bar in entries], "time", from_zero=True)
    told = [units.duration(bar.ms) for bar in entries]
    figure = _bars(entries, factor, told, axis, 110)
    return Chart(name, alt, {**figure, "narrow": [to_plain_text(bar.narrow) for bar in entries]})


def shares(name: str, alt: str, entries: Sequence[Bar]) -> Chart:
    """Horizontal bars of shares of one (in ``ms``), the first on top."""
    most = max(bar.ms for bar in entries)
    axis = {"ticksuffix": " %", "range": [0, 145 * most or 1]}
    return Chart(name, alt, _bars(entries, 100, [bar.text for bar in entries], axis, 90))


def _bars(
    entries: Sequence[Bar], factor: float, told: Sequence[str], axis: Mapping[str, Any], room: int
) -> dict[str, Any]:
    """``told`` is what stands next to the pointer, ``room`` the height of all but the bars."""
    trace = {
        "type": "bar", "orientation": "h", "x": [factor * bar.ms for bar in entries], "y": list(range(len(entries))),
        "text": [to_plain_text(bar.text) for bar in entries], "textposition": "outside", "cliponaxis": False,
        "hovertext": [to_plain_text(f"{bar.label}: {one}") for bar, one in zip(entries, told, strict=True)],
        "hoverinfo": "text", "marker": {"color": [COLOURS[bar.role] for bar in entries]},
    }  # fmt: skip
    layout = {
        "xaxis": axis,
        "yaxis": label_axis([bar.label for bar in entries]),
        "height": room + 26 * len(entries),
    }
    return {"data": [trace], "layout": layout}


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
            "hovertext": [to_plain_text(f"{e.label}: {field} {units.percent(getattr(e, field))}") for e in entries],
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
    """Plot time against registers, occupancy as colour and symbol; points with a role have their name on the chart.
    ``steps`` are (registers, text): a line to the right of that number of registers."""
    axis, factor = time_axis([point.ms for point in points], label, from_zero=False)
    data = []
    lower = 0.0
    for upper, colour, symbol in _BUCKETS:
        bucket = [p for p in points if lower < p.occupancy <= upper or (lower == 0 and p.occupancy == 0)]
        if bucket:
            name = f"{units.share(lower)} to {units.share(upper)}"
            marker = {"color": colour, "symbol": symbol, "size": 7}
            data.append(_spots(bucket, (1.0, factor), mode="markers", name=name, marker=marker))
        lower = upper
    registers = [point.x for point in points]
    across: dict[str, Any] = {"title": {"text": "registers per thread"}, "tickformat": "d"}
    across |= {"dtick": 1} if max(registers) - min(registers) < 12 else {}  # no ticks between them
    layout = {
        "xaxis": across,
        "yaxis": axis,
        "height": 460,
        "annotations": [
            *_label(points, (across, axis), (1.0, factor)),
            *(_step(at, text) for at, text in steps),
        ],
        "shapes": [{**_UPRIGHT, "x0": at + 0.5, "x1": at + 0.5} for at, _ in steps],
        "showlegend": True,
        "legend": {"title": {"text": "occupancy"}},
        "hovermode": "closest",
    }
    return Chart(name, alt, {"data": data, "layout": layout})


def _spots(points: Sequence[Point], factors: tuple[float, float], **more: Any) -> dict[str, Any]:
    """``points`` as marks; the page writes the text next to the pointer."""
    return {
        "type": "scatter", "x": [p.x * factors[0] for p in points], "y": [p.ms * factors[1] for p in points],
        "customdata": [p.row for p in points], "hoverinfo": "text", **more,
    }  # fmt: skip


_UPRIGHT = {"type": "line", "y0": 0, "y1": 1, "yref": "paper", "layer": "below", "line": {"dash": "dash"}}


def _step(at: int, text: str) -> dict[str, Any]:
    """What a line says, next to its upper end."""
    return {
        "x": at + 0.5, "y": 1, "yref": "paper", "text": to_plain_text(text), "textangle": -90, "showarrow": False,
        "xanchor": "right", "yanchor": "top", "name": "step",
    }  # fmt: skip


def _label(
    points: Sequence[Point], axes: Sequence[Mapping[str, Any]], factors: Sequence[float]
) -> list[dict[str, Any]]:
    """Labels of the points that have a role, by turns on their right and on their left."""
    notes = []
    for i, point in enumerate(sorted((p for p in points if p.role), key=lambda p: p.ms)):
        given = zip((point.x, point.ms), axes, factors, strict=True)
        x, y = (math.log10(v * f) if axis.get("type") == "log" else v * f for v, axis, f in given)
        notes.append(
            {"x": x, "y": y, "text": to_plain_text(point.role), "ax": -46 if i % 2 else 46, "ay": -26}
        )
    return notes


def to_plain_text(text: str) -> str:
    """Text for Plotly, which reads a few HTML tags in labels: what comes from a record must show as it is."""
    return html.escape(" ".join(clean(text).split()), quote=False)


def label_axis(labels: Sequence[str]) -> dict[str, Any]:
    count = len(labels)
    return {
        "tickvals": list(range(count)),
        "ticktext": [to_plain_text(label) for label in labels],
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
        # With room for the text at the end of the longest bar.
        start, room = (low / 2, 4.0) if from_zero else (low / 1.3, 1.3)
        ticks = log_ticks(low, high)
        return {
            "type": "log",
            "range": [math.log10(start), math.log10(high * room)],
            "tickvals": ticks,
            "ticktext": [units.duration(tick).replace(".00 ", " ").replace(".0 ", " ") for tick in ticks],
            "title": {"text": f"{to_plain_text(title)} (logarithmic)"},
        }, 1.0
    unit = units.duration(high).split()[-1]
    factor = {"ns": 1e6, "µs": 1e3, "ms": 1.0, "s": 1e-3}[unit]
    axis: dict[str, Any] = {"title": {"text": f"{to_plain_text(title)} ({unit})"}}
    room = (high - low) * 0.06 or high * 0.06
    axis["range"] = [0, high * 1.3 * factor] if from_zero else [(low - room) * factor, (high + room) * factor]
    return axis, factor


def log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 3000 else (1,)
    return [step * 10.0**power for power in decades for step in steps]


_SCALES = {"bytes": (2**-20, "MiB"), "ms": (1.0, "ms"), "j": (1e3, "mJ"), "w": (1.0, "W"), "s": (1.0, "s")}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7")  # Okabe and Ito

_STATES = {
    "measured": ("#0072B2", ""), "excluded": ("#8C8C8C", "/"), "compile_failed": ("#E69F00", "x"),
    "launch_failed": ("#56B4E9", "\\"), "wrong_result": ("#D55E00", "+"), "timed_out": ("#CC79A7", "-"),
    "crashed": ("#009E73", "|"),
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """``steps`` draws it level from point to point, each marked."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    steps: bool = False


def cloud(name: str, alt: str, spots: Sequence[Point], key: str, title: str) -> Chart:
    """Time against a cost, whose ``key`` ends in its unit; the front, which nothing beats in both, is a line."""
    axis, factor = time_axis([s.ms for s in spots], "time of one call", from_zero=False)
    scale, shown = _SCALES[unit(key)]
    factors = scale, factor
    label = f"{title} ({shown})"
    low, high = min(s.x for s in spots), max(s.x for s in spots)
    across: dict[str, Any] = {"title": {"text": label}}
    if low > 0 and high / low > LOG_ABOVE:
        across |= {"type": "log", "title": {"text": f"{label}, logarithmic"}}
    front = sorted((s for s in spots if s.front), key=lambda s: (s.x, -s.ms))
    others = [s for s in spots if not s.front]

    data = [
        _spots(others, factors, mode="markers", name="others",
               marker={"color": COLOURS["other"], "size": 6, "opacity": 0.6}),
        _spots(front, factors, mode="lines+markers", name="nothing better in both",
              line={"color": COLOURS["winner"], "shape": "hv", "width": 2},
              marker={"color": COLOURS["winner"], "size": 9, "symbol": "diamond"}),
    ]  # fmt: skip
    layout = {
        "xaxis": across, "yaxis": axis, "height": 400, "annotations": _label(spots, (across, axis), factors),
        "showlegend": True,
        "hovermode": "closest",
    }  # fmt: skip
    return Chart(name, alt, {"data": [t for t in data if t["x"]], "layout": layout})


def lines(
    name: str, alt: str, given: Sequence[Line], across: str, up: str, *, logarithmic: tuple[bool, bool]
) -> Chart:
    """Lines distinguished by colour and dash; ``up`` is a title for times in ms."""
    everything = [y for line in given for y in line.y]
    axis, factor = time_axis(everything, up, from_zero=False, logarithmic=logarithmic[1])
    x_axis: dict[str, Any] = {
        "title": {"text": to_plain_text(across)},
        "rangemode": "tozero",
        "zeroline": False,
    }
    if logarithmic[0]:
        x_axis |= {"type": "log", "dtick": 1}
    layout = {"xaxis": x_axis, "yaxis": axis, "height": 320, "showlegend": len(given) > 1}
    return Chart(name, alt, {"data": line_traces(given, factor), "layout": layout})


def line_traces(given: Sequence[Line], factor: float = 1) -> list[dict[str, Any]]:
    """Lines distinguished by colour and dash."""
    data = []
    for i, line in enumerate(given):
        colour, dash = CYCLE[i % len(CYCLE)], DASHES[i % len(DASHES)]
        style = {"color": colour, "width": 2.5, "dash": dash, **({"shape": "hv"} if line.steps else {})}
        data.append(
            {
                "type": "scatter", "mode": "lines+markers" if line.steps else "lines",
                "name": to_plain_text(line.label),
                "x": list(line.x), "y": [y * factor for y in line.y], "line": style, "keep": True,
                "marker": {"color": colour, "size": 7},
            }
        )  # fmt: skip
    return data


def stacked(
    name: str, alt: str, counts: Mapping[str, Sequence[int]], places: Sequence[int], width: int
) -> Chart:
    """How many trials ended in each state, in groups of ``width`` trials; states differ in colour and hatching."""
    data = []
    for state, of in counts.items():
        colour, hatch = _STATES[state]
        marker = {"color": colour, "pattern": {"shape": hatch, "solidity": 0.25}}
        data.append(
            {"type": "bar", "name": state, "x": [p + width / 2 for p in places], "y": list(of), "width": width,
             "marker": marker, "flush": True}
        )  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "trials, in the order of the record"}},
        "yaxis": {"title": {"text": f"of {width} trials" if width > 1 else "trial"}},
        "height": 220, "barmode": "stack", "bargap": 0, "showlegend": True,
    }  # fmt: skip
    return Chart(name, alt, {"data": data, "layout": layout})


def heat(
    name: str, alt: str, rows: Sequence[str], columns: Sequence[str], ratios: Sequence[Sequence[float | None]]
) -> Chart:
    """A row a workload, a column a configuration (``columns`` are their ids); shade by the ratio, logarithmic. The
    page writes ratio and id next to the pointer."""
    most = max(1.02, *(r for row in ratios for r in row if r is not None))
    ticks = [1.0]
    for tick in (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 300, 1000, 3000):
        if tick <= most and math.log10(tick / ticks[-1]) > math.log10(most) / 9:  # room for its label
            ticks.append(tick)
    trace = {
        "type": "heatmap",
        "z": [[None if r is None else round(math.log10(r), 4) for r in row] for row in ratios],
        "ratios": [[None if r is None else float(f"{r:.4g}") for r in row] for row in ratios],
        "columns": list(columns), "rows": [to_plain_text(row) for row in rows],
        "zmin": 0, "zmax": math.log10(most), "hoverinfo": "text", "ygap": 2,
        # Cividis, light for fast: even steps of lightness, for every kind of colour vision.
        "colorscale": [[0, "#fee838"], [0.25, "#c3b369"], [0.5, "#7c7b78"], [0.75, "#414d6b"], [1, "#00224e"]],
        "colorbar": {"title": {"text": "time / best"}, "tickvals": [math.log10(t) for t in ticks],
                     "ticktext": [f"{t:g}×" for t in ticks], "thickness": 14},
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "configurations, the best worst case first"}, "showgrid": False,
                  "zeroline": False},
        "yaxis": {"tickvals": list(range(len(rows))), "ticktext": [to_plain_text(row) for row in rows],
                  "showgrid": False,
                  "zeroline": False, "autorange": "reversed"},
        "height": 130 + 46 * len(rows),
    }  # fmt: skip
    return Chart(name, alt, {"data": [trace], "layout": layout})
