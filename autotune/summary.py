"""A finished study in a few lines of text: the end of ``autotune sweep``."""

from rich.console import Console
from rich.table import Table

from autotune.decision import Decision, time_ms
from autotune.device import Device
from autotune.record import Study
from autotune.trial import Trial

__all__ = ["duration", "print_study", "states"]


def duration(milliseconds: float) -> str:
    """Three significant digits in µs, ms or s."""
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if milliseconds >= scale or unit == "µs":
            return f"{milliseconds / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def states(study: Study) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(study.states().items()))


def print_study(study: Study, wall_s: float, device: Device, out: Console) -> None:
    sizes = " x ".join(str(n) for n in study.about["features"].values())
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
    decision = study.decision
    if decision is None:
        return
    out.print(_ladder(study, decision))


def _ladder(study: Study, decision: Decision) -> Table:
    measurement = decision.winner.measurement
    assert measurement is not None
    table = Table("", "time", "", box=None, pad_edge=False)
    table.add_column("configuration", overflow="fold")

    def row(name: str, trial: Trial, note: str) -> None:
        table.add_row(name, duration(time_ms(trial)), note, trial.configuration.id)

    row("winner", decision.winner, f"± {measurement.spread:.1%}, {len(decision.tie_set)} in the tie set")
    if decision.runner_up:
        row("runner-up", decision.runner_up, f"{decision.margin_over_runner_up:.2f} x the winner")
    if decision.control:
        row("control", decision.control, f"{decision.margin_over_control:.2f} x the winner")
    by_configuration = {t.configuration: t for t in study.trials if t.measurement}
    for name, configuration in study.presets.items():
        trial = by_configuration.get(configuration)
        if trial and name != "control":
            row(name, trial, f"{time_ms(trial) / time_ms(decision.winner):.2f} x the winner")
    return table
