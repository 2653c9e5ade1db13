"""A finished study in a few lines of text: the end of ``autotune sweep``."""

import re
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from autotune.decision import Decision, close_to_winner, cost_ms, decide
from autotune.device import Device
from autotune.record import Study
from autotune.trial import Trial

__all__ = ["duration", "pays", "print_study", "reasons", "states"]

_MOST_REASONS = 3
_MOST_LINES = 3  # of a reason


def duration(milliseconds: float) -> str:
    """Three significant digits in µs, ms or s."""
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if milliseconds >= scale or unit == "µs":
            return f"{milliseconds / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def states(study: Study) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(study.states().items()))


def reasons(failures: Iterable[tuple[str, str, str]]) -> str:
    """Why nothing came of it, the most frequent reasons first: lines with how often, one configuration, and the first
    lines of the message from its first error on. ``failures`` are (state, message, configuration's id); messages that
    differ in numbers, template arguments and names of configurations alone count as one."""
    from autotune.report.results import clean

    found: dict[tuple[str, str], list[tuple[list[str], str]]] = {}
    for state, message, name in failures:
        lines = clean(message).splitlines() or [""]
        first = next((i for i, line in enumerate(lines) if "error" in line or "fatal" in line), 0)
        kind = lines[first]
        for varies in (r"<.*>", r"\S+=\S+", r"\d+(\.\d+)?(e[-+]?\d+)?"):
            kind = re.sub(varies, "…", kind)
        found.setdefault((state, kind), []).append((lines[first : first + _MOST_LINES], name))
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


def print_study(
    study: Study, wall_s: float, spent_s: Mapping[str, float], before: int, device: Device, out: Console,
    objective: str = "kernel",
) -> None:  # fmt: skip
    """The winner by ``objective`` (see ``decision.cost_ms``), what it is compared with, and the break-even. ``wall_s``
    and ``spent_s`` (by phase) are the seconds of this run alone, ``before`` is how many trials the record had."""
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
    told = [f"{states(study) or 'nothing tried'}{f', {before:,} of them recorded before' if before else ''}",
            f"{wall_s:.1f} s wall{f' ({spent})' if spent else ''}"]  # fmt: skip
    if running := spent_s.get("verify", 0.0) + spent_s.get("measure", 0.0):
        told.append(f"kernels ran {spent_s.get('kernels', 0.0) / running:.0%} of verify and measure")
    out.print("; ".join(told))
    if idle := study.about.get("idle_policies"):
        out.print(
            f"nothing changed by {', '.join(idle)}: the same machine code and data whatever its value",
            markup=False,
        )
    if warning := study.about.get("warning"):
        out.print(f"warning: {warning}", markup=False)
    decision = decide(study.trials, study.control, objective)
    if decision is None:
        return
    out.print(_ladder(study, decision))
    if (near := close_to_winner(study.trials, decision)) and decision.winner.measurement:
        out.print(
            f"warning: {near:,} others are behind the winner by no more than its own ± "
            f"{decision.winner.measurement.spread:.1%}: noise may have chosen it; on an idle "
            "machine sweep again with --retime (the finalists) or --again (everything)",
            markup=False,
        )
    if decision.break_even:
        pair = decision.break_even
        lasting = "the winner" if pair.lasting == decision.winner.configuration else pair.lasting.id
        out.print(f"break-even   {pays(lasting, pair.launches, pair.single.id)}", markup=False)


def pays(lasting: str, launches: int, single: str) -> str:
    """From how many launches on the winner for kernels alone is worth what its layout costs."""
    plural = "" if launches == 1 else "es"
    return f"{lasting} pays from {launches:,} launch{plural} on the same data on, for fewer: {single}"


def _ladder(study: Study, decision: Decision) -> Table:
    measurement = decision.winner.measurement
    assert measurement is not None
    time = "time" if decision.objective == "kernel" else f"time {decision.objective}"
    table = Table("", time, "", box=None, pad_edge=False)
    table.add_column("configuration", overflow="fold")

    def cost(trial: Trial) -> float:
        return cost_ms(trial, decision.objective)

    def row(name: str, trial: Trial, note: str) -> None:
        table.add_row(name, duration(cost(trial)), note, trial.configuration.id)

    row("winner", decision.winner, f"± {measurement.spread:.1%}, {len(decision.tie_set)} in the tie set")
    if decision.runner_up:
        tied = "tied, " if decision.runner_up in decision.tie_set else ""
        row("runner-up", decision.runner_up, f"{tied}{decision.margin_over_runner_up:.2f} x the winner")
    if decision.control:
        row("control", decision.control, f"{decision.margin_over_control:.2f} x the winner")
    by_configuration = {t.configuration: t for t in study.trials if t.measurement}
    for name, configuration in study.presets.items():
        trial = by_configuration.get(configuration)
        if trial and name != "control":
            row(name, trial, f"{cost(trial) / cost(decision.winner):.2f} x the winner")
    return table
