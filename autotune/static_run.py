"""``autotune sweep --static``: the static pass over part of a space for one or more architectures, and its files."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from autotune.cache import Cache, default_root
from autotune.errors import UsageError
from autotune.live import progress
from autotune.paths import writable
from autotune.records import read_record
from autotune.report.files import write_static_report
from autotune.static import StaticProfile, static_sweep, static_toolchain, write_static
from autotune.sweeping import Request

__all__ = ["run_static"]


def run_static(request: Request, archs: Sequence[str], out: Console, err: Console) -> None:
    """The static pass for each architecture: a table, and static.csv in the output folder."""
    if request.device != "auto" or request.workloads or request.store:
        raise UsageError(
            "--static runs nothing and records nothing: leave --device, --workload and --store out"
        )
    configurations = request.configurations
    if configurations is None:
        raise UsageError(
            "this space is too large for a static pass of all of it: narrow it with --preset or --set"
        )
    writable(request.folder)
    rows: list[StaticProfile] = []
    for arch in archs:
        toolchain = static_toolchain(arch, request.compiler)
        with progress(err) as bar:
            task = bar.add_task(f"{request.family.name} {arch}", total=len(configurations), about="")
            found = static_sweep(
                request.family, configurations, toolchain, arch, Cache(default_root()),
                request.compiler_processes("cpu"),
            )  # fmt: skip
            for row in found:
                rows.append(row)
                bar.advance(task)
    table = Table("arch", "kernel", "registers", "spills B", "shared B", "occupancy", "limited by", box=None)
    table.add_column("configuration", overflow="fold", min_width=40)
    for row in rows:
        for p in row.kernels:
            table.add_row(
                row.arch, p.kernel, str(p.registers), str(p.spill_store_bytes + p.spill_load_bytes),
                str(p.static_shared_bytes + p.dynamic_shared_bytes), f"{p.occupancy:.0%}", p.limited_by,
                row.configuration.id,
            )  # fmt: skip
        if row.message:
            table.add_row(row.arch, "-", "-", "-", "-", "-", "does not compile", row.configuration.id)
    out.print(table)
    path = request.folder / "static.csv"
    write_static(request.family, rows, path)
    out.print(f"static pass  {len(rows)} configurations in {path}")
    has_record = (request.folder / "store.journal").is_file()
    beside = read_record(str(request.folder)) if has_record else ()
    report = write_static_report(request.folder, beside, {request.family.name: request.family})
    out.print(f"report       {report}")
