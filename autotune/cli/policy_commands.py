"""The commands about policy files and records: explain, check, regret, export."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import (
    Data,
    Devices,
    FamilyArgument,
    Objective,
    Policies,
    Preset,
    Search,
    Set,
    Trials,
    TrialSeconds,
    Workload,
    err,
    narrowed,
    out,
    sized,
)
from autotune.declaration import load_family


def explain_command(
    family: FamilyArgument,
    workload: Annotated[
        str,
        typer.Option("--workload", "-w", metavar="NAME|PATH", help="The input; default the family's own."),
    ] = "",
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="auto|cpu|cuda|cuda:N|NAME",
            help="What would run it; the name of a policy file, as nvidia-h200, stands for a device that is not here.",
        ),
    ] = "auto",
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="EXTENT=N",
            help="As if the input had this size in place of the workload's; again for more.",
        ),
    ] = None,
    objective: Objective = "kernel",
    policies: Policies = None,
    data: Data = None,
) -> None:
    """Which configuration an input would get, and why not the others. Runs nothing."""
    from autotune.cli.explain import explain

    explain(load_family(family), workload, device, policies, data, out, objective, sized(size))


def plan_command(
    family: FamilyArgument,
    over: Annotated[
        list[str],
        typer.Option(
            "--over", metavar="NAME=LOW..HIGH", help="A number of the workload and its range; again for more."
        ),
    ],
    regret: Annotated[
        str, typer.Option("--regret", metavar="5%", help="What 95 % of the range may lose at most.")
    ] = "5%",
    where: Annotated[
        str, typer.Option("--where", metavar="EXPRESSION", help="Only sizes for which this holds.")
    ] = "",
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            "-w",
            metavar="NAME|PATH",
            help="Whose numbers the ranges replace; default the family's first that has them.",
        ),
    ] = "",
    sizes: Annotated[
        int, typer.Option("--sizes", metavar="N", min=1, help="Sweep at most so many sizes.")
    ] = 40,
    seconds: Annotated[
        float, typer.Option("--time", metavar="S", min=0, help="Begin no other size after so many seconds.")
    ] = 1e9,
    device: Devices = "auto",
    preset: Preset = "full",
    set_: Set = None,
    search: Search = "exhaustive",
    trials: Trials = None,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Results and record; default ./autotune-results/FAMILY."
        ),
    ] = None,
    policies: Policies = None,
    data: Data = None,
    trial_seconds: TrialSeconds = 120,
) -> None:
    """Sweep the sizes that a range of inputs needs most. Until its inputs lose little; writes the policy file."""
    from autotune.cli import plan
    from autotune.engine import SweepRequest
    from autotune.policy import Range
    from autotune.search import Strategy

    found, names = load_family(family), plan.ranges(over)
    request = SweepRequest(
        family=found, device=device, preset=preset, narrowed=narrowed(set_), out=out_, policies=policies, data=data,
        strategy=Strategy(sampler=search, trials=trials), trial_seconds=trial_seconds,
    )  # fmt: skip
    asked = plan.Plan(
        request=request, template=plan.template(found, workload, list(names)),
        over=Range(names, plan.condition(where, names)), regret=plan.share(regret), sizes=sizes, seconds=seconds,
    )  # fmt: skip
    plan.run(asked, out, err)


def check_command(
    policy: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[POLICY]...",
            help="Policy files; default all that are found, of --family.",
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Also time each winner against control and runner-up; fail when a claim is broken.",
        ),
    ] = False,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew",
            help="With --measure: write entries that only an edit of sources made stale anew, when their claim holds.",
        ),
    ] = False,
    workload: Workload = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", metavar="T", min=0.0, help="How much worse a time may be: 0.1 is 10 %."),
    ] = 0.1,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="DIR",
            help="The folder of a family that does not ship; again for more families.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="auto|cpu|cuda|cuda:N", help="What measures.")
    ] = "auto",
    policies: Policies = None,
    data: Data = None,
    trial_seconds: TrialSeconds = 120,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE.md",
            help="Append the lines there as a Markdown table, for a job's summary.",
        ),
    ] = None,
) -> None:
    """Whether these policy files would be accepted here. Exit code 8 when anything in them is refused."""
    from autotune.cli.check import CheckRequest, check, policy_files

    check(
        CheckRequest(
            files=policy or policy_files(policies, family or ()),
            families=tuple(family or ()),
            device=device,
            measure=measure,
            renew=renew,
            workloads=tuple(workload or ()),
            tolerance=tolerance,
            trial_seconds=trial_seconds,
            data=data,
            markdown=markdown,
        ),
        out,
    )


def regret_command(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="A results.csv, a sweep's --out folder, or the URL of its --store."
        ),
    ],
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the whole matrix as a CSV, a row a configuration."
        ),
    ] = None,
) -> None:
    """What each workload loses with the others' winners. And what one configuration for all of them costs."""
    from autotune.cli.regret import print_regrets
    from autotune.record import read_regrets, write_matrix

    found = read_regrets(record)
    for regrets in found:
        print_regrets(regrets, out)
    if out_:
        write_matrix(found, out_)
        out.print(f"matrix       {out_}")
