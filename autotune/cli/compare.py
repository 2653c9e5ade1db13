"""``autotune compare``: what moved, as text and as a table; a regression is an error."""

from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Table

from autotune.cli import options
from autotune.cli.comparison import Change, Comparison, comparisons, read_side
from autotune.cli.terminal import append, code, markdown_table
from autotune.declaration import Configuration
from autotune.errors import Regression, StoreError
from autotune.figures import duration
from autotune.files import clean, csv_text, write_file, write_text

SHOWN = 10  # of what moved most


@click.argument("a", metavar="A", help="Record or policy file (.yaml) before the change.")
@click.argument("b", metavar="B", help="The same after the change, or of another device.")
@options.option(
    "--threshold PERCENT",
    default=5.0,
    least=0,
    help="A winner that is slower by more than this is a regression.",
)
@options.option("--every", help="Count any configuration that became slower as a regression.")
@options.place("Also write every row to this file.", "FILE.csv")
@options.markdown_option("tables")
def compare_command(
    a: str, b: str, threshold: float, every: bool, out_: Path | None, markdown: Path | None
) -> None:
    """Print what moved, write it to ``out_`` and append it to ``markdown``. Raises Regression when the winner (with
    ``every``: any configuration) became slower by more than ``threshold`` percent; StoreError, PolicyFileError."""
    if out_ is not None and out_.suffix != ".csv":
        raise StoreError(f"--out {out_}: the name must end in .csv")
    compared = comparisons(read_side(a), read_side(b))
    for one in compared:
        _print(one, options.out)
    if out_ is not None:
        options.out.print(f"comparison   {_write_table(compared, out_)}")
    found = [(one, one.regressions(threshold / 100, every=every)) for one in compared]
    if markdown is not None:
        append(markdown, "\n".join(_section(*each, threshold) for each in found) + "\n")
    worse = [
        f"{one.family} on {one.workload}: {_describe_change(row)}" for one, rows in found for row in rows
    ]
    if worse:
        more = f"; and {len(worse) - SHOWN} more" if len(worse) > SHOWN else ""
        raise Regression(f"B is slower than A by more than {threshold:g} %: {'; '.join(worse[:SHOWN])}{more}")


def _print(one: Comparison, out: Console) -> None:
    out.print(f"{one.family} on {one.workload}, {_where(one)}")
    table = Table("", "A", "B", "change", "noise", "", box=None)
    control = next((row.a or row.b for row in one.named if row.role == "control"), "")
    heading = "as it differs from control" if control else "configuration"
    table.add_column(f"in A, {heading}", overflow="fold", min_width=40)
    table.add_column("in B", overflow="fold", min_width=16)
    for row in one.named:
        is_timed = row.a_ms is not None or row.b_ms is not None
        outcome = row.outcome if is_timed else "not timed"
        table.add_row(
            row.role, *_figures(row), outcome, _shorten(row.a, control) or "-", _describe_other(row, control)
        )
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
            table.add_row(row.outcome, *_figures(row), _shorten(row.role, control))
        out.print(table)
    out.print("")


def _section(one: Comparison, worse: Sequence[Change], threshold: float) -> str:
    """The same in Markdown, with those that became ``worse`` in bold."""

    def cells(row: Change) -> tuple[str, ...]:
        outcome = f"**{row.outcome}**" if any(row is other for other in worse) else row.outcome
        return (code(row.role), *_figures(row), outcome)

    outcome = f"**{len(worse)} slower by more than {threshold:g} %**" if worse else "no regression"
    text = f"### {code(f'{one.family} on {one.workload}, {_where(one)}')}: {outcome}\n\n"
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
    slower = sum(row.outcome == "slower" for row in one.moved)
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


def _shorten(one: str, control: str) -> str:
    """The configuration ``one`` by what tells it from ``control``, whose id it is too; whole where nobody knows."""
    if not one or not control or set(_values(one)) != set(_values(control)):
        return one.replace(",", ", ")
    return Configuration(_values(one)).changes(_values(control))


def _describe_other(row: Change, control: str) -> str:
    """B's configuration: what is other than in A, where both are known."""
    if row.a == row.b:
        return "the same"
    a, b = _values(row.a), _values(row.b)
    if not row.a or set(a) != set(b):
        return _shorten(row.b, control) or "-"
    return ", ".join(f"{name}={value}" for name, value in b.items() if a[name] != value)


def _describe_change(row: Change) -> str:
    if row.change is None:
        return f"{row.role} was timed in A only"
    return f"{row.role} {100 * row.change:+.1f} %"


def _write_table(found: Sequence[Comparison], path: Path) -> Path:
    rows = []
    for one in found:
        for kind, moved in (("named", one.named), ("configuration", one.every)):
            rows += [
                {
                    "family": clean(one.family), "workload": clean(one.workload), "device_a": one.a,
                    "device_b": one.b, "kind": kind, "role": clean(row.role), "configuration_a": clean(row.a),
                    "configuration_b": clean(row.b), "time_a_ms": row.a_ms, "time_b_ms": row.b_ms,
                    "change_percent": None if row.change is None else 100 * row.change,
                    "noise_percent": None if row.noise is None else 100 * row.noise, "outcome": row.outcome,
                }
                for row in moved
            ]  # fmt: skip
    return write_text(path, csv_text(pd.DataFrame(rows)), write_file)
