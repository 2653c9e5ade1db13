"""A finished study in a few lines of text: the end of ``autotune sweep``."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from autotune.decision import Decision, Margin, close_to_winner, cost_ms, margin, retime_ratio
from autotune.device import Device
from autotune.record import Study
from autotune.trial import FAILED, Trial

__all__ = [
    "coverage",
    "duration",
    "failures",
    "moved",
    "pays",
    "print_study",
    "reasons",
    "states",
    "unbeaten",
]

_STEADY = 0.9, 1.1  # second over first times of the finalists, on a machine that did not change meanwhile
_MOST_REASONS = 3
_MOST_LINES = 3  # of a reason


def duration(milliseconds: float) -> str:
    """Three significant digits in µs, ms or s."""
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if milliseconds >= scale or unit == "µs":
            return f"{milliseconds / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def states(study: Study) -> str:
    return _counted(study.states())


def _tried(study: Study) -> dict[str, int]:
    return {state: count for state, count in study.states().items() if state != "excluded"}


def _counted(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def coverage(study: Study) -> str:
    """How much of the space was tried, by what, and what ended it: ``76 of 768 tried (time limit 6 s, exhaustive
    order)``; empty for a record that does not tell."""
    searched = study.about.get("searched") or {}
    if not searched:
        return ""
    excluded = study.states().get("excluded", 0)
    tried = int(searched.get("tried") or len(study.trials)) - excluded
    selected = searched.get("of")
    whole = searched.get("space") or selected
    budget, by = str(searched.get("budget") or ""), str(searched.get("by") or "exhaustive")
    how = []
    if selected and selected < whole:
        how.append(f"{selected:,} selected")
    if budget:
        how.append(budget)
    if by != "exhaustive":
        seed = searched.get("seed")
        how.append(f"search {by}{f', seed {seed}' if seed is not None else ''}")
    elif budget:
        how.append("exhaustive order")
    if study.about.get("interrupted"):
        how.append("interrupted")
    told = f"{tried:,} of {whole:,} tried" if whole else f"{tried:,} tried of more than can be listed"
    told += f", {excluded:,} excluded" if excluded else ""
    return told + (f" ({', '.join(how)})" if how else "")


def failures(study: Study) -> list[str]:
    """A line for each state in which configurations failed: how many, the first one, and its reason."""
    lines = []
    for state in FAILED:
        of = [trial for trial in study.trials if trial.state == state]
        if of:
            named = of[0].configuration.changes(study.control)
            reason = next(iter(_told(of[0].reason)), "")
            lines.append(
                f"{len(of):,} {state}, {'the first' if len(of) > 1 else 'which is'} {named}: {reason}"
            )
    return lines


def moved(trials: Sequence[Trial]) -> str:
    """Whether the machine was another one, as it were, when the finalists were timed again; empty where it was not, or
    none were."""
    ratio = retime_ratio(trials)
    if math.isnan(ratio) or _STEADY[0] <= ratio <= _STEADY[1]:
        return ""
    change = f"{ratio:.1f} times slower" if ratio > 1 else f"{1 / ratio:.1f} times faster"
    return (
        f"the machine was {change} when finalists were timed: their times compare with each other and not with those "
        "of the first pass, so they rank first"
    )


def unbeaten(decision: Decision) -> str:
    """That nothing is faster than the control beyond noise; empty where something is, or the control has no time."""
    if decision.is_reliable:
        return ""
    told = "no configuration is reliably faster than control"
    if decision.winner is decision.control:
        return told
    return f"{told}: it takes {_times(decision.over_control, 'the winner')}"


def reasons(failures: Iterable[tuple[str, str, str]]) -> str:
    """Why nothing came of it, the most frequent reasons first: lines with how often, one configuration, and the first
    lines of the message from its first error on. ``failures`` are (state, message, configuration's id); messages that
    differ in numbers, template arguments and names of configurations alone count as one."""
    found: dict[tuple[str, str], list[tuple[list[str], str]]] = {}
    for state, message, name in failures:
        lines = _told(message)
        kind = lines[0]
        for varies in (r"<.*>", r"\S+=\S+", r"\d+(\.\d+)?(e[-+]?\d+)?"):
            kind = re.sub(varies, "…", kind)
        found.setdefault((state, kind), []).append((lines, name))
    ordered = sorted(found.items(), key=lambda one: -len(one[1]))
    told = []
    for (state, _), of in ordered[:_MOST_REASONS]:
        lines, name = of[0]
        told += [
            f"{len(of):,} {state}, one of them {name}:",
            *(f"    {line}" for line in lines if line.strip()),
        ]
    if left := sum(len(of) for _, of in ordered[_MOST_REASONS:]):
        told.append(f"{left:,} for other reasons")
    return "\n".join(told)


def _told(message: str) -> list[str]:
    """The first lines of a reason, from its first error on."""
    from autotune.report.results import clean

    lines = clean(message).splitlines() or [""]
    first = next((i for i, line in enumerate(lines) if "error" in line or "fatal" in line), 0)
    return lines[first : first + _MOST_LINES]


def print_study(
    study: Study, wall_s: float, spent_s: Mapping[str, float], before: int, device: Device, out: Console,
    objective: str = "kernel",
) -> None:  # fmt: skip
    """How much was tried and what failed; the winner by ``objective`` (see ``decision.cost_ms``), what it is compared
    with, how sure that is, and the break-even. ``wall_s`` and ``spent_s`` (by phase) are the seconds of this run alone,
    ``before`` is how many trials the record had."""
    constants = study.about.get("constants", ())
    sizes = " x ".join(str(n) for name, n in study.about["features"].items() if name not in constants)
    out.print(
        f"\n{study.family} on {study.workload} ({sizes}), {device.kind}: {device.name}",
        markup=False,
    )
    names = (
        "compile",
        "reference",
        "place",
        "verify",
        "measure",
        "faults",
        "finalists",
    )  # record goes on beside
    seconds = {**spent_s, "overhead": wall_s - sum(spent_s.get(name, 0.0) for name in names)}
    spent = ", ".join(
        f"{name} {seconds[name]:.1f}" for name in (*names, "overhead") if seconds.get(name, 0) >= 0.05
    )
    ended = states(study) or "nothing tried"
    if covered := coverage(study):  # which counts the excluded ones
        ended = f"{covered}: {_counted(_tried(study)) or 'nothing yet'}"
    told = [f"{ended}{f', {before:,} of them recorded before' if before else ''}",
            f"{wall_s:.1f} s wall{f' ({spent})' if spent else ''}"]  # fmt: skip
    if running := spent_s.get("verify", 0.0) + spent_s.get("measure", 0.0):
        told.append(f"kernels ran {spent_s.get('kernels', 0.0) / running:.0%} of verify and measure")
    out.print("; ".join(told), markup=False)
    for line in failures(study):
        out.print(line, markup=False)
    if idle := study.about.get("idle_policies"):
        out.print(
            f"nothing changed by {', '.join(idle)}: the same machine code and data whatever its value",
            markup=False,
        )
    if warning := study.about.get("warning"):
        out.print(f"warning: {warning}", markup=False)
    decision = study.decided(objective)
    if decision is None:
        return
    out.print(_ladder(study, decision))
    for line in _how_sure(study, decision):
        out.print(line, markup=False)
    if decision.break_even:
        pair = decision.break_even
        is_own = pair.lasting == decision.winner.configuration
        lasting = "the winner" if is_own else pair.lasting.changes(study.control)
        single = pair.single.changes(study.control) if is_own else "the winner"
        out.print(f"break-even   {pays(lasting, pair.launches, single)}", markup=False)


def _how_sure(study: Study, decision: Decision) -> Iterable[str]:
    if told := unbeaten(decision):
        yield told
    if decision.control is None:
        yield "control has no time here: there is no margin over it"
    if told := moved(study.trials):
        yield f"warning: {told}"
    if (near := close_to_winner(study.trials, decision)) and decision.winner.measurement:
        yield (
            f"warning: {near:,} others are behind the winner by no more than its own ± "
            f"{decision.winner.measurement.spread:.1%}: noise may have chosen it; on an idle "
            "machine sweep again with --retime (the finalists) or --again (everything)"
        )


def pays(lasting: str, launches: int, single: str) -> str:
    """From how many launches on the winner for kernels alone is worth what its layout costs."""
    plural = "" if launches == 1 else "es"
    return f"{lasting} pays from {launches:,} launch{plural} on the same data on, for fewer: {single}"


def _ladder(study: Study, decision: Decision) -> Table:
    measurement = decision.winner.measurement
    assert measurement is not None
    time = "time" if decision.objective == "kernel" else f"time {decision.objective}"
    table = Table("", time, "", box=None, pad_edge=False)
    table.add_column("differs from control in", overflow="fold")

    def row(name: str, trial: Trial, note: str) -> None:
        ms = duration(cost_ms(trial, decision.objective))
        table.add_row(name, ms, note, trial.configuration.changes(study.control))

    def over_winner(trial: Trial) -> str:
        if trial is decision.winner:
            return "the winner"
        return _times(margin(trial, decision.winner, decision.objective), "the winner")

    row("winner", decision.winner, f"± {measurement.spread:.1%}, {len(decision.tie_set)} in the tie set")
    if decision.runner_up:
        tied = "tied, " if decision.runner_up in decision.tie_set else ""
        row("runner-up", decision.runner_up, f"{tied}{over_winner(decision.runner_up)}")
    if decision.control:
        row("control", decision.control, over_winner(decision.control))
    by_configuration = {t.configuration: t for t in study.trials if t.measurement}
    for name, configuration in study.presets.items():
        trial = by_configuration.get(configuration)
        if trial and name != "control":
            row(name, trial, over_winner(trial))
    return table


def _times(margin: Margin, of: str) -> str:
    """``1.06 x the winner (0.91 to 1.24)``."""

    def told(value: float) -> str:
        return f"{value:,.0f}" if value >= 99.995 else f"{value:.2f}"

    between = "" if math.isnan(margin.low) else f" ({told(margin.low)} to {told(margin.high)})"
    return f"{told(margin.ratio)} x {of}{between}"
