"""``autotune adopt`` and its options."""

from pathlib import Path

import click

from autotune.cli import options


@click.argument("source", type=options.FOLDER, metavar="FILE.cu", help="The file that has the kernel.")
@options.place("The folder to make; default ./KERNEL.")
@options.option(
    "--kernel",
    default="",
    metavar="NAME[<VALUES>]",
    help="Which of several kernels; with values for its template.",
)
@options.option(
    "--grid",
    default="",
    metavar="X[,Y[,Z]]",
    help="Blocks of its launch, over its numbers: 'ceil_div(n, 16)'.",
)
@options.option("--block", default="", metavar="X[,Y[,Z]]", help="Threads of a block of its launch.")
@options.option(
    "--include", "-I", multiple=True, metavar="DIR", help="A folder of its headers; again for more."
)
@options.option("--define", "-D", multiple=True, metavar="NAME[=VALUE]", help="A macro; again for more.")
def adopt_command(
    source: Path,
    out_: Path | None,
    kernel: str,
    grid: str,
    block: str,
    include: tuple[str, ...],
    define: tuple[str, ...],
) -> None:
    from autotune.adopt.process import AdoptRequest, adopt

    macros = (*(f"-I{folder}" for folder in include), *(f"-D{macro}" for macro in define))
    adopt(AdoptRequest(source, out_, kernel, macros, grid, block), options.out)
