"""What commands share: options with their help, and the consoles they print to."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from autotune.cli.completion import family_names, policy_values, preset_names, workload_names
from autotune.errors import UsageError

out = Console(highlight=False, markup=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


FamilyArgument = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY",
        help="A family's name, or a folder with a family.yaml.",
        autocompletion=family_names,
    ),
]

Workload = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAME|PATH",
        help="A workload's name or file; again for more. Default: the family's own.",
        autocompletion=workload_names,
    ),
]

DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|cuda:N",
        help="The device that runs it; auto is the first GPU, else the cpu.",
    ),
]

Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A named part of the space; `autotune list FAMILY` names them.",
        autocompletion=preset_names,
    ),
]

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="POLICY=V1,V2",
        help="Hold a policy to these values; again for more.",
        autocompletion=policy_values,
    ),
]

Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="kernel|with-transfer|with-transform|energy",
        help="What is to be small: the kernels' time, with the copy to the device, with the layout's transform too, or "
        "a call's energy.",
    ),
]

Clocks = Annotated[
    str,
    typer.Option(
        "--clocks",
        metavar="MHZ|base|max",
        help="Hold the GPU's clock there meanwhile, where you may; it is given back however the sweep ends.",
    ),
]

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where workloads find their data files (or AUTOTUNE_DATA)."),
]

Policies = Annotated[
    Path | None,
    typer.Option(
        "--policies", metavar="DIR", help="Folder of policy files (or AUTOTUNE_POLICIES; else ./policies)."
    ),
]

CallWorkload = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAME|PATH",
        help="Input from a workload; default the family's own when no -i is given.",
    ),
]

CallInput = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="An input (a file), a scalar or an option; again for more.",
    ),
]

CallOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        metavar="FILE",
        help="Where the result goes: .npy, .npz or the family's own.",
    ),
]

Devices = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|cuda:N,M",
        help="What measures: auto is the first GPU, else the cpu; several GPUs of one model share the work.",
    ),
]

TrialSeconds = Annotated[
    float,
    typer.Option(
        "--trial-seconds",
        metavar="S",
        min=0.1,
        help="A configuration that runs for longer, once its data are placed, is ended and recorded as timed_out.",
    ),
]

Samples = Annotated[
    int,
    typer.Option(
        "--samples",
        metavar="N",
        min=0,
        help="Exactly so many samples of every configuration and no finalists, to compare with tuners that do so.",
    ),
]

Race = Annotated[
    float,
    typer.Option(
        "--race",
        metavar="R",
        min=0,
        help="A kernel of 10 ms and more that takes R times the best (1.02, say) is not run again; 0 times all.",
    ),
]

Sanitize = Annotated[
    bool,
    typer.Option(
        "--sanitize",
        help="Run the finalists under NVIDIA's compute-sanitizer too; what it finds makes them wrong_result.",
    ),
]

Search = Annotated[
    str,
    typer.Option(
        "--search",
        metavar="exhaustive|auto|random|tpe|gp|cmaes|nsgaii",
        help="Which configurations are tried, and in which order; auto suits a space too large to try whole.",
    ),
]

Trials = Annotated[
    int | None, typer.Option("--trials", metavar="N", help="Try at most so many configurations more.")
]

Seconds = Annotated[
    float | None,
    typer.Option("--time", metavar="S", help="Begin no new configuration after so many seconds."),
]

Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the search: the same one asks alike.")]


def note(line: str) -> None:
    """Print a line as it is."""
    out.print(line, markup=False)


def narrowed(items: Sequence[str] | None) -> dict[str, list[str]]:
    """``["a=1,2"]`` -> {"a": ["1", "2"]}. Raises UsageError."""
    held: dict[str, list[str]] = {}
    for item in items or ():
        name, separator, values = item.partition("=")
        if not separator or not name or not values:
            raise UsageError(f"cannot read --set {item!r}: write --set policy=value or --set policy=v1,v2")
        held.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return held


def sized(items: Sequence[str] | None) -> dict[str, int]:
    """``["height=1000"]`` -> {"height": 1000}. Raises UsageError."""
    found: dict[str, int] = {}
    for item in items or ():
        name, _, number = item.partition("=")
        if not name.strip() or not number.strip().isdecimal() or int(number) < 1 or name.strip() in found:
            raise UsageError(
                f"cannot read --size {item!r}: write --size extent=N, a whole number from 1, each extent once"
            )
        found[name.strip()] = int(number)
    return found
