"""``autotune profile``: hardware counters of chosen configurations, printed and kept in the record.

``autotune limits``: a GPU's measured ceilings, kept in the user's data folder.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from autotune.cli import options
from autotune.compile import Cache, default_root
from autotune.declaration import Configuration, Family, load_family, load_workload
from autotune.device import Backend, open_backend
from autotune.errors import DeviceError, StoreError, UsageError
from autotune.figures import number, si, spread
from autotune.files import write_text
from autotune.measure import WatchedResult, WatchedTask, ceilings, ncu
from autotune.record import Store, Study, fastest_first, find_newest, holds_store, read_ceilings


@options.family_argument
@click.argument(
    "configurations", nargs=-1, metavar="[CONFIG…]", help="Presets, or configurations as policy=value,…"
)
@options.option(
    "--top N", type=int, least=1, help="Profile the N fastest configurations of the record and its control."
)
@options.make_workload_option("Workload to profile; default: the newest in the record.")
@options.option(
    "--record DIR|URL", default="", help="Record to read and to add to; default ./autotune-results/FAMILY."
)
@options.option("--device cuda|cuda:N", default="cuda", help="GPU to use.")
@options.data_option
@options.option(
    "--compiler nvrtc|nvcc", default="", help="CUDA compiler; default: the one that the sweep used."
)
def profile_command(
    family: str,
    configurations: tuple[str, ...],
    top: int | None,
    workload: str,
    record: str,
    device: str,
    data: Path | None,
    compiler: str,
) -> None:
    """Profile, keep the counters in the record, make its report again where it is a folder. Raises DeviceError without
    ncu or a GPU, StoreError without a record."""
    out = options.out
    if not device.startswith("cuda"):
        raise DeviceError(f"hardware counters are a GPU's: --device {device} has none, name cuda or cuda:N")
    loaded = load_family(family)
    record = record or str(Path("autotune-results") / loaded.name)
    command = ncu.find_ncu()
    if not holds_store(record):
        raise StoreError(
            f"{record} holds no record (store.journal) to keep counters in: run autotune sweep first"
        )
    store = Store(record)
    named = load_workload(loaded, workload) if workload else None
    study = find_recorded(store, loaded, named.name if named else "", record)
    which = choose(study, loaded, configurations, top)
    out.print(f"{loaded.name} on {study.workload}: {len(which)} configurations under {command}")
    task = WatchedTask(
        family=str(loaded.folder), workload=workload or study.workload,
        data=str(data or ""), device=device, compiler=compiler,
        configurations=tuple(one.id for one in which), result="",
    )  # fmt: skip
    launches, _ = count_and_keep(store, study, loaded, task, command)
    print_counters(launches, out)
    if "://" not in record:
        from autotune.cli.report import report

        report([record], None, out)


def count_and_keep(
    store: Store, study: Study, family: Family, task: WatchedTask, command: str, raw: Path | None = None
) -> tuple[ncu.Counters, Study]:
    """Read the hardware counters of ``task``, which runs configurations of ``study``, with the ncu ``command``, and put
    them into the record. Returns them and the study with them. Raises DeviceError, StoreError."""
    cold = load_workload(family, task.workload).cold
    launches, result = ncu.profile(task, tuple(family.kernels), command, cold=cold, raw=raw)
    for one, reason in result.failed.items():
        options.err.print(f"not profiled {one}: {reason}")
    if not launches:
        raise DeviceError("ncu counted no kernel of the family; nothing was kept")
    return launches, keep(store, study, launches, result)


def find_recorded(store: Store, family: Family, workload: str, record: str) -> Study:
    """The newest study of ``family`` on a GPU in ``store``, on ``workload`` where one is named. Raises StoreError."""
    studies = [
        s for s in store.studies()
        if s.family == family.name and (not workload or s.workload == workload)
        and s.about.device_kind == "cuda"
    ]  # fmt: skip
    if not studies:
        what = f"{family.name} on {workload}" if workload else family.name
        raise StoreError(
            f"{record} has no study of {what} on a GPU to keep counters in: run autotune sweep first, or name its "
            "record with --record"
        )
    return find_newest(studies)


def choose(study: Study, family: Family, named: Sequence[str], top: int | None) -> list[Configuration]:
    """The configurations that are named, or the ``top`` fastest of ``study`` with its control. Raises UsageError,
    UnknownName."""
    if named and top is not None:
        raise UsageError("name configurations, or ask for --top N, not both")
    if named:
        return list(dict.fromkeys(family.space.configuration(one) for one in named))
    ranked = fastest_first(study.trials)
    if not ranked:
        raise UsageError(f"the study of {study.family} on {study.workload} has no measured configuration")
    return list(dict.fromkeys([*(t.configuration for t in ranked[: top or 1]), study.control]))


def keep(
    store: Store, study: Study, found: Mapping[str, Mapping[str, Mapping[str, float]]], result: WatchedResult
) -> Study:
    """Add counters to those in the record, and return the study with them. Raises StoreError if the code or data that
    ran differ from what was recorded."""
    for name in ("source_digest", "space_digest", "workload_digest"):
        if getattr(study.about, name) != getattr(result, name):
            raise StoreError(
                f"the {name.split('_')[0]} of {study.family} has changed since it was recorded, so the counters would "
                "not be those of the recorded times: run autotune sweep again"
            )
    if study.device != result.device:
        raise StoreError(
            f"the record is of {study.device}, and this is {result.device}: profile on the same device"
        )
    opened = store.open(study, {})
    about = opened.get_provenance()
    kept = {one: {k: dict(v) for k, v in of.items()} for one, of in about.counters.items()}
    for one, of in found.items():
        kept.setdefault(one, {}).update({kernel: dict(values) for kernel, values in of.items()})
    about = replace(about, counters=kept)
    opened.annotate(about)
    return replace(study, about=about)


def print_counters(found: Mapping[str, Mapping[str, Mapping[str, float]]], out: Console) -> None:
    """A table for each configuration: a row a counter, a column a kernel."""
    for one, of in found.items():
        table = Table("counter", *of, "what", title=one, title_justify="left", box=None)
        for name, (_, what) in ncu.COUNTERS.items():
            if any(name in values for values in of.values()):
                figures = (number(values[name]) if name in values else "" for values in of.values())
                table.add_row(name, *figures, what)
        out.print(table)


@options.option("--device cuda|cuda:N", default="cuda", help="GPU to use.")
@options.place("Write limits.json to this folder, for the report of its record.")
@options.option("--again", help="Measure again even if the ceilings are cached.")
def limits_command(device: str, out_: Path | None, again: bool) -> None:
    with closing(open_backend(device)) as backend:
        found = device_ceilings(backend, Cache(default_root()), again=again)
    print_ceilings(found, options.out)
    if out_ is not None:
        print(f"limits       {write_ceilings(found, out_ / 'limits.json')}")


def device_ceilings(backend: Backend, cache: Cache, *, again: bool = False) -> dict[str, Any]:
    """The ceilings of ``backend``'s device, in the form of ``limits.json``: from the user's cache folder, or measured
    (a few seconds) and kept there. Raises DeviceError on a cpu, CompilerError, LaunchError."""
    if backend.device.kind != "cuda":
        raise DeviceError("ceilings are measured on a GPU: name one with --device cuda")
    place = default_root() / "limits" / f"{backend.device.slug}.json"
    if not again:
        with suppress(StoreError):  # what cannot be read is measured again
            if kept := read_ceilings(place):
                return kept
    found = ceilings.measure_ceilings(backend, cache)
    write_ceilings(found, place)
    return found


def write_ceilings(found: Mapping[str, Any], path: Path) -> Path:
    """Write ``limits.json``, whole or not at all. Raises StoreError."""
    return write_text(path, json.dumps(found, indent=1) + "\n")


def print_ceilings(found: Mapping[str, Any], out: Console) -> None:
    """The ceilings with what they count."""
    values, spreads = (found.get(name) or {} for name in ("ceilings", "spread_relative"))
    clock = f", {found['clock_mhz']} MHz" if found.get("clock_mhz") else ""
    out.print(f"{found['device_name']}{clock}, measured {found.get('date', 'at an unknown time')}")
    table = Table("ceiling", "per s", "±", "what", box=None)
    for name, value in values.items():
        noise = spread(spreads[name]) if name in spreads else ""
        what = ceilings.CEILINGS[name].what if name in ceilings.CEILINGS else ""
        table.add_row(name, si(value).strip(), noise, what)
    out.print(table)
