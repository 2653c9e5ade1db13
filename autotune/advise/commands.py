"""``autotune advise`` and its options."""

import tempfile
from pathlib import Path

import click

from autotune.cli import options
from autotune.declaration import load_family
from autotune.errors import UsageError
from autotune.files import data_root, write_text


@click.argument(
    "program", metavar="FILE.cu|FAMILY", help="A file with a plain kernel, a family's name, or its folder."
)
@options.place(
    "The folder to make: of a file a family with the layouts that help, and advice.json, advice.html."
)
@options.option("--json", "is_json", is_flag=True, help="Print JSON with all figures and nothing else.")
@options.option("--page", type=options.FOLDER, metavar="FILE.html", help="Write a page that is one file.")
@options.make_workload_option("Of a family: the input that is traced; default the family's own.")
@options.option(
    "--size", multiple=True, metavar="NAME=N", help="Of a file: a size of its arrays; again for more."
)
@options.option(
    "--record", type=options.FOLDER, metavar="DIR",
    help="Of a family: a sweep's folder. Its winner is traced, too, and its report made again with the layout receipt.",
)  # fmt: skip
@options.data_option
@options.option("--kernel", default="", metavar="NAME[<VALUES>]", help="Of a file: as of `autotune adopt`.")
@options.option("--grid", default="", metavar="X[,Y[,Z]]", help="As of `autotune adopt`.")
@options.option("--block", default="", metavar="X[,Y[,Z]]", help="As of `autotune adopt`.")
@options.option("--include", "-I", multiple=True, metavar="DIR", help="As of `autotune adopt`.")
@options.option("--define", "-D", multiple=True, metavar="NAME[=VALUE]", help="As of `autotune adopt`.")
def advise_command(
    program: str,
    out_: Path | None,
    is_json: bool,
    page: Path | None,
    workload: str,
    size: tuple[str, ...],
    record: Path | None,
    data: Path | None,
    kernel: str,
    grid: str,
    block: str,
    include: tuple[str, ...],
    define: tuple[str, ...],
) -> None:
    from autotune.adopt import AdoptRequest
    from autotune.advise.advice import make_advice
    from autotune.advise.arithmetic import describe_arithmetic
    from autotune.advise.plain import advise_on_kernel
    from autotune.advise.receipt import write_receipts
    from autotune.advise.report import Said, as_json, print_advice, write_page

    of_file, root = Path(program).suffix == ".cu", data_root(data)
    if of_file and (workload or record):
        raise UsageError("--workload and --record are a family's: a file has --size, and no record yet")
    if not of_file and (size or kernel or grid or block or include or define):
        raise UsageError("--size, --kernel, --grid, --block, -I and -D are of a file: a family declares them")
    with tempfile.TemporaryDirectory(prefix="autotune-") as made:
        if of_file:
            macros = (*(f"-I{folder}" for folder in include), *(f"-D{macro}" for macro in define))
            folder = out_ or Path(made, "kernel")
            request = AdoptRequest(Path(program), folder, kernel, macros, grid, block)
            said = advise_on_kernel(request, options.parse_sizes(size), root)
        else:
            family = load_family(program)
            advice = make_advice(family, workload, root)
            said = Said(f"family {family.name}", advice, arithmetic=describe_arithmetic(family))
            if record:
                for line in write_receipts(family, record, root):
                    options.err.print(line, markup=False)
        if out_ is not None:
            write_text(out_ / "advice.json", as_json(said))
            page = page or out_ / "advice.html"
        if page:
            write_page(said, page)
    if is_json:
        print(as_json(said), end="")
        return
    print_advice(said, options.out)
    for path in (page, out_ if of_file else None):
        if path:
            options.out.print(f"made {path}", markup=False, highlight=False)
