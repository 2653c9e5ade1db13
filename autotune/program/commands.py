"""``autotune program``: tune a whole program, say what was chosen and why, or run it as it is declared."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autotune.cli import options
from autotune.errors import PolicyFileError

if TYPE_CHECKING:
    from autotune.program.declared import Given, Program
    from autotune.program.tuning import Tuned


@click.argument("folder")
@options.make_workload_option("Workload of the program, by name or file; default: the program's own.")
@options.option("--device auto|cpu|cuda|cuda:N", default="auto", help="Device that tunes and runs it.")
@options.option(
    "--explain",
    help="Print what was chosen, which kernels did not get their best layout, and what that costs. Measures nothing.",
)  # fmt: skip
@options.option("--control", help="Run the program as declared and print its arrays. Tunes nothing.")
@options.option("--budget N", default=96, least=1, help="Number of configurations to sweep for each step.")
@options.option("--forms N", default=12, least=1, help="Number of layouts to time in the loop for each step.")
@options.make_sweep_option("processes")
@options.option(
    "--out DIR", "-o", type=options.FOLDER,
    help="Folder for record and report; default ./autotune-results/NAME.",
)  # fmt: skip
@options.policies_option
@options.data_option
def program_command(
    folder: str, workload: str, data: Path | None, explain: bool, control: bool, **asked: Any
) -> None:
    from autotune.files import data_root
    from autotune.program import Program, load_given, run_control

    program = Program.read(folder)
    given = load_given(program, workload, data_root(data))
    if explain:
        _explain(program, given, asked["device"], asked["policies"])
    elif control:
        for name, array in run_control(program, given.arrays, given.scalars, asked["device"]).items():
            print(f"{name}: {array.dtype} {array.shape}, {array.reshape(-1)[:4]}")
    else:
        _tune(program, given, **asked)


def _tune(
    program: "Program", given: "Given", device: str, budget: int, forms: int, processes: int, out: Path | None,
    policies: Path | None,
) -> None:  # fmt: skip
    from autotune.files import policy_folder
    from autotune.program import ProgramBudget, save, tune, write_report

    place = out or Path("autotune-results") / program.name
    most = ProgramBudget(configurations=budget, forms=forms)
    tuned = tune(program, given, device, place, most, processes=processes, note=print)
    print(summary(tuned))
    print(f"report       {write_report(tuned, place / 'report.html')}")
    print(f"policy file  {save(tuned, policy_folder(policies))}")


def summary(tuned: "Tuned") -> str:
    """The table of assignments as text."""
    from autotune.figures import duration

    lines = [
        f"{tuned.bound.program.name} on {tuned.workload}, {tuned.device.kind}: {tuned.device.name}",
        f"{'assignment':14} {'a turn':>10} {'predicted':>10}  of {tuned.turns} turns",
    ]
    for row in tuned.rows:
        told = row.refusal or f"{duration(row.measured_ms):>10} {duration(row.predicted_ms):>10}"
        lines.append(f"{row.name:14} {told}")
    for aged in tuned.aged:
        often = f"every {aged.chosen} turns" if aged.chosen else "never"
        lines.append(f"{aged.step}: {often}; pays after {aged.pays_after or 'no number of'} turns")
    counts = tuned.counts
    lines.append(
        f"{counts.runs} runs and {counts.conversions} conversions measured, {100 * counts.share:.2g} % of "
        f"{counts.assignments:,.0f} assignments; bound {duration(tuned.solution.bound)} for the whole program"
    )
    return "\n".join(lines)


def _explain(program: "Program", given: "Given", device: str, policies: Path | None) -> None:
    """Print what the policy file says. Raises PolicyFileError where there is none for this input."""
    from autotune.program import load
    from autotune.program.report import format_report

    with load(program, device, policies) as tuned:
        lines = tuned.explain(**given.arrays, **given.scalars)
    for reason in lines.passed:
        print(f"passed over  {reason}")
    if lines.entry is None:
        raise PolicyFileError(
            f"program {program.name} has no policy file for this input and device: tune it first"
        )
    print(f"taken        {lines.origin}")
    for step, candidate in lines.assignment.chosen.items():
        print(f"  {step}: {candidate.configuration.changes(candidate.call.family.space.control)}")
    for step, period in lines.assignment.periods.items():
        print(f"  {step}: {f'every {period} turns' if period else 'never'}")
    print(format_report(lines.entry.told.get("arrays", {})))
