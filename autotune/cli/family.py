"""The commands for families of one's own: new, lint. ``add`` puts them on the command line."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import out

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Register the commands on ``app``."""
    for command in (new, lint):
        app.command(command.__name__)(command)


def new(
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


def lint(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder with a family.yaml, or a family's name.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
) -> None:
    """Check a family without a GPU or a compiler. Exit code 0 without errors, 3 with them."""
    from autotune.cli.lint.lint import lint as findings_of
    from autotune.cli.lint.lint import print_findings

    print_findings(findings_of(folder), folder, strict, out)
