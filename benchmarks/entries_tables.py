"""The tables of docs/results/accessor-costs.md: entries timed by entries_again.py, and entries swept again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import result_files
from result_files import read_rows

RECORD, SWEPT = "entries-again-h200.csv", "swept again"  # the file of results; rows of it that a sweep gave
SWEPT_AGAIN = "entries-swept-h200.csv"  # entries whose machine code changed since


def tables() -> dict[str, str]:
    """What docs/results/accessor-costs.md has (pages.py): by family, what is beyond the noise, which is what the ratios
    of rows with the same machine code reach."""
    rows = [row for row in read_rows(result_files.RESULTS / RECORD) if row["verdict"] != SWEPT]
    beside = [row for row in rows if row["now_over_before"]]
    noise = [float(row["now_over_before"]) for row in beside if row["code"] == "same"]
    heads = (
        "family or example", "entries", "machine code", "faster", "same", "slower", "now / before",
        "against the record only", "now / recorded", "not timed",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for family in sorted({row["family"] for row in rows}, key=lambda name: ("/" in name, name)):
        ours = [row for row in rows if row["family"] == family]
        ratios = [float(row["now_over_before"]) for row in beside if row["family"] == family]
        alone = [float(row["now_over_recorded"]) for row in ours if row["now_ms"] and not row["before_ms"]]
        faster, slower = sum(at < min(noise) for at in ratios), sum(at > max(noise) for at in ratios)
        cells = [
            len(ours), " and ".join(sorted({row["code"] for row in ours} - {""})) or "new", faster,
            len(ratios) - faster - slower, slower, reach(ratios), len(alone), reach(alone),
            len(ours) - len(ratios) - len(alone),
        ]  # fmt: skip
        lines.append(f"| {Path(family).name} | {' | '.join(str(cell) for cell in cells)} |")
    return {
        "families": "\n".join(lines),
        "swept": _table_of_swept(read_rows(result_files.RESULTS / SWEPT_AGAIN)),
    }


def _table_of_swept(rows: Sequence[Mapping[str, str]]) -> str:
    """By family, how the new time of a swept entry compares with the recorded one."""
    lines = ["| family | entries | another winner | now / recorded |", "|---|---|---|---|"]
    for family in sorted({row["family"] for row in rows}):
        ours = [row for row in rows if row["family"] == family]
        others = sum(row["winner"] == "other" for row in ours)
        ratios = reach([float(row["now_over_recorded"]) for row in ours])
        lines.append(f"| {family} | {len(ours)} | {others} | {ratios} |")
    return "\n".join(lines)


def reach(ratios: Sequence[float]) -> str:
    ends = [f"{end(ratios):.3f}" for end in (min, max)] if ratios else []
    return " to ".join(dict.fromkeys(ends))
