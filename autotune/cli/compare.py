"""``autotune compare``: what moved, as text and as a table; a regression is an error.

``autotune regret``: the matrix of what workloads lose, and what one configuration for all of them costs.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Table

from autotune.cli import options
from autotune.cli.terminal import append, code, markdown_table
from autotune.declaration import Configuration
from autotune.errors import Regression, StoreError
from autotune.figures import duration, loss_percent
from autotune.files import clean, csv_text, write_text, written
from autotune.policy import Change, Comparison, comparisons, read_side
from autotune.record import Minimax, Regrets, read_regrets, write_matrix

MOST_SHOWN = 8  # columns of the matrix of regrets

SHOWN = 10  # of what moved most


@click.argument("a", metavar="A", help="A record or a policy file (.yaml): before.")
@click.argument("b", metavar="B", help="The same of another version or device: after.")
@options.option(
    "--threshold",
    default=5.0,
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="A slower winner is a regression above this.",
)
@options.option("--every", is_flag=True, help="Any configuration that became slower is a regression.")
@options.place("Write every row there too.", "FILE.csv")
@options.option(
    "--markdown",
    type=options.FOLDER,
    metavar="FILE.md",
    help="Append the tables there as Markdown, for a job's summary.",
)
def compare_command(
    a: str, b: str, threshold: float, every: bool, out_: Path | None, markdown: Path | None
) -> None:
    """Print what moved, write it to ``out_`` and append it to ``markdown``. Raises Regression when the winner (with
    ``every``: any configuration) became slower by more than ``threshold`` percent; StoreError, PolicyFileError."""
    if out_ is not None and out_.suffix != ".csv":
        raise StoreError(f"--out {out_}: the name must end in .csv")
    found = comparisons(read_side(a), read_side(b))
    for one in found:
        _print(one, options.out)
    if out_ is not None:
        options.out.print(f"comparison   {_written(found, out_)}")
    worse = [(one, row) for one in found for row in one.regressions(threshold / 100, every=every)]
    if markdown is not None:
        sections = (
            _section(one, one.regressions(threshold / 100, every=every), threshold / 100) for one in found
        )
        append(markdown, "\n".join(sections) + "\n")
    if worse:
        named = "; ".join(f"{one.family} on {one.workload}: {_said(row)}" for one, row in worse[:SHOWN])
        more = f"; and {len(worse) - SHOWN} more" if len(worse) > SHOWN else ""
        raise Regression(f"B is slower than A by more than {threshold:g} %: {named}{more}")


@click.argument(
    "record", metavar="RECORD", help="A results.csv, a sweep's --out folder, or the URL of its --store."
)
@options.place("Write the whole matrix as a CSV, a row a configuration.", "FILE")
def regret_command(record: str, out_: Path | None) -> None:
    found = read_regrets(record)
    for regrets in found:
        print_regrets(regrets, options.out)
    if out_:
        write_matrix(found, out_)
        options.note(f"matrix       {out_}")


def _print(one: Comparison, out: Console) -> None:
    out.print(f"{one.family} on {one.workload}, {_where(one)}")
    table = Table("", "A", "B", "change", "noise", "", box=None)
    control = next((row.a or row.b for row in one.named if row.role == "control"), "")
    heading = "as it differs from control" if control else "configuration"
    table.add_column(f"in A, {heading}", overflow="fold", min_width=40)
    table.add_column("in B", overflow="fold", min_width=16)
    for row in one.named:
        is_timed = row.a_ms is not None or row.b_ms is not None
        verdict = row.verdict if is_timed else "not timed"
        table.add_row(row.role, *_figures(row), verdict, _short(row.a, control) or "-", _other(row, control))
    out.print(table)
    if one.every:
        out.print(f"{_counts(one)}; only in A {one.only_a}, only in B {one.only_b}")
    if one.winner.a != one.winner.b:
        for text, over in (("A's winner in B", one.transfer), ("B's winner in A", one.back)):
            if over is not None:
                out.print(f"{text} takes {100 * over:.1f} % more than the best there")
    if one.moved:
        table = Table("moved most", "A", "B", "change", "noise", box=None)
        table.add_column(heading, overflow="fold", min_width=40)
        for row in one.moved[:SHOWN]:
            table.add_row(row.verdict, *_figures(row), _short(row.role, control))
        out.print(table)
    out.print("")


def _section(one: Comparison, worse: Sequence[Change], threshold: float) -> str:
    """The same in Markdown, with those that became ``worse`` in bold."""

    def cells(row: Change) -> tuple[str, ...]:
        verdict = f"**{row.verdict}**" if any(row is other for other in worse) else row.verdict
        return (code(row.role), *_figures(row), verdict)

    verdict = f"**{len(worse)} slower by more than {100 * threshold:g} %**" if worse else "no regression"
    text = f"### {code(f'{one.family} on {one.workload}, {_where(one)}')}: {verdict}\n\n"
    text += markdown_table(("", "A", "B", "change", "noise", ""), map(cells, one.named))
    text += f"\n{_counts(one)}.\n" if one.every else ""
    if one.moved:
        rows = markdown_table(
            ("configuration", "A", "B", "change", "noise", ""), map(cells, one.moved[:SHOWN])
        )
        text += f"\n<details><summary>moved most</summary>\n\n{rows}\n</details>\n"
    return text


def _where(one: Comparison) -> str:
    return one.a if one.a == one.b else f"{one.a} and {one.b}"


def _counts(one: Comparison) -> str:
    slower = sum(row.verdict == "slower" for row in one.moved)
    typical = f", typically {100 * one.typical:+.1f} %" if one.typical is not None else ""
    return (
        f"{len(one.every)} configurations timed in both: {slower} slower, {len(one.moved) - slower} faster, "
        f"{len(one.every) - len(one.moved)} within noise{typical}"
    )


def _figures(row: Change) -> tuple[str, ...]:
    """Both times, the change and the noise."""
    times = (duration(ms) if ms is not None else "-" for ms in (row.a_ms, row.b_ms))
    change = f"{100 * row.change:+.1f} %" if row.change is not None else ""
    noise = f"{100 * row.noise:.1f} %" if row.noise is not None else ""
    return (*times, change, noise)


def _values(one: str) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in one.split(","))


def _short(one: str, control: str) -> str:
    """The configuration ``one`` by what tells it from ``control``, whose id it is too; whole where nobody knows."""
    if not one or not control or set(_values(one)) != set(_values(control)):
        return one.replace(",", ", ")
    return Configuration(_values(one)).changes(_values(control))


def _other(row: Change, control: str) -> str:
    """B's configuration: what is other than in A, where both are known."""
    if row.a == row.b:
        return "the same"
    a, b = _values(row.a), _values(row.b)
    if not row.a or set(a) != set(b):
        return _short(row.b, control) or "-"
    return ", ".join(f"{name}={value}" for name, value in b.items() if a[name] != value)


def _said(row: Change) -> str:
    if row.change is None:
        return f"{row.role} was timed in A alone"
    return f"{row.role} {100 * row.change:+.1f} %"


def _written(found: Sequence[Comparison], path: Path) -> Path:
    rows = []
    for one in found:
        for kind, moved in (("named", one.named), ("configuration", one.every)):
            rows += [
                {
                    "family": clean(one.family), "workload": clean(one.workload), "device_a": one.a,
                    "device_b": one.b, "kind": kind, "role": clean(row.role), "configuration_a": clean(row.a),
                    "configuration_b": clean(row.b), "time_a_ms": row.a_ms, "time_b_ms": row.b_ms,
                    "change_percent": None if row.change is None else 100 * row.change,
                    "noise_percent": None if row.noise is None else 100 * row.noise, "verdict": row.verdict,
                }
                for row in moved
            ]  # fmt: skip
    return write_text(path, csv_text(pd.DataFrame(rows)), written)


# -- regret


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
