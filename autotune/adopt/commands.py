"""``autotune adopt`` and its options."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options


def adopt_command(
    source: Annotated[Path, typer.Argument(metavar="FILE.cu", help="The file that has the kernel.")],
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="The folder to make; default ./KERNEL.", show_default=False
        ),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="NAME[<VALUES>]",
            help="Which of several kernels; with values for its template.",
        ),
    ] = "",
    grid: Annotated[
        str,
        typer.Option(
            "--grid", metavar="X[,Y[,Z]]", help="Blocks of its launch, over its numbers: 'ceil_div(n, 16)'."
        ),
    ] = "",
    block: Annotated[
        str, typer.Option("--block", metavar="X[,Y[,Z]]", help="Threads of a block of its launch.")
    ] = "",
    include: Annotated[
        list[Path] | None,
        typer.Option("--include", "-I", metavar="DIR", help="A folder of its headers; again for more."),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="A macro; again for more."),
    ] = None,
) -> None:
    """Make a family of an unmodified kernel. Pointers become accessors, and both are run and compared."""
    from autotune.adopt import AdoptRequest, adopt

    macros = (*(f"-I{folder}" for folder in include or ()), *(f"-D{macro}" for macro in define or ()))
    adopt(AdoptRequest(source, out_, kernel, macros, grid, block), options.out)


COMMANDS = {"adopt": adopt_command}
