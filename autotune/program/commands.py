"""``autotune program``: tune a whole program, say what was chosen and why, or run it as it is declared."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autotune.cli import options
from autotune.errors import PolicyFileError

if TYPE_CHECKING:
    from autotune.program.declared import Given, Program
    from autotune.program.tuning import Tuned


@click.argument("folder")
@options.one_workload("The program's workload, by its name or file; default the program's own.")
@options.option(
    "--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="What it is tuned on and run on."
)
@options.option(
    "--explain", is_flag=True, help="Say what was chosen, who gave way and what that cost. Measures nothing."
)
@options.option(
    "--control", is_flag=True, help="Run the program as declared, and print its arrays. Tunes nothing."
)
@options.option(
    "--budget",
    default=96,
    type=click.IntRange(1),
    metavar="N",
    help="Configurations of each step that a sweep measures.",
)
@options.option(
    "--forms",
    default=12,
    type=click.IntRange(1),
    metavar="N",
    help="Layouts of each step that are timed in the loop.",
)
@options.of_sweep("processes")
@options.option(
    "--out",
    "-o",
    "out",
    type=options.FOLDER,
    metavar="DIR",
    help="Record and report; default ./autotune-results/NAME.",
)
@options.policies_option
@options.data_option
def program_command(
    folder: str,
    workload: str,
    device: str,
    explain: bool,
    control: bool,
    budget: int,
    forms: int,
    processes: int,
    out: Path | None,
    policies: Path | None,
    data: Path | None,
) -> None:
    from autotune.files import data_root, policy_folder
    from autotune.program.declared import Program, load_given

    program = Program.read(folder)
    given = load_given(program, workload, data_root(data))
    if explain:
        _explain(program, given, device, policies)
        return
    if control:
        from autotune.program.run_time import run_control

        for name, array in run_control(program, given.arrays, given.scalars, device).items():
            print(f"{name}: {array.dtype} {array.shape}, {array.reshape(-1)[:4]}")
        return
    from autotune.program.measuring import ProgramBudget
    from autotune.program.policy import save
    from autotune.program.report import write_report
    from autotune.program.tuning import tune

    place = out or Path("autotune-results") / program.name
    tuned = tune(
        program,
        given,
        device,
        place,
        ProgramBudget(configurations=budget, forms=forms),
        processes=processes,
        note=options.note,
    )
    print(summary(tuned))
    print(f"report       {write_report(tuned, place / 'report.html')}")
    print(f"policy file  {save(tuned, policy_folder(policies))}")


def summary(tuned: "Tuned") -> str:
    """The table of assignments as text."""
    from autotune.figures import duration

    lines = [f"{tuned.bound.program.name} on {tuned.workload}, {tuned.device.kind}: {tuned.device.name}",
             f"{'assignment':14} {'a turn':>10} {'predicted':>10}  of {tuned.turns} turns"]  # fmt: skip
    for row in tuned.rows:
        told = row.refusal or f"{duration(row.measured_ms):>10} {duration(row.predicted_ms):>10}"
        lines.append(f"{row.name:14} {told}")
    for aged in tuned.aged:
        often = f"every {aged.chosen} turns" if aged.chosen else "never"
        lines.append(f"{aged.step}: {often}; pays after {aged.pays_after or 'no number of'} turns")
    share = f"{100 * tuned.counts.share:.2g} %"
    lines.append(
        f"{tuned.counts.runs} runs and {tuned.counts.conversions} conversions measured, {share} of "
        f"{tuned.counts.assignments:,.0f} assignments; bound {duration(tuned.solution.bound)} for the whole program"
    )
    return "\n".join(lines)


def _explain(program: "Program", given: "Given", device: str, policies: Path | None) -> None:
    """Print what the policy file says. Raises PolicyFileError where there is none for this input."""
    from autotune.program.explain import explained
    from autotune.program.run_time import load

    with load(program, device, policies) as tuned:
        found = tuned.explain(**given.arrays, **given.scalars)
    for reason in found.passed:
        print(f"passed over  {reason}")
    if found.entry is None:
        raise PolicyFileError(
            f"program {program.name} has no policy file for this input and device: tune it with autotune program"
        )
    print(f"taken        {found.origin}")
    for step, candidate in found.assignment.chosen.items():
        print(f"  {step}: {candidate.configuration.changes(candidate.call.family.space.control)}")
    for step, period in found.assignment.periods.items():
        print(f"  {step}: {f'every {period} turns' if period else 'never'}")
    print(explained(found.entry.stories))
