"""``autotune rank`` and its options."""

from typing import Annotated, Any

import typer

from autotune.cli import options
from autotune.declaration import load_family
from autotune.engine import SweepRequest


@options.sweep_options("preset", "narrowed", "out", "data", "compiler", "processes", "trials", "seed")
def rank_command(
    family: options.FamilyArgument,
    workload: Annotated[
        str, options.one_workload("The input that is traced; default the family's own.")
    ] = "",
    arch: Annotated[
        list[str] | None, typer.Option("--arch", metavar="sm_XX", help="Target; again for more.")
    ] = None,
    **asked: Any,
) -> None:
    """Rank configurations by their traced accesses, without a GPU. A search in that folder begins with the first."""
    from autotune.cli import run_static
    from autotune.ranking.printing import rank_for_workload

    request = SweepRequest(family=load_family(family), workloads=(workload,), **asked)
    rows = run_static(request, tuple(arch or ("sm_90",)), options.out, options.err)
    rank_for_workload(request, rows, options.out, options.err)


COMMANDS = {"rank": rank_command}
