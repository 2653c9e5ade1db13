"""Turns the CSVs of the examples' compare.py into the tables of their READMEs, so that no figure is typed.

python examples/tables.py FILE...            prints Markdown
python examples/tables.py --write FILE...    puts it into examples/EXAMPLE/README.md, between the two comparison marks
"""

import argparse
import csv
import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile, groupby
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NONE_YET = "No GPU has run this comparison yet: [tune.sh](../tune.sh) makes it, [tables.py](../tables.py) writes it.\n"
OWN = (
    "autotune is the tuned kernel, its result in the layout that was chosen; the whole call also puts it into\n"
    "a plain array of the caller's.\n\n"
)
WAITED = "A call that is given new inputs and waits for its result is compared with a library's that waits, too.\n\n"
MARKED = re.compile(r"(<!-- comparison -->\n).*?(<!-- /comparison -->\n)", re.DOTALL)
SECONDS = (("s", 1e3), ("ms", 1.0), ("µs", 1e-3), ("ns", 1e-6))

Row = Mapping[str, str]


def read(files: Sequence[Path]) -> list[Row]:
    """The rows of all files. Raises SystemExit for a file that is no comparison."""
    found: list[Row] = []
    for path in files:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(dropwhile(lambda line: line.startswith("# "), file)))
        if not rows or not {"example", "what", "median_ms", "times_the_tuned"} <= rows[0].keys():
            raise SystemExit(f"{path} is no comparison: name CSVs that a compare.py wrote")
        found += rows
    return found


def shown(ms: str) -> str:
    """A time with three digits, in the unit that suits it."""
    value = float(ms)
    unit, size = next((u for u in SECONDS if value >= u[1]), SECONDS[-1])
    return f"{value / size:.3g} {unit}"


def verdict(name: str, rows: Sequence[Row]) -> str:
    """One sentence: what the tuned kernel wins against and what it loses to."""
    apart = [(row["what"], float(row["times_the_tuned"])) for row in rows if row["times_the_tuned"]]
    others = [(what, times) for what, times in apart if not what.startswith("autotune")]
    if not others:
        return f"{name}: there is nothing to compare with."
    wins = [f"{times:.2f} times as fast as {what}" for what, times in others if times >= 1]
    losses = [
        f"{what} is {1 / times:.2f} times as fast as the tuned kernel" for what, times in others if times < 1
    ]
    parts = [f"the tuned kernel is {', '.join(wins)}"] * bool(wins) + losses
    return f"{name}: {'; '.join(parts)}."


def table(rows: Sequence[Row]) -> str:
    """Markdown for one example: a row for each way on each workload, fastest first; a sentence for each workload."""
    if not rows:
        return NONE_YET
    lines = [
        "| workload | what | time | x the tuned | rate | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    sentences, chosen = [], []
    for name, group in groupby(rows, key=lambda row: row["workload"]):
        ways = sorted(group, key=lambda row: float(row["median_ms"]))
        for row in ways:
            own = row["what"].startswith("autotune")
            what = f"**{row['what']}**" if own else f"{row['what']} ({row['version']})"
            lines.append(
                f"| {name} | {what} | {shown(row['median_ms'])} | {row['times_the_tuned']} "
                f"| {float(row['operations_per_s']):.3g} {row['operation']}/s | {row['difference']} |"
            )
            if row["what"] == "autotune":
                of = f", the best of {row['measured']} measured" * bool(row["measured"])
                chosen.append(f"- {name}: `{row['configuration']}`{of}")
        sentences.append(f"- {verdict(name, ways)}")
    devices = ", ".join(sorted({row["device"] for row in rows}))
    caches = {row["workload"]: row["cache"] for row in rows}
    said = ", ".join(f"{name} {cache}" for name, cache in caches.items())
    text = f"On {devices}, medians of {rows[0]['samples']} samples in turns, the cache {said}:\n\n"
    waits = any(row["what"].startswith("autotune") and row["what"].endswith("waited for") for row in rows)
    text += "\n".join(lines) + "\n\n" + OWN + WAITED * waits + "\n".join(sentences) + "\n"
    return text + (f"\nThe tuned configurations:\n\n{chr(10).join(chosen)}\n" if chosen else "")


def written(readme: str, text: str) -> str:
    """``readme`` with ``text`` between its marks. Raises SystemExit where it has none."""
    made, count = MARKED.subn(lambda marks: marks[1] + text + marks[2], readme)
    if count != 1:
        raise SystemExit(
            f"the README has {count} places between <!-- comparison --> and <!-- /comparison -->, not 1"
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="into the examples' READMEs")
    given = parser.parse_args()
    rows = sorted(
        read(given.files), key=lambda row: row["example"]
    )  # the order of the files within an example
    for example, group in groupby(rows, key=lambda row: row["example"]):
        text = table(list(group))
        if given.write:
            readme = FOLDER / example / "README.md"
            readme.write_text(written(readme.read_text(encoding="utf-8"), text), encoding="utf-8")
            print(f"wrote {readme}")
        else:
            print(f"## {example}\n\n{text}")


if __name__ == "__main__":
    main()
