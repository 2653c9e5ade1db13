"""``autotune adopt`` and its options."""

from pathlib import Path

import click

from autotune.cli import options


@click.argument("source", type=options.FOLDER, metavar="FILE.cu", help="CUDA source file with the kernel.")
@options.place("Folder to create; default ./KERNEL.")
@options.option(
    "--kernel NAME[<VALUES>]", default="",
    help="Kernel to adopt if the file has several; with values for its template parameters.",
)  # fmt: skip
@options.option(
    "--grid X[,Y[,Z]]", default="",
    help="Grid of its launch, as expressions over its scalars: 'ceil_div(n, 16)'.",
)  # fmt: skip
@options.option("--block X[,Y[,Z]]", default="", help="Block of its launch, in threads.")
@options.option("--include DIR", "-I", multiple=True, help="Folder with headers; repeat for more.")
@options.option("--define NAME[=VALUE]", "-D", multiple=True, help="Macro to define; repeat for more.")
def adopt_command(
    source: Path, out_: Path | None, include: tuple[str, ...], define: tuple[str, ...], **asked: str
) -> None:
    from autotune.adopt.process import AdoptRequest, adopt

    macros = (*(f"-I{folder}" for folder in include), *(f"-D{macro}" for macro in define))
    adopt(AdoptRequest(source, out_, options=macros, **asked), options.out)
