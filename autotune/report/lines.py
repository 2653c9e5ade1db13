"""Charts of section 4 and 5: clouds with their front, lines over calls and trials, shares of states, regrets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.report.charts import COLOURS, Chart, plain, time_axis

__all__ = ["CYCLE", "DASHES", "Line", "Spot", "cloud", "heat", "lines", "stacked"]

_MIB = 2**20
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7")  # Okabe and Ito
_STATES = {
    "measured": ("#0072B2", ""), "excluded": ("#8C8C8C", "/"), "compile_failed": ("#E69F00", "x"),
    "launch_failed": ("#56B4E9", "\\"), "wrong_result": ("#D55E00", "+"), "timed_out": ("#CC79A7", "-"),
    "crashed": ("#009E73", "|"),
}  # fmt: skip


@dataclass(frozen=True)
class Spot:
    """One trial: ``x`` in the chart's unit, time in ms, its row in the page's table, and whether it is on the front."""

    row: int
    x: float
    ms: float
    front: bool
    role: str = ""


@dataclass(frozen=True)
class Line:
    """``text`` stands at the line's end; ``steps`` draws it level from point to point."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    steps: bool = False
    marks: bool = False


def cloud(name: str, alt: str, spots: Sequence[Spot], unit: str, title: str) -> Chart:
    """Time against a cost of ``unit`` ``bytes`` or ``ms``; the front, which nothing beats in both, is a line."""
    axis, factor = time_axis([s.ms for s in spots], "time of one call", from_zero=False)
    scale = 1 / _MIB if unit == "bytes" else 1.0
    label = f"{title} ({'MiB' if unit == 'bytes' else 'ms'})"
    low, high = min(s.x for s in spots), max(s.x for s in spots)
    across: dict[str, Any] = {"title": {"text": label}}
    if low > 0 and high / low > 30:
        across |= {"type": "log", "title": {"text": f"{label}, logarithmic"}}
    front = sorted((s for s in spots if s.front), key=lambda s: (s.x, -s.ms))
    others = [s for s in spots if not s.front]

    def trace(some: Sequence[Spot], **more: Any) -> dict[str, Any]:
        return {
            "type": "scatter", "x": [s.x * scale for s in some], "y": [s.ms * factor for s in some],
            "customdata": [s.row for s in some], "hoverinfo": "text", **more,
        }  # fmt: skip

    data = [
        trace(others, mode="markers", name="others", marker={"color": COLOURS["other"], "size": 6, "opacity": 0.6}),
        trace(front, mode="lines+markers", name="nothing better in both",
              line={"color": COLOURS["winner"], "shape": "hv", "width": 2},
              marker={"color": COLOURS["winner"], "size": 9, "symbol": "diamond"}),
    ]  # fmt: skip
    logarithmic = [one.get("type") == "log" for one in (across, axis)]
    notes = [
        {
            "x": math.log10(s.x * scale) if logarithmic[0] else s.x * scale,
            "y": math.log10(s.ms * factor) if logarithmic[1] else s.ms * factor,
            "text": plain(s.role), "ax": 34, "ay": -26,
        }
        for s in spots
        if s.role
    ]  # fmt: skip
    layout = {
        "xaxis": across, "yaxis": axis, "height": 400, "annotations": notes, "showlegend": True,
        "hovermode": "closest",
    }  # fmt: skip
    return Chart(name, alt, {"data": [t for t in data if t["x"]], "layout": layout})


def lines(
    name: str, alt: str, given: Sequence[Line], across: str, up: str, *, logarithmic: tuple[bool, bool]
) -> Chart:
    """Lines told apart by colour and dash; ``up`` is a title for times in ms."""
    everything = [y for line in given for y in line.y]
    axis, factor = time_axis(everything, up, from_zero=False, logarithmic=logarithmic[1])
    data = []
    for i, line in enumerate(given):
        style: dict[str, Any] = {
            "color": CYCLE[i % len(CYCLE)],
            "width": 2.5,
            "dash": DASHES[i % len(DASHES)],
        }
        if line.steps:
            style["shape"] = "hv"
        data.append(
            {
                "type": "scatter", "mode": "lines+markers" if line.marks else "lines", "name": plain(line.label),
                "x": list(line.x), "y": [y * factor for y in line.y], "line": style, "keep": True,
                "marker": {"color": style["color"], "size": 7},
            }
        )  # fmt: skip
    x_axis: dict[str, Any] = {"title": {"text": plain(across)}, "rangemode": "tozero", "zeroline": False}
    if logarithmic[0]:
        x_axis |= {"type": "log", "dtick": 1}
    layout = {"xaxis": x_axis, "yaxis": axis, "height": 320, "showlegend": len(given) > 1}
    return Chart(name, alt, {"data": data, "layout": layout})


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
    page writes ratio and id beside the pointer."""
    most = max(1.02, *(r for row in ratios for r in row if r is not None))
    ticks = [1.0]
    for tick in (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 300, 1000, 3000):
        if tick <= most and math.log10(tick / ticks[-1]) > math.log10(most) / 9:  # room for its label
            ticks.append(tick)
    trace = {
        "type": "heatmap",
        "z": [[None if r is None else round(math.log10(r), 4) for r in row] for row in ratios],
        "ratios": [[None if r is None else float(f"{r:.4g}") for r in row] for row in ratios],
        "columns": list(columns), "rows": [plain(row) for row in rows],
        "zmin": 0, "zmax": math.log10(most), "hoverinfo": "text", "ygap": 2,
        # Cividis, light for fast: even steps of lightness, for every kind of colour vision.
        "colorscale": [[0, "#fee838"], [0.25, "#c3b369"], [0.5, "#7c7b78"], [0.75, "#414d6b"], [1, "#00224e"]],
        "colorbar": {"title": {"text": "time / best"}, "tickvals": [math.log10(t) for t in ticks],
                     "ticktext": [f"{t:g}×" for t in ticks], "thickness": 14},
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "configurations, the best worst case first"}, "showgrid": False,
                  "zeroline": False},
        "yaxis": {"tickvals": list(range(len(rows))), "ticktext": [plain(row) for row in rows], "showgrid": False,
                  "zeroline": False, "autorange": "reversed"},
        "height": 130 + 46 * len(rows),
    }  # fmt: skip
    return Chart(name, alt, {"data": [trace], "layout": layout})
