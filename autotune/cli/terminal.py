"""What commands print: a finished study in a few lines of text, the end of ``autotune sweep``; Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autotune.errors import StoreError, explained
from autotune.figures import duration
from autotune.hardware import Device
from autotune.measure import KERNEL, find_objective
from autotune.record import Decision, Study, Trial, close_to_winner, margin, remarks


def print_study(
    study: Study, wall_s: float, spent_s: Mapping[str, float], before: int, device: Device, out: Console,
    objective: str = KERNEL,
) -> None:  # fmt: skip
    """How much was tried and what failed; the winner by ``objective``, what it is compared
    with, how sure that is, and the break-even. ``wall_s`` and ``spent_s`` (by phase) are the seconds of this run alone,
    ``before`` is how many trials the record had."""
    about = study.about
    sizes = " x ".join(str(n) for name, n in about.features.items() if name not in about.constants)
    out.print(f"\n{study.family} on {study.workload} ({sizes}), {device.kind}: {device.name}")
    ended = remarks.states_text(study.states()) or "nothing tried"
    if covered := remarks.coverage(study):  # which counts the excluded ones
        tried = {state: count for state, count in study.states().items() if state != "excluded"}
        ended = f"{covered}: {remarks.states_text(tried) or 'nothing yet'}"
    ended += f", {before:,} of them recorded before" if before else ""
    out.print("; ".join([ended, *_describe_time(wall_s, spent_s)]))
    for line in remarks.failures(study):
        out.print(line)
    if idle := about.idle_policies:
        out.print(f"nothing changed by {', '.join(idle)}: the same machine code and data whatever its value")
    baseline = about.baseline
    if baseline and baseline.reason:
        out.print(f"baseline {baseline.kernel} was not timed: {baseline.cause}")
    if about.warning:
        out.print(f"warning: {about.warning}")
    for line in _describe_left(study):
        out.print(line)
    if decision := study.decide(objective):
        out.print(_ladder(study, decision))
        certainty = _describe_certainty(study, decision)
        for line in (*_describe_figures(decision), *certainty, *_break_even(study, decision)):
            out.print(line)


def _describe_left(study: Study) -> Iterable[str]:
    """Of a sweep that ended before all was tried: how much the rest may be worth, and what was not measured."""
    searched = study.about.searched
    left = searched.get("left_to_gain")
    if left is not None and study.decision:
        held = f"such a figure held in {HELD:.0%} of recorded cases"
        yield f"left to gain at most {100 * float(left):.1f} % of the time, by the model; {held}"
    if searched.get("budget") and study.control not in study.times:
        yield f"control was not measured ({searched['budget']}): nothing says how much the winner gains"


HELD = 0.90  # of what was said to be left, on recorded spaces (regret-stated.csv)
# How much slower than the best the best of five was that were named without measuring: spaces, median, 90 % (of
# static-ranking.csv and transfer.csv).
NAMED = {"ranking": (13, 0.011, 0.143), "records": (12, 0.070, 0.492)}


def describe_regret(source: str) -> str:
    """What five that were named by a ``source``, the ranking or other devices' records, cost on recorded spaces."""
    spaces, half, most = NAMED[source]
    return (
        f"the best of five so named was at most {half:.1%} slower than the best of its space on half of {spaces} "
        f"recorded spaces, at most {most:.1%} on nine of ten"
    )


# The phases that follow each other; recording goes on during all of them.
_PHASES = ("compile", "reference", "place", "verify", "measure", "faults", "finalists", "baseline")


def _describe_time(wall_s: float, spent_s: Mapping[str, float]) -> Iterable[str]:
    seconds = {**spent_s, "overhead": wall_s - sum(spent_s.get(name, 0.0) for name in _PHASES)}
    spent = ", ".join(
        f"{name} {seconds[name]:.1f}" for name in (*_PHASES, "overhead") if seconds.get(name, 0) >= 0.05
    )
    yield f"{wall_s:.1f} s wall{f' ({spent})' if spent else ''}"
    if running := spent_s.get("verify", 0.0) + spent_s.get("measure", 0.0):
        yield f"kernels ran {spent_s.get('kernels', 0.0) / running:.0%} of verify and measure"


