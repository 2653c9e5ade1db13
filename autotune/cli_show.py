"""The commands that only show: families, list, show, doctor."""

from typing import Annotated

import typer
from rich.table import Table

from autotune.cli_options import Data, FamilyArgument, Preset, Set, err, narrowed, out
from autotune.family import families as known_families
from autotune.family import load as load_family

__all__ = ["doctor_command", "families_command", "list_command", "show_command"]


def families_command() -> None:
    """The kernel families that ship with autotune."""
    from autotune.search_members import MOST_LISTED, listed

    table = Table("family", "about", "configurations", "presets", box=None)
    for name in known_families():
        family = load_family(name)
        presets = ", ".join(family.space.preset_names)
        every = listed(family.space)
        count = f"over {MOST_LISTED:,}" if every is None else str(len(every))
        table.add_row(name, family.title, count, presets)
    out.print(table)


def list_command(
    family: FamilyArgument,
    preset: Preset = "full",
    set_: Set = None,
    count: Annotated[bool, typer.Option("--count", help="Only the number.")] = False,
) -> None:
    """The ids of the configurations a sweep would visit. Runs nothing."""
    loaded = load_family(family)
    found = loaded.space.configurations(preset, narrowed(set_))
    if not count:
        for configuration in found:
            print(configuration.id)
    err.print(
        f"{len(found)} configurations of {loaded.name}; presets: {', '.join(loaded.space.preset_names)}"
    )


def show_command(
    family: FamilyArgument,
    configuration: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help="A preset of one configuration, or policy=value,… (the rest take their defaults).",
        ),
    ],
    arch: Annotated[
        str, typer.Option("--arch", metavar="sm_XX", help="Target of the static profile.")
    ] = "sm_90",
    workload: Annotated[
        str,
        typer.Option(
            "-w",
            "--workload",
            metavar="NAME",
            help="Whose sizes and options; else the default one's, where needed.",
        ),
    ] = "",
    data: Data = None,
    header: Annotated[
        bool, typer.Option("--header", help="Only print the family's default.cuh, for its folder.")
    ] = False,
) -> None:
    """One configuration: generated code, layouts, static profile."""
    from autotune.paths import data_root
    from autotune.show import show
    from autotune.static import Known
    from autotune.variant import default_header

    loaded = load_family(family)
    if header:
        print(default_header(loaded), end="")
        return
    known = Known.of(loaded, workload, data_root(data))
    show(loaded, loaded.space.configuration(configuration), arch, known, out)


def doctor_command() -> None:
    """What is here, what is missing, and how to get it."""
    from autotune.doctor import doctor

    doctor(out)
