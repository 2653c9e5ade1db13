"""What ``autotune rank`` prints, and ``ranking.csv``: what a static pass expects of each configuration."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autotune.compile import StaticProfile
from autotune.declaration import Family, load_workload
from autotune.engine import SweepRequest
from autotune.errors import AutotuneError
from autotune.files import clean, data_root, write_text
from autotune.ranking.estimate import static_ranking
from autotune.ranking.forecasts import Forecast, find_unseen_policies, sort_by_cycles
from autotune.ranking.warp_requests import Requests
from autotune.record import RANKING
from autotune.report import pace
from autotune.search import FIVE

_COLUMNS = (
    "family", "workload", "arch", "rank", "configuration", "cycles", "bound", *asdict(Requests()), "reason",
    "source_digest", "space_digest",
)  # fmt: skip
_ALIKE = 0.05  # estimates so near to the first are as good


def rank_for_workload(
    request: SweepRequest, rows: Sequence[StaticProfile], out: Console, err: Console
) -> None:
    """Trace and rank ``rows`` for the request's workload, an architecture at a time."""
    workload = request.workloads[0]
    of_arch: dict[str, list[StaticProfile]] = {}
    for row in rows:
        if not row.message:
            of_arch.setdefault(row.arch, []).append(row)
    ranked: list[tuple[str, list[Forecast]]] = []
    for arch, profiles in of_arch.items():
        try:
            ranked.append((arch, _forecasts(request, workload, arch, profiles, err)))
        except AutotuneError as problem:
            err.print(f"warning: no ranking for {arch}: {problem}", markup=False)
    for arch, forecasts in ranked:
        _print(request, arch, forecasts, out)
    if ranked:
        name = load_workload(request.family, workload).name
        path = write_ranking(request.family, name, ranked, request.folder / RANKING)
        out.print(f"ranking      {path}; a search in this folder begins with its first {FIVE}", markup=False)


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
    best = sort_by_cycles(forecasts)
    lost = [one for one in forecasts if not one.launches]
    if best:
        alike = sum(one.cycles <= best[0].cycles * (1 + _ALIKE) for one in best)
        title = f"{arch}: expected to be fastest; {alike} of {len(best)} within {_ALIKE:.0%} of the first"
        table = Table("rank", "estimate", "bound by", title=title, title_justify="left", box=None)
        table.add_column("differs from control in", overflow="fold", min_width=40)
        control = request.family.space.control
        for place, one in enumerate(best[:FIVE], 1):
            changes = one.configuration.changes(control)
            table.add_row(str(place), f"{one.cycles / best[0].cycles:.2f}", one.bound, changes)
        out.print(table)
    if unseen := find_unseen_policies(forecasts, request.space.policies):
        out.print(
            f"not distinguished: {', '.join(unseen)} (they change no access of memory here)", markup=False
        )
    if lost:
        out.print(f"{len(lost)} were not traced: {lost[0].message}", markup=False)


def write_ranking(
    family: Family, workload: str, forecasts: Sequence[tuple[str, Sequence[Forecast]]], path: Path
) -> Path:
    """A row for each architecture and configuration, the fastest first; those that were not traced come last, with the
    reason. The figures of requests are a warp's, all launches together. Raises StoreError."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for arch, listed in forecasts:
        head = {
            "family": family.name, "workload": workload, "arch": arch,
            "source_digest": family.source_digest, "space_digest": family.space_digest,
        }  # fmt: skip
        for rank, one in enumerate(sort_by_cycles(listed), 1):
            figures = [asdict(launched.requests) for launched in one.launches]
            sums = {name: f"{sum(f[name] for f in figures):.6g}" for name in figures[0]}
            told = {"rank": rank, "configuration": one.configuration.id, "cycles": f"{one.cycles:.6g}"}
            writer.writerow({**head, **told, "bound": one.bound, **sums})
        for one in listed:
            if not one.launches:
                reason = clean(" ".join(one.message.split()))
                writer.writerow({**head, "configuration": one.configuration.id, "reason": reason})
    return write_text(path, text.getvalue())
