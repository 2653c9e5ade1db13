"""``autotune program``: tune a whole program, say what was chosen, or run it as it is declared."""

from pathlib import Path

import click

from autotune.cli import options


@click.argument("folder")
@options.one_workload("The program's workload, by its name or file.")
@options.option("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="What it is tuned on.")
@options.option(
    "--control", is_flag=True, help="Run the program as declared, and print its arrays; tune nothing."
)
@options.data_option
def program_command(folder: str, workload: str, device: str, control: bool, data: Path | None) -> None:  # noqa: ARG001
    from autotune.files import data_root
    from autotune.program.declared import Program, load_given
    from autotune.program.run_time import run_control

    program = Program.read(folder)
    given = load_given(program, workload, data_root(data))
    for name, array in run_control(program, given.arrays, given.scalars, device).items():
        print(f"{name}: {array.dtype} {array.shape}, {array.reshape(-1)[:4]}")
