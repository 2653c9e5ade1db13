"""``autotune rank``: the static pass, then the order in which its configurations are expected to be fast."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from autotune.cli import options, run_static
from autotune.compile import StaticProfile
from autotune.declaration import load_family, load_workload
from autotune.engine import SweepRequest
from autotune.errors import AutotuneError
from autotune.files import data_root
from autotune.ranking.estimate import static_ranking
from autotune.ranking.forecasts import Forecast, by_cycles, unseen_policies
from autotune.ranking.table import write_ranking
from autotune.record import RANKING
from autotune.report import pace
from autotune.search import Strategy

FIRST = 5
_ALIKE = 0.05  # estimates so near to the first are as good


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
    """Rank configurations by their traced accesses of memory, without a GPU. A search in that folder begins with the
    first."""
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


def rank_for_workload(
    request: SweepRequest, rows: Sequence[StaticProfile], out: Console, err: Console
) -> None:
    """Trace and rank ``rows`` for the request's workload, an architecture at a time."""
    workload = request.workloads[0]
    of_arch: dict[str, list[StaticProfile]] = {}
    for row in rows:
        if not row.message:
            of_arch.setdefault(row.arch, []).append(row)
    found: list[tuple[str, list[Forecast]]] = []
    for arch, profiles in of_arch.items():
        try:
            found.append((arch, _forecasts(request, workload, arch, profiles, err)))
        except AutotuneError as problem:
            err.print(f"warning: no ranking for {arch}: {problem}", markup=False)
    for arch, forecasts in found:
        _print(request, arch, forecasts, out)
    if found:
        name = load_workload(request.family, workload).name
        path = write_ranking(request.family, name, found, request.folder / RANKING)
        out.print(f"ranking      {path}; a search in this folder begins with its first {FIRST}", markup=False)


def _forecasts(
    request: SweepRequest, workload: str, arch: str, rows: Sequence[StaticProfile], err: Console
) -> list[Forecast]:
    forecasts = []
    processes = request.compiler_processes("cpu")
    with pace(f"{request.family.name} {arch} traced", len(rows), err) as steps:
        ranking = static_ranking(request.family, workload, data_root(request.data), rows, processes)
        for done, one in enumerate(ranking, 1):
            forecasts.append(one)
            steps.step(done, "")
    return forecasts


def _print(request: SweepRequest, arch: str, forecasts: Sequence[Forecast], out: Console) -> None:
    best = by_cycles(forecasts)
    lost = [one for one in forecasts if not one.launches]
    if best:
        alike = sum(one.cycles <= best[0].cycles * (1 + _ALIKE) for one in best)
        title = f"{arch}: expected to be fastest; {alike} of {len(best)} within {_ALIKE:.0%} of the first"
        table = Table("rank", "estimate", "bound by", title=title, title_justify="left", box=None)
        table.add_column("differs from control in", overflow="fold", min_width=40)
        control = request.family.space.control
        for place, one in enumerate(best[:FIRST], 1):
            changes = one.configuration.changes(control)
            table.add_row(str(place), f"{one.cycles / best[0].cycles:.2f}", one.bound, changes)
        out.print(table)
    if unseen := unseen_policies(forecasts, request.space.policies):
        out.print(f"not told apart: {', '.join(unseen)} (they change no access of memory here)", markup=False)
    if lost:
        out.print(f"{len(lost)} were not traced: {lost[0].message}", markup=False)


COMMANDS = {"rank": rank_command}