def _break_even(study: Study, decision: Decision) -> Iterable[str]:
    if pair := decision.break_even:
        is_own = pair.lasting == decision.winner.configuration
        lasting = "the winner" if is_own else pair.lasting.changes(study.control)
        single = pair.single.changes(study.control) if is_own else "the winner"
        yield f"break-even   {pays(lasting, pair.launches, single)}"


def _describe_figures(decision: Decision) -> Iterable[str]:
    """Those of the winner that its objective is shown with."""
    aim, measured = find_objective(decision.objective), decision.winner.measurement
    if aim.beside and measured:
        yield f"with it      {', '.join(aim.texts(measured.figures)[1:])}"


def _describe_certainty(study: Study, decision: Decision) -> Iterable[str]:
    if told := remarks.describe_unbeaten(decision):
        yield told
    if decision.control is None:
        yield "control has no time here: there is no margin over it"
    if told := remarks.describe_move(study.trials):
        yield f"warning: {told}"
    spread = decision.winner.measurement.spread if decision.winner.measurement else 0.0
    near = close_to_winner(study.trials, decision)
    if near or spread > 1:
        others = f"{near:,} others are slower than the winner by no more than its interval"
        behind = others if near else "the winner has"
        yield (
            f"warning: {behind} ± {spread:.1%}: noise may have chosen it; on an idle "
            "machine sweep again with --retime (the finalists) or --again (everything)"
        )


def pays(lasting: str, launches: int, single: str) -> str:
    """From how many launches on the winner for kernels alone is worth what its layout costs."""
    plural = "" if launches == 1 else "es"
    return f"from {launches:,} launch{plural} on the same data {lasting} pays; below that, use {single}"


def _ladder(study: Study, decision: Decision) -> Table:
    """The configurations that have a name, as far as they were measured."""
    aim = find_objective(decision.objective)
    time = aim.noun if aim.name == KERNEL else f"{aim.noun} {aim.name}"
    heads = (time, "") if aim.is_time else (aim.noun, "", "time")
    table = Table("", *heads, box=None, pad_edge=False)
    table.add_column("differs from control in", overflow="fold")
    measured = {t.configuration: t for t in study.trials if t.measurement}
    for role, configuration in study.roles(decision).items():
        if trial := measured.get(configuration):
            cost = aim.text(trial.cost(decision.objective))
            told = _compare_with_winner(role, trial, decision)
            beside = () if aim.is_time else (duration(trial.time_ms),)
            table.add_row(role, cost, told, *beside, configuration.changes(study.control))
    baseline = study.about.baseline
    if baseline and baseline.median_ms and decision.objective == KERNEL:
        told = f"{baseline.over_winner:.2f} x the winner" if baseline.over_winner else ""
        took = duration(baseline.beside_ms(decision.winner.time_ms))
        table.add_row("baseline", took, told, f"{baseline.kernel} in {baseline.source}")
    return table


def _compare_with_winner(role: str, trial: Trial, decision: Decision) -> str:
    found = trial.measurement and trial.measurement.figure(find_objective(decision.objective).figure)
    if role == "winner" and found:
        spread = "" if found.spread is None else f"± {found.spread:.1%}, "
        return f"{spread}{len(decision.tie_set)} in the tie set"
    if trial is decision.winner:
        return "the winner"
    tied = "tied, " if role == "runner-up" and trial in decision.tie_set else ""
    return tied + remarks.margin_text(margin(trial, decision.winner, decision.objective))


# -- Markdown, for the summary of a CI job and for a comment


def append(path: Path, text: str) -> None:
    """Write ``text`` behind what is in ``path``: a job's summary may hold something already. Raises StoreError."""
    with explained(StoreError, f"cannot write {path}:"), path.open("a", encoding="utf-8") as file:
        file.write(text)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are Markdown: see ``code``."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """``text``, which a stranger may have written, as a code span: on one line, without markup, HTML or names."""
    line = re.sub(r"\\*\|", r"\\|", " ".join(text.split()).replace("`", "'"))
    return f"`{line}`" if line else ""
