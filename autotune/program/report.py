"""The report of a program: one HTML file with a picture of its kernels, arrays, layouts and conversions, and the table
of assignments. Everything is inside, and nothing in it runs."""

import math
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from autotune.figures import bare, duration, loss_percent, size
from autotune.files import write_text
from autotune.program.aging import Aged
from autotune.program.costs import Choice, Converted
from autotune.program.explain import explained, stories
from autotune.program.tuning import ProgramRow, Tuned

_LANE, _LEFT, _STEP, _TOP = (
    118,
    250,
    58,
    64,
)  # of the picture: an array's lane, the steps' names, a step, the head
_COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#8e6c8a", "#b08900", "#4059ad", "#7f4f24", "#6c757d")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child,td.text{text-align:left}tr.chosen{font-weight:600}pre{background:#f5f5f5;padding:1rem;
overflow:auto}svg{max-width:100%;height:auto}.wrong{color:#b00020}p.note{color:#555}
@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}pre{background:#222}td,th{border-color:#444}
svg text{fill:#e8e8e8}.wrong{color:#ff8a80}p.note{color:#aaa}}
"""
_LEGEND = (
    "A lane is an array, a bar a step with the time of one run, how often it runs and what that makes. A ring is an "
    "array that is read, a disc one that is written, its colour the layout. A diamond is a conversion."
)


def write_report(tuned: Tuned, path: Path) -> Path:
    """Write the page of ``tuned`` to ``path``, whole or not at all. Raises StoreError."""
    return write_text(path, page(tuned))


def page(tuned: Tuned) -> str:
    """The page as HTML."""
    program, row = tuned.bound.program, tuned.chosen
    parts = [
        f"<h1>{escape(program.title or program.name)}</h1>",
        _headline(tuned),
        "<h2>The chosen layouts</h2>", picture(tuned),
        f"<p class=note>{_LEGEND}</p>",
        "<h2>Beside other assignments</h2>", table(tuned),
        "<h2>Who gave way</h2>",
        f"<pre>{escape(explained(stories(tuned.problem, tuned.picks(row), tuned.bound.data)))}</pre>",
        *(_aged(one) for one in tuned.aged),
        "<h2>What was measured</h2>", _measured(tuned),
    ]  # fmt: skip
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        f"<title>{escape(program.name)}: layouts</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _headline(tuned: Tuned) -> str:
    control, best = tuned.row("control"), tuned.chosen.measured_ms
    beside = ""
    if control is not None and not control.refusal and best:
        beside = f", {bare(control.measured_ms / best)} times as fast as the program as declared"
    where = f"{tuned.bound.program.name} on {tuned.workload}, {tuned.device.name}"
    return f"<p>{escape(where)}: <b>{duration(best)}</b> a turn of the loop{beside}.</p>"


# -- the picture


def picture(tuned: Tuned) -> str:
    """Steps from top to bottom, arrays as lanes, forms as colours, conversions as diamonds, milliseconds on each."""
    bound, row = tuned.bound, tuned.chosen
    picks = tuned.picks(row)
    arrays, steps = list(bound.data), list(picks)
    colours = _colours(tuned, picks)
    lane = {name: _LEFT + _LANE * at + _LANE // 2 for at, name in enumerate(arrays)}
    wide, high = _LEFT + _LANE * len(arrays) + 20, _TOP + _STEP * len(steps) + 30
    drawn = [
        f'<svg viewBox="0 0 {wide} {high}" width="{wide}" role="img" font-family="system-ui" font-size="12">'
    ]
    drawn.append(f"<title>{escape(bound.program.name)}: steps, arrays, layouts and conversions</title>")
    for name, x in lane.items():
        kind = bound.data[name].record or bound.data[name].fields[0].type
        drawn.append(_text(x, 18, name, "middle", weight=600))
        drawn.append(_text(x, 34, f"{kind} {'x'.join(map(str, bound.shapes[name]))}", "middle", small=True))
        drawn.append(
            f'<line x1="{x}" x2="{x}" y1="44" y2="{high - 20}" stroke="#999" stroke-dasharray="2 4"/>'
        )
    for at, step in enumerate(steps):
        y = _TOP + _STEP * at + 22
        drawn += _drawn_step(tuned, row, step, picks[step], y, lane, colours)
    drawn.append("</svg>")
    legend = " ".join(
        f'<span style="display:inline-block;width:.9em;height:.9em;background:{colour}"></span> {escape(label)}&emsp;'
        for label, colour in colours.items()
    )
    return "\n".join([*drawn, f"<p>{legend}</p>"])


def _colours(tuned: Tuned, picks: Mapping[str, Choice]) -> dict[str, str]:
    """A colour for each form in words, the same in all arrays."""
    data = tuned.bound.data
    words: dict[str, None] = {}
    for option in picks.values():
        call = option.of.call
        words |= {option.of.forms[name].text(data[array]): None for name, array in call.arrays.items()}
    return {word: _COLOURS[at % len(_COLOURS)] for at, word in enumerate(words)}


def _drawn_step(
    tuned: Tuned,
    row: ProgramRow,
    step: str,
    option: Choice,
    y: int,
    lane: Mapping[str, int],
    colours: Mapping[str, str],
) -> list[str]:
    call, data = option.of.call, tuned.bound.data
    runs = tuned.problem.traffic.runs.get(step, 0)
    touched = [lane[name] for name in call.arrays.values()]
    left, right = min(touched) - 16, max(touched) + 16
    drawn = [
        _text(8, y - 3, step, weight=600),
        _text(8, y + 12, f"{duration(option.ms)} x {runs:,} = {duration(option.ms * runs)}", small=True),
        f'<rect x="{left}" y="{y - 5}" width="{right - left}" height="10" rx="5" fill="#8884"/>',
    ]
    for port, name in call.arrays.items():
        word = option.of.forms[port].text(data[name])
        is_read = call.family.data[port].role == "input"
        look = (
            f'fill="{colours[word]}"'
            if not is_read
            else f'fill="#fff" stroke="{colours[word]}" stroke-width="4"'
        )
        at, told = (
            lane[name] + (-9 if is_read else 9),
            f"{step} {'reads' if is_read else 'writes'} {name}: {word}",
        )
        drawn.append(f'<circle cx="{at}" cy="{y}" r="7" {look}><title>{escape(told)}</title></circle>')
    for one in row.cost.conversions:
        if step in one.readers:
            drawn += _drawn_conversion(one, lane[one.array], y - 24)
    return drawn


def _drawn_conversion(one: Converted, x: int, y: int) -> list[str]:
    told = f"{one.count:,} x {duration(one.ms)}"
    look = 'fill="#d4a017" stroke="#7a5c00"'
    return [
        f'<path d="M{x} {y - 8} l8 8 l-8 8 l-8 -8 z" {look}><title>conversion: {escape(told)}</title></path>',
        _text(x + 12, y + 4, told, small=True),
    ]


def _text(
    x: int, y: int, words: str, anchor: str = "start", *, weight: int = 400, small: bool = False
) -> str:
    look = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{10 if small else 12}"'
    return f'<text x="{x}" y="{y}" {look}>{escape(words)}</text>'


# -- tables


def table(tuned: Tuned) -> str:
    """The assignments that were run whole."""
    best = tuned.chosen.measured_ms
    head = ("assignment", "measured", "beside the chosen", "predicted", "off", "conversions", "memory")
    rows = []
    for row in tuned.rows:
        if row.refusal:
            cells = [row.name, f"<span class=wrong>{escape(row.refusal)}</span>"]
            rows.append(
                f"<tr><td>{escape(cells[0])}</td><td class=text colspan={len(head) - 1}>{cells[1]}</td></tr>"
            )
            continue
        converted = sum(one.count for one in row.cost.conversions)
        cells = [
            escape(row.name), f"{duration(row.measured_ms)} ± {100 * row.spread:.1f} %",
            f"{bare(row.measured_ms / best)} x",
            duration(row.predicted_ms), f"{100 * row.error:+.1f} %", f"{converted:,}", size(row.cost.nbytes),
        ]  # fmt: skip
        kind = " class=chosen" if row is tuned.chosen else ""
        rows.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return _table(head, rows)


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    return "<table><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr>" + "".join(rows) + "</table>"


def _aged(aged: Aged) -> str:
    rows = [
        f"<tr{' class=chosen' if period == aged.chosen else ''}><td>{'never' if not period else f'every {period}'}</td>"
        f"<td>{duration(ms)}</td></tr>"
        for period, ms in aged.by_period.items()
    ]
    pays = (
        f"it has paid for itself after {aged.pays_after} turns"
        if aged.pays_after
        else "it never pays for itself"
    )
    least, most = min(aged.turn_ms, default=0.0), max(aged.turn_ms, default=0.0)
    return (
        f"<h2>How often {escape(aged.step)} pays</h2><p>It takes {duration(aged.step_ms)}; a turn behind it takes "
        f"{duration(least)} at best and {duration(most)} at worst: {pays}.</p>"
        + _table(("", "a turn"), rows) + _decay(aged)
    )  # fmt: skip


def _decay(aged: Aged) -> str:
    """The turns by their age, as a line."""
    if len(aged.turn_ms) < 2:
        return ""
    top, wide, high = max(aged.turn_ms), 600, 140
    points = " ".join(
        f"{40 + (wide - 60) * at / (len(aged.turn_ms) - 1):.1f},{high - 20 - (high - 40) * ms / top:.1f}"
        for at, ms in enumerate(aged.turn_ms)
    )
    return (
        f'<svg viewBox="0 0 {wide} {high}" width="{wide}" role="img" font-family="system-ui">'
        f"<title>milliseconds of a turn by its age</title>"
        f'<polyline points="{points}" fill="none" stroke="{_COLOURS[0]}" stroke-width="2"/>'
        + _text(40, 14, duration(top), small=True)
        + _text(wide - 20, high - 6, f"{len(aged.turn_ms)} turns", "end", small=True)
        + "</svg>"
    )  # fmt: skip


def _measured(tuned: Tuned) -> str:
    counts, solution = tuned.counts, tuned.solution
    gap = f"{100 * solution.gap:.2g} %" if solution.gap else "none"
    share = f"{100 * counts.share:.2g} %" if math.isfinite(counts.share) else "–"
    told = [
        f"{counts.configurations:,} configurations of single steps by sweeps",
        f"{counts.in_loop:,} candidates in the loop, in {counts.runs:,} runs of a few turns",
        f"{counts.conversions:,} conversions",
        f"{counts.assignments:,.0f} assignments of these candidates; measured is {share} of the runs they would take",
        f"the exact answer, predicted: {duration(solution.cost.ms)}; bound {duration(solution.bound)}, gap {gap}",
        f"the chosen one is predicted to lose {loss_percent(tuned.regret)} to that bound",
        f"{tuned.compared:,} arrays were compared with the program as declared, step by step",
        f"times are of {tuned.turns} turns; seconds: "
        + ", ".join(f"{name} {value:.1f}" for name, value in tuned.seconds.items()),
    ]
    failed = [
        f"{step} {configuration}: {why[:1500]}"
        for step, many in tuned.failed.items()
        for configuration, why in many.items()
    ]
    lost = f"<h2>What failed</h2><pre>{escape(chr(10).join(failed))}</pre>" if failed else ""
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in told) + f"</ul>{lost}"
