"""The report of a program: one HTML file with a picture of its kernels, arrays, layouts and conversions, and the table
of assignments. Everything is inside, and nothing in it runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from autotune.figures import bare, duration, size
from autotune.files import write_text
from autotune.program.explain import explained, stories
from autotune.program.tuning import Tuned

_LANE, _LEFT, _STEP, _TOP = (
    118,
    250,
    58,
    86,
)  # of the picture: an array's lane, the steps' names, a step, the head
_COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#8e6c8a", "#b08900", "#4059ad", "#7f4f24", "#6c757d")


def write_report(tuned: Tuned, path: Path) -> Path:
    """Write the page of ``tuned`` to ``path``, whole or not at all. Raises StoreError."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(Path(__file__).with_name("report.html.j2").read_text(encoding="utf-8"))
    declared, best = tuned.row("control"), tuned.chosen.measured_ms
    page = template.render(
        tuned=tuned, program=tuned.bound.program, picture=picture(tuned), decay=decay, duration=duration, bare=bare,
        size=size, stories=explained(stories(tuned.problem, tuned.chosen.picks, tuned.bound.data)),
        speedup=bare(declared.measured_ms / best) if declared and not declared.refusal else "",
        failed=[f"{step} {of}: {why[:1500]}" for step, many in tuned.failed.items() for of, why in many.items()],
    )  # fmt: skip
    return write_text(path, page)


def picture(tuned: Tuned) -> dict[str, Any]:
    """Where everything is: arrays as lanes, steps from top to bottom, a colour for each form."""
    bound, picks = tuned.bound, tuned.chosen.picks
    x = {name: _LEFT + _LANE * at + _LANE // 2 for at, name in enumerate(bound.data)}
    colours: dict[str, str] = {}
    steps = []
    for at, (step, choice) in enumerate(picks.items()):
        call, runs, ports = choice.of.call, tuned.problem.traffic.runs.get(step, 0), []
        for data, name in call.arrays.items():
            word, is_read = choice.of.forms[data].text(bound.data[name]), data in call.reads
            colour = colours.setdefault(word, _COLOURS[len(colours) % len(_COLOURS)])
            about = f"{step} {'reads' if is_read else 'writes'} {name}: {word}"
            ports.append(
                {"x": x[name] + (-9 if is_read else 9), "is_read": is_read, "colour": colour, "about": about}
            )
        conversions = [
            {"x": x[one.array], "about": f"{one.count:,} x {duration(one.ms)}"}
            for one in tuned.chosen.cost.conversions
            if step in one.readers
        ]
        lanes = [x[name] for name in call.arrays.values()]
        about = f"{duration(choice.ms)} x {runs:,} = {duration(choice.ms * runs)}"
        steps.append({"name": step, "y": _TOP + _STEP * at, "about": about, "ports": ports, "conversions": conversions,
                      "left": min(lanes) - 16, "right": max(lanes) + 16})  # fmt: skip
    kinds = {name: data.record or data.fields[0].type for name, data in bound.data.items()}
    lanes_ = [
        {"name": name, "x": x[name], "about": f"{kinds[name]} {'x'.join(map(str, bound.shapes[name]))}"}
        for name in x
    ]
    width, height = _LEFT + _LANE * len(x) + 20, _TOP + _STEP * len(steps) + 8
    return {"width": width, "height": height, "lanes": lanes_, "steps": steps, "colours": colours}


def decay(turn_ms: Sequence[float]) -> str:
    """The points of a line: turns by their age."""
    top, last = max(turn_ms), max(1, len(turn_ms) - 1)
    return " ".join(f"{40 + 540 * at / last:.1f},{120 - 100 * ms / top:.1f}" for at, ms in enumerate(turn_ms))
