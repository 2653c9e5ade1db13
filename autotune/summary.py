"""A finished study in a few lines of text: the end of ``autotune sweep``."""

from rich.console import Console
from rich.table import Table

from autotune.decision import Decision, cost_ms, decide
from autotune.device import Device
from autotune.record import Study
from autotune.trial import Trial

__all__ = ["duration", "pays", "print_study", "states"]


def duration(milliseconds: float) -> str:
    """Three significant digits in µs, ms or s."""
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if milliseconds >= scale or unit == "µs":
            return f"{milliseconds / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def states(study: Study) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(study.states().items()))


def print_study(study: Study, wall_s: float, device: Device, out: Console, objective: str = "kernel") -> None:
    """The winner by ``objective`` (see ``decision.cost_ms``), what it is compared with, and the break-even."""
    constants = study.about.get("constants", ())
    sizes = " x ".join(str(n) for name, n in study.about["features"].items() if name not in constants)
    out.print(
        f"\n{study.family} on {study.workload} ({sizes}), {device.kind}: {device.name}",
        markup=False,
    )
    seconds = study.about["phases_s"]
    names = (
        "compile",
        "reference",
        "place",
        "verify",
        "measure",
        "faults",
        "finalists",
    )  # record goes on beside them
    seconds = {**seconds, "overhead": seconds["total"] - sum(seconds.get(name, 0.0) for name in names)}
    spent = ", ".join(
        f"{name} {seconds[name]:.1f}" for name in (*names, "overhead") if seconds.get(name, 0) >= 0.05
    )
    busy = f"kernels ran {study.about['busy_share']:.0%} of verify and measure"
    out.print(f"{states(study) or 'nothing tried'}; {wall_s:.1f} s wall ({spent}); {busy}")
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
        row("runner-up", decision.runner_up, f"{decision.margin_over_runner_up:.2f} x the winner")
    if decision.control:
        row("control", decision.control, f"{decision.margin_over_control:.2f} x the winner")
    by_configuration = {t.configuration: t for t in study.trials if t.measurement}
    for name, configuration in study.presets.items():
        trial = by_configuration.get(configuration)
        if trial and name != "control":
            row(name, trial, f"{cost(trial) / cost(decision.winner):.2f} x the winner")
    return table
