"""The commands on records: compare, profile, limits."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import Data, DeviceOption, FamilyArgument, out


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A record or a policy file (.yaml): before.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same of another version or device: after.")],
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", metavar="PERCENT", min=0.0, help="A slower winner is a regression above this."
        ),
    ] = 5.0,
    every: Annotated[
        bool, typer.Option("--every", help="Any configuration that became slower is a regression.")
    ] = False,
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.csv", help="Write every row there too.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE.md", help="Append the tables there as Markdown, for a job's summary."
        ),
    ] = None,
) -> None:
    """What moved beyond noise between two records or policy files. Exit code 10 on a regression."""
    from autotune.cli.compare import compare_records

    compare_records(a, b, threshold / 100, every=every, table=out_, markdown=markdown, out=out)


def profile(
    family: FamilyArgument,
    configurations: Annotated[
        list[str] | None, typer.Argument(metavar="CONFIG…", help="Presets or policy=value,…")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", metavar="N", min=1, help="The N fastest of the record, and its control."),
    ] = None,
    workload: Annotated[
        str,
        typer.Option("--workload", "-w", metavar="NAME|PATH", help="Default: the newest in the record."),
    ] = "",
    record: Annotated[
        str, typer.Option("--record", metavar="DIR|URL", help="Default ./autotune-results/FAMILY.")
    ] = "",
    device: Annotated[str, typer.Option("--device", metavar="cuda|cuda:N", help="The GPU.")] = "cuda",
    data: Data = None,
    compiler: Annotated[
        str, typer.Option("--compiler", metavar="nvrtc|nvcc", help="As the sweep had it.")
    ] = "",
) -> None:
    """Hardware counters of configurations, by Nsight Compute. They are kept as columns of the record."""
    from autotune.cli.profile import Asked, profile_into

    profile_into(
        Asked(family, tuple(configurations or ()), top, workload, record, device, data, compiler), out
    )


def limits(
    device: DeviceOption = "cuda",
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write limits.json there, for the report of that record."
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what is cached.")] = False,
) -> None:
    """The measured ceilings of a GPU: bandwidths and rates. Times are held against them."""
    from autotune.cli.ceilings import device_ceilings, print_ceilings, write_ceilings
    from autotune.compile import Cache, default_root
    from autotune.device import open_backend

    with closing(open_backend(device)) as backend:
        found = device_ceilings(backend, Cache(default_root()), again=again)
    print_ceilings(found, out)
    if out_ is not None:
        out.print(f"limits       {write_ceilings(found, out_ / 'limits.json')}")
