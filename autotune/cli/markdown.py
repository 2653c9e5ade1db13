"""Comparisons and checks as Markdown, for the summary of a CI job and for a comment."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from autotune.errors import StoreError
from autotune.figures import duration
from autotune.policy import Change, Comparison

SHOWN = 10  # of what moved most


def append(path: Path, text: str) -> None:
    """Write ``text`` behind what is in ``path``: a job's summary may hold something already. Raises StoreError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror or problem}") from None


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Of cells that are Markdown: see ``code``."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_comparisons(found: Sequence[Comparison], threshold: float, *, every: bool) -> str:
    """A section for each: roles, counts, what moved most. Regressions are bold; ``threshold`` as ``regressions`` has
    it."""
    return "\n".join(_section(one, threshold, every=every) for one in found) + "\n"


def _section(one: Comparison, threshold: float, *, every: bool) -> str:
    worse = one.regressions(threshold, every=every)
    where = one.a if one.a == one.b else f"{one.a} and {one.b}"
    verdict = f"**{len(worse)} slower by more than {100 * threshold:g} %**" if worse else "no regression"
    text = f"### {code(f'{one.family} on {one.workload}, {where}')}: {verdict}\n\n"
    text += table(("", "A", "B", "change", "noise", ""), [_row(row.role, row, worse) for row in one.named])
    moved = [row for row in one.every if row.verdict != "same"]
    if one.every:
        slower = sum(row.verdict == "slower" for row in moved)
        text += (
            f"\n{len(one.every)} configurations timed in both: {slower} slower, {len(moved) - slower} faster, "
            f"{len(one.every) - len(moved)} within noise.\n"
        )
    if moved:
        text += "\n<details><summary>moved most</summary>\n\n"
        rows = [_row(row.role, row, worse) for row in moved[:SHOWN]]
        text += table(("configuration", "A", "B", "change", "noise", ""), rows) + "\n</details>\n"
    return text


def figures(row: Change) -> tuple[str, ...]:
    """Both times, the change and the noise, as they are printed."""
    times = (duration(ms) if ms is not None else "-" for ms in (row.a_ms, row.b_ms))
    change = f"{100 * row.change:+.1f} %" if row.change is not None else ""
    noise = f"{100 * row.noise:.1f} %" if row.noise is not None else ""
    return (*times, change, noise)


def _row(name: str, row: Change, worse: Sequence[Change]) -> tuple[str, ...]:
    verdict = f"**{row.verdict}**" if any(row is other for other in worse) else row.verdict
    return (code(name), *figures(row), verdict)


def code(text: str) -> str:
    """What a file says, of whoever it is, as a code span: on one line, in which nobody reads markup, HTML or names."""
    line = re.sub(r"\\*\|", r"\\|", " ".join(text.split()).replace("`", "'"))
    return f"`{line}`" if line else ""
