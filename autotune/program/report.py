"""What is said of a tuned program: of each array who gave way, and one HTML file with a picture of its kernels, arrays,
layouts and conversions, and the table of assignments. Everything is inside, and nothing in it runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.figures import duration, format_plain, size
from autotune.files import write_text
from autotune.layout import Data
from autotune.program.costs import Choice, Problem, cost
from autotune.program.tuning import Tuned

# Of the picture: an array's lane, steps' names, a step, the head.
_LANE, _LEFT, _STEP, _TOP = 118, 250, 58, 86
_COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#8e6c8a", "#b08900", "#4059ad", "#7f4f24", "#6c757d")


def write_report(tuned: Tuned, path: Path) -> Path:
    """Write the page of ``tuned`` to ``path``, whole or not at all. Raises StoreError."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(Path(__file__).with_name("report.html.j2").read_text(encoding="utf-8"))
    declared, best = tuned.row("control"), tuned.chosen.measured_ms
    page = template.render(
        tuned=tuned, program=tuned.bound.program, picture=picture(tuned), decay=decay, duration=duration,
        bare=format_plain,
        size=size, stories=format_report(stories(tuned.problem, tuned.chosen.picks, tuned.bound.data)),
        speedup=format_plain(declared.measured_ms / best) if declared and not declared.refusal else "",
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
            place = x[name] + (-9 if is_read else 9)
            ports.append({"x": place, "is_read": is_read, "colour": colour, "about": about})
        conversions = [
            {"x": x[one.array], "about": f"{one.count:,} x {duration(one.ms)}"}
            for one in tuned.chosen.cost.conversions
            if step in one.readers
        ]
        across = [x[name] for name in call.arrays.values()]
        about = f"{duration(choice.ms)} x {runs:,} = {duration(choice.ms * runs)}"
        steps.append({"name": step, "y": _TOP + _STEP * at, "about": about, "ports": ports, "conversions": conversions,
                      "left": min(across) - 16, "right": max(across) + 16})  # fmt: skip
    kinds = {name: data.record or data.fields[0].type for name, data in bound.data.items()}
    abouts = {name: f"{kinds[name]} {'x'.join(map(str, bound.shapes[name]))}" for name in x}
    lanes = [{"name": name, "x": x[name], "about": about} for name, about in abouts.items()]
    width, height = _LEFT + _LANE * len(x) + 20, _TOP + _STEP * len(steps) + 8
    return {"width": width, "height": height, "lanes": lanes, "steps": steps, "colours": colours}


def decay(turn_ms: Sequence[float]) -> str:
    """The points of a line: turns by their age."""
    top, last = max(turn_ms), max(1, len(turn_ms) - 1)
    return " ".join(f"{40 + 540 * at / last:.1f},{120 - 100 * ms / top:.1f}" for at, ms in enumerate(turn_ms))


def stories(problem: Problem, picks: Mapping[str, Choice], data: Mapping[str, Data]) -> dict[str, list[str]]:
    """What became of each array under ``picks``, in lines: the forms that it comes in; for each step the form that its
    fastest candidate asks for, the one that it has, and how much more a run of it takes where these differ; the
    conversions that are made."""
    fastest = {step: min(many, key=lambda one: one.ms) for step, many in problem.options.items()}
    made = cost(problem, picks).conversions
    lines = {}
    for array, kind in data.items():
        steps, forms = [], dict[str, None]()
        for step, choice in picks.items():
            has, wanted = (
                [*dict.fromkeys(form.text(kind) for name, form in one.of.stored if name == array)]
                for one in (choice, fastest[step])
            )
            forms |= dict.fromkeys(has)
            lost = choice.ms - fastest[step].ms
            if has and has == wanted:
                steps.append(f"  {step} wanted {' and '.join(wanted)} and has it")
            elif has:
                price = f"{duration(lost)} more a run" if lost > 0 else "at no cost"
                wish = " and ".join(wanted) or "nothing of it"
                steps.append(f"  {step} wanted {wish} and gave way to {' and '.join(has)}: {price}")
        copies = [
            f"  copied from {one.before.text(kind)} to {one.after.text(kind)} for {', '.join(one.readers)}: "
            f"{one.count:,} times, {duration(one.ms)} each"
            for one in made
            if one.array == array
        ]
        element = f"{kind.record or kind.fields[0].type} [{', '.join(kind.shape)}]"
        lines[array] = [f"{array} ({element}): {' and '.join(forms)}", *steps, *copies]
    return lines


def format_report(told: Mapping[str, list[str]]) -> str:
    """All of it as text."""
    return "\n".join(line for lines in told.values() for line in lines)
