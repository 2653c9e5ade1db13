"""``autotune report``: the tables and the page of a record anew, and what every command that makes them prints."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from autotune.declaration import Family
from autotune.errors import UsageError
from autotune.files import policy_folders, writable
from autotune.record import Study, is_table, read_record
from autotune.report import write_trace


def report(records: Sequence[str], folder: Path | None, out: Console, *, trace: bool = False) -> None:
    """The tables and report.html anew from a record, with ``trace`` its timeline as well: a sweep's folder, a storage
    URL, or tables of the form of results.csv, the latter two with the folder to write to. Raises StoreError when there
    is none."""
    tables = [record for record in records if is_table(record)]
    if tables:
        from autotune.record import read_results

        if len(tables) < len(records) or folder is None:
            raise UsageError(
                "tables are reported on together, without a DIR, and need --out DIR for the report"
            )
        if trace:
            raise UsageError("--trace needs a sweep's own record: tables do not say when a trial began")
        writable(folder)
        write_reports(folder, read_results(tables), out, record=Path(tables[0]).parent)
        return
    if len(records) > 1:
        raise UsageError("one record at a time; only tables (.csv, .csv.xz) are reported on together")
    record = records[0]
    if folder is None and ("://" in record or record.endswith(".json")):
        what = "a record behind a URL" if "://" in record else "a file of another tuner"
        raise UsageError(f"{what} needs --out DIR, where results.csv and report.html go")
    studies = read_record(record)
    folder = folder or Path(record)
    writable(folder)
    place = Path(record)
    write_reports(folder, studies, out, record=place if place.is_dir() else place.parent)
    if trace:
        out.print(f"{'trace':<12} {write_trace(studies, folder / 'trace.json')}")


def write_reports(
    folder: Path,
    studies: Sequence[Study],
    out: Console,
    known: Mapping[str, Family] | None = None,
    record: Path | None = None,
    policies: Sequence[Path] | None = None,
) -> None:
    """``record``: the folder that the record lies in, where that is not ``folder``. ``policies``: where the winners'
    policy files lie, by default where programs look for them."""
    from autotune.report import write_all

    looked = policy_folders() if policies is None else policies
    for name, path in write_all(studies, folder, known, record, looked).items():
        out.print(f"{name:<12} {path}")
