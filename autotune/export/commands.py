"""``autotune export`` and its options."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options
from autotune.declaration import load_family


def export_command(
    family: options.FamilyArgument,
    device: Annotated[
        list[str],
        typer.Option(
            "--device",
            metavar="NAME",
            help="Whose policy file, as nvidia-h200; again for more in one dispatch table.",
        ),
    ],
    folder: Annotated[
        Path, typer.Option("--output", "--out", "-o", metavar="DIR", help="Where the files go.")
    ],
    workload: Annotated[
        str,
        typer.Option(
            "--workload", "-w", metavar="NAME|PATH", help="The example's input; default the family's own."
        ),
    ] = "",
    objective: options.Objective = "kernel",
    policies: options.Policies = None,
    data: options.Data = None,
) -> None:
    """The winners as CUDA C++ for programs without Python. C++17: kernels, layouts, dispatch table, an example."""
    from autotune.export import export

    export(
        load_family(family),
        device,
        folder,
        options.out,
        workload=workload,
        objective=objective,
        policies=policies,
        data=data,
    )


COMMANDS = {"export": export_command}
