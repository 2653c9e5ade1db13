"""``autotune convert`` and ``autotune import``: records in the form of other tuners, and theirs in ours."""

import re
from pathlib import Path

import click

from autotune.cli import options
from autotune.errors import UnknownName, UsageError

_FORMATS = ("kernel-tuner", "t4", "csv")


@click.argument(
    "record", metavar="RECORD",
    help="A sweep's --out folder, its --store URL, a results.csv, or another tuner's .json.",
)  # fmt: skip
@options.option("--to kernel-tuner|t4|csv", default="kernel-tuner", help="Format of the files.")
@options.place("Folder for the files.")
def convert_command(record: str, to: str, out_: Path | None) -> None:
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
        print(f"written      {write_results(studies, folder / 'results.csv')}")
        return
    for study in studies:
        parts = (study.family, study.workload, study.device)
        name = "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts)
        write, ending = (write_cache, "cache.json") if to == "kernel-tuner" else (write_t4, "t4.json")
        print(f"written      {write(study, folder / f'{name}.{ending}')}")


@click.argument(
    "files", nargs=-1, required=True, type=options.FOLDER, metavar="FILE.json…",
    help="Kernel Tuner cache files or T4 results.",
)  # fmt: skip
@options.place("Table to write.", "FILE.csv", default=Path("results.csv"))
@options.option("--family NAME", default="", help="Family name to use instead of the file's.")
@options.option("--workload NAME", default="", help="Workload name to use instead of the file's.")
@options.option("--device NAME", default="", help="Device name to use instead of the file's.")
@options.option(
    "--control policy=value,…", default="", help="Configuration that all others are compared with."
)
def import_command(files: tuple[Path, ...], out_: Path, **named: str) -> None:
    from autotune.files import csv_text, write_file, write_text
    from autotune.kernel_tuner.records import import_files
    from autotune.record import results_frame

    studies = import_files(files, **named)
    print(f"written      {write_text(out_, csv_text(results_frame(studies)), write_file)}")
