"""``autotune regret``: the matrix of what workloads lose, and what one configuration for all of them costs, as text."""

from collections import Counter

from rich.console import Console
from rich.table import Table

from autotune.declaration import Configuration
from autotune.figures import duration, loss_percent
from autotune.record import Minimax, Regrets

MOST_SHOWN = 8  # columns of the matrix


def print_regrets(regrets: Regrets, out: Console) -> None:
    """The matrix of workloads by configurations: the winners and the minimax configuration, at most ``MOST_SHOWN``;
    then what one for all costs."""
    chosen = regrets.minimax
    columns = _columns(regrets, chosen)
    out.print(
        f"\n{regrets.family} on {regrets.device}: regret of {len(regrets.times)} workloads", markup=False
    )
    table = Table("workload", "best", box=None, pad_edge=False)
    for letter in columns.values():
        table.add_column(letter, justify="right")
    for workload, row in regrets.times.items():
        cells = [loss_percent(regrets.regret(workload, c)) if c in row else "-" for c in columns]
        table.add_row(workload, duration(row[regrets.best[workload]]), *cells)
    out.print(table)
    named = Table("", "worst", "median", "total", box=None, pad_edge=False)
    named.add_column("configuration", overflow="fold")
    for configuration, letter in columns.items():
        cost = regrets.cost_of_one(configuration) if configuration in regrets.everywhere else {}
        cells = [loss_percent(cost[k]) if cost else "-" for k in ("worst", "median", "total")]
        named.add_row(letter, *cells, configuration.id)
    out.print(named)
    if chosen is None:
        out.print("no configuration was measured on every workload, so there is no minimax configuration")
        return
    cost = regrets.cost_of_one(chosen.configuration)
    if len(regrets.times) == 1:
        out.print("of one workload, its winner costs nothing: sweep another one to compare with")
        return
    out.print(
        f"minimax {columns[chosen.configuration]}: one configuration for all {len(regrets.times)} workloads costs at "
        f"most {loss_percent(cost['worst'])} of a workload's time, {loss_percent(cost['median'])} in the median; "
        f"a run of each takes {loss_percent(cost['total'])} longer",
        markup=False,
    )


def _columns(regrets: Regrets, chosen: Minimax | None) -> dict[Configuration, str]:
    """The minimax configuration, then the winners by how many workloads each wins; with their letters."""
    wins = Counter(regrets.best.values())
    ranked = sorted(wins, key=lambda c: (-wins[c], c.id))
    first = [chosen.configuration] if chosen else []
    columns = list(dict.fromkeys([*first, *ranked]))[:MOST_SHOWN]
    return {c: chr(ord("A") + i) if i < 26 else f"A{i}" for i, c in enumerate(columns)}
