"""``autotune report``: the tables and the page of a record again, and what every command that makes them prints."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console

from autotune.cli import options
from autotune.declaration import Family
from autotune.errors import UsageError
from autotune.files import policy_folders, writable
from autotune.record import Study, is_table, read_record, read_results
from autotune.report import write_all, write_trace


@click.argument(
    "records",
    nargs=-1,
    required=True,
    metavar="DIR|FILE.csv…",
    help="A sweep's --out folder or --store URL, or results.csv files.",
)
@options.place("Folder for the files; default: DIR itself.")
@options.option(
    "--trace FILE", type=options.FOLDER, help="Also write the sweep's timeline to FILE, for ui.perfetto.dev."
)
def report_command(records: tuple[str, ...], out_: Path | None, trace: Path | None) -> None:
    report(records, out_, options.out, trace)


def report(records: Sequence[str], folder: Path | None, out: Console, trace: Path | None = None) -> None:
    """The tables and report.html again from a record: a sweep's folder, a storage URL, or tables of the form of
    results.csv, the latter two with the folder to write to. ``trace``: where the sweep's timeline goes. Raises
    StoreError when there is no record, or no timeline in it."""
    tables = [record for record in records if is_table(record)]
    if tables:
        if len(tables) < len(records) or folder is None:
            raise UsageError(
                "tables are reported on together, without a DIR, and need --out DIR for the report"
            )
    elif len(records) > 1:
        raise UsageError("one record at a time; only tables (.csv, .csv.xz) are reported on together")
    record = records[0]
    if folder is None and ("://" in record or record.endswith(".json")):
        what = "a record at a URL" if "://" in record else "a file of another tuner"
        raise UsageError(f"{what} needs --out DIR, where results.csv and report.html go")
    studies, place = read_results(tables) if tables else read_record(record), Path(record)
    folder = folder or place
    writable(folder)
    if trace:
        out.print(f"{'trace':<12} {write_trace(studies, trace)}")
    write_reports(folder, studies, out, record=place if place.is_dir() else place.parent)


def write_reports(
    folder: Path,
    studies: Sequence[Study],
    out: Console,
    known: Mapping[str, Family] | None = None,
    record: Path | None = None,
    policies: Sequence[Path] | None = None,
) -> None:
    """``record``: the folder that the record is stored in, where that is not ``folder``. ``policies``: where the
    winners' policy files lie, by default where programs look for them."""
    looked = policy_folders() if policies is None else policies
    for name, path in write_all(studies, folder, known, record, looked).items():
        out.print(f"{name:<12} {path}")
