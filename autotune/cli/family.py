"""The commands for families of one's own: new, lint."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import out

__all__ = ["lint_command", "new_command"]


def new_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Small letters, digits and _; the folder is made as ./NAME.")
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Make the folder in DIR.", show_default=False)
    ] = Path(),
) -> None:
    """Write the folder of a new family. Its small kernel works at once, and is to be changed into yours."""
    from autotune.cli.new import new_family, print_made

    folder, made = new_family(name, out_)
    print_made(folder, made, out)


def lint_command(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder with a family.yaml, or a family's name.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
) -> None:
    """Check a family without a GPU or a compiler. Exit code 0 without errors, 3 with them."""
    from autotune.cli.lint import lint, print_findings

    print_findings(lint(folder), folder, strict, out)
