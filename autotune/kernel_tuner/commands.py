"""``autotune convert`` and ``autotune import``: records in the form of other tuners, and theirs in ours."""

import re
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options
from autotune.errors import UnknownName, UsageError

_FORMATS = ("kernel-tuner", "t4", "csv")

Record = Annotated[
    str,
    typer.Argument(
        metavar="RECORD",
        help="A sweep's --out folder, its --store URL, a results.csv, or another tuner's .json.",
    ),
]

OutFolder = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the files go.")]


def convert(
    record: Record,
    to: Annotated[
        str, typer.Option("--to", metavar="kernel-tuner|t4|csv", help="The form of the files.")
    ] = "kernel-tuner",
    out_: OutFolder = None,
) -> None:
    """Write a record in the form of other tuners. Each study as a Kernel Tuner cache file or T4 results, or all of
    them as one results.csv."""
    from autotune.kernel_tuner.cache import write_cache
    from autotune.kernel_tuner.t4 import write_t4
    from autotune.record import read_record, write_results

    if to not in _FORMATS:
        raise UnknownName("format", to, _FORMATS)
    studies = read_record(record)
    if out_ is None and not Path(record).is_dir():
        raise UsageError("name the folder for the files with --out DIR")
    folder = out_ or Path(record)
    if to == "csv":
        options.out.print(f"written      {write_results(studies, folder / 'results.csv')}")
        return
    for study in studies:
        name = "-".join(
            re.sub(r"[^\w.]+", "_", part) for part in (study.family, study.workload, study.device)
        )
        write, ending = (write_cache, "cache.json") if to == "kernel-tuner" else (write_t4, "t4.json")
        options.out.print(f"written      {write(study, folder / f'{name}.{ending}')}")


def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE.json…", help="Kernel Tuner cache files or T4 results.")
    ],
    out_: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.csv", help="The table to write.")] = Path(
        "results.csv"
    ),
    family: Annotated[str, typer.Option("--family", metavar="NAME", help="In place of the file's.")] = "",
    workload: Annotated[str, typer.Option("--workload", metavar="NAME", help="In place of the file's.")] = "",
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="In place of the file's.")] = "",
    control: Annotated[
        str, typer.Option("--control", metavar="policy=value,…", help="What all others are compared to.")
    ] = "",
) -> None:
    """Bring other tuners' files into the form of results.csv. Every command on records reads that."""
    from autotune.files import csv_text, write_text, written
    from autotune.kernel_tuner.records import import_files
    from autotune.record import results_frame

    studies = import_files(files, family=family, workload=workload, device=device, control=control)
    options.out.print(f"written      {write_text(out_, csv_text(results_frame(studies)), written)}")


COMMANDS = {"convert": convert, "import": import_}
