"""The commands about policy files and records: explain, check, export."""

from pathlib import Path
from typing import Annotated, Any

import typer

from autotune.cli.options import (
    Data,
    FamilyArgument,
    Objective,
    Policies,
    err,
    one_workload,
    out,
    sized,
    sweep_options,
)
from autotune.declaration import load_family
from autotune.engine import SweepRequest
from autotune.files import policy_folder


def explain_command(
    family: FamilyArgument,
    workload: Annotated[str, one_workload("The input; default the family's own.")] = "",
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


@sweep_options("device", "preset", "narrowed", "search", "trials", "out", "data", "trial_seconds")
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
        str, one_workload("Whose numbers the ranges replace; else the family's first that has them.")
    ] = "",
    sizes: Annotated[
        int, typer.Option("--sizes", metavar="N", min=1, help="Sweep at most so many sizes.")
    ] = 40,
    seconds: Annotated[
        float, typer.Option("--time", metavar="S", min=0, help="Begin no other size after so many seconds.")
    ] = 1e9,
    policies: Policies = None,
    **asked: Any,
) -> None:
    """Sweep the sizes that a range of inputs needs most. Until its inputs lose little; writes the policy file."""
    from autotune.cli import plan
    from autotune.policy import Range

    found, names = load_family(family), plan.ranges(over)
    plan.run(
        plan.Plan(
            request=SweepRequest(family=found, **asked),
            policies=policy_folder(policies),
            template=plan.template(found, workload, list(names)),
            over=Range(names, plan.condition(where, names)),
            regret=plan.share(regret),
            sizes=sizes,
            seconds=seconds,
        ),
        out,
        err,
    )


@sweep_options("workloads", "data", "trial_seconds")
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
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE.md",
            help="Append the lines there as a Markdown table, for a job's summary.",
        ),
    ] = None,
    **asked: Any,
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
            tolerance=tolerance,
            markdown=markdown,
            **asked,
        ),
        out,
    )
