"""``autotune rank`` and its options."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import options
from autotune.declaration import load_family


def rank_command(
    family: options.FamilyArgument,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            "-w",
            metavar="NAME|PATH",
            help="The input that is traced; default the family's own.",
        ),
    ] = "",
    preset: options.Preset = "full",
    set_: options.Set = None,
    arch: Annotated[
        list[str] | None, typer.Option("--arch", metavar="sm_XX", help="Target; again for more.")
    ] = None,
    out_: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The tables; default ./autotune-results/FAMILY."),
    ] = None,
    data: options.Data = None,
    compiler: Annotated[str, typer.Option("--compiler", metavar="nvrtc|nvcc", help="CUDA compiler.")] = "",
    processes: Annotated[
        int, typer.Option("--processes", metavar="N", min=0, help="Compiler processes; 0 is one a core.")
    ] = 0,
    trials: options.Trials = None,
    seed: options.Seed = 0,
) -> None:
    """Rank configurations by their traced accesses, without a GPU. A search in that folder begins with the first."""
    from autotune.cli import run_static
    from autotune.engine import SweepRequest
    from autotune.ranking.printing import rank_for_workload
    from autotune.search import Strategy

    request = SweepRequest(
        family=load_family(family),
        workloads=(workload,),
        preset=preset,
        narrowed=options.narrowed(set_),
        out=out_,
        data=data,
        compiler=compiler,
        processes=processes,
        strategy=Strategy(trials=trials, seed=seed),
    )
    rows = run_static(request, tuple(arch or ("sm_90",)), options.out, options.err)
    rank_for_workload(request, rows, options.out, options.err)


COMMANDS = {"rank": rank_command}
