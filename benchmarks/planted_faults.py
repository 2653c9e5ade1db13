"""In how many sweeps is each planted fault caught, and by what?

    python benchmarks/planted_faults.py [--device cpu|cuda] [--sweeps 20] [--name cpu] [--page]

Writes ``benchmarks/results/planted-NAME.csv``, or --out; with ``--page`` only the table of docs/proof.md, from the CSVs
that are there. The exit code is 1 when the right kernel is refused in a sweep. The faults are those of
``tests/support/planted.py``. A fault that takes the device down costs its own trial.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from planted import FAULTS, SIZES, Seen, families, sweep_all  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "proof.md"
BEGIN, END = "<!-- planted -->\n", "<!-- /planted -->"
# By a part of the reason.
MEANS = {
    "writes outside of": "guards",
    "writes its input": "inputs compared",
    "right for the swept sizes": "ragged sizes",
    "after it was timed": "outputs after timing",
    "when verified again": "outputs after timing",
    "compute-sanitizer": "compute-sanitizer",
    "elements differ": "outputs compared",
}


def by(seen: Seen) -> str:
    """What caught it; empty where nothing did."""
    if seen.state == "measured":
        return ""
    if seen.state.startswith("exit"):
        return "refused before the sweep"
    if seen.state == "wrong_result":
        return next((mean for part, mean in MEANS.items() if part in seen.reason), str(seen.reason[:60]))
    return str(seen.state)


def counted(device: str, sweeps: int, which: Sequence[str]) -> pd.DataFrame:
    """A row a fault: what caught it and in how many sweeps; in how many it was too slow at its first run to be verified
    again or chosen; in how many it was in the policy file."""
    means: dict[str, Counter[str]] = {fault.name: Counter() for fault in FAULTS}
    hopeless: Counter[str] = Counter()
    wins: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="autotune-planted-") as place:
        made = families(Path(place) / "families")
        for number in range(sweeps):
            for name, seen in sweep_all(made, device, Path(place) / f"out-{number}", which).items():
                means[name][by(seen)] += 1
                hopeless[name] += seen.is_hopeless
                wins[name] += seen.wins
            print(f"{number + 1} of {sweeps}", file=sys.stderr, flush=True)
    rows = []
    for fault in (fault for fault in FAULTS if means[fault.name]):
        caught = {mean: count for mean, count in means[fault.name].most_common() if mean}
        rows.append({
            "fault": fault.name, "what": fault.what, "caught_by": " or ".join(caught),
            "caught": sum(caught.values()), "hopeless": hopeless[fault.name], "sweeps": sweeps,
            "in_policy_file": wins[fault.name],
        })  # fmt: skip
    return pd.DataFrame(rows)


def table() -> str:
    """Of all CSVs that are there, the cpu's first."""
    paths = sorted(RESULTS.glob("planted-*.csv"), key=lambda path: (path.stem != "planted-cpu", path.stem))
    frames = {path.stem.removeprefix("planted-"): pd.read_csv(path, keep_default_na=False) for path in paths}
    head = ["planted", *(f"{name}: caught by | in {frame['sweeps'][0]}" for name, frame in frames.items())]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---|---|" * len(frames)]
    by_name = {name: frame.set_index("fault") for name, frame in frames.items()}
    for fault in FAULTS:
        cells = [fault.what]
        for frame in by_name.values():
            row = frame.loc[fault.name] if fault.name in frame.index else None
            cells += ["", ""] if row is None else [row["caught_by"] or "not caught", _often(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _often(row: "pd.Series[Any]") -> str:
    slow = f", {row['hopeless']} too slow" if row["hopeless"] else ""
    return f"{row['caught']}{slow}"


def write_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{rest.split(END)[1]}", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--name", default="", help="of the device in the CSV's name; default its kind")
    parser.add_argument("--of", action="append", choices=tuple(SIZES), help="only the faults of that family")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path, help="in place of that file")
    given = parser.parse_args(words)
    if given.page:
        write_page()
        return 0
    frame = counted(given.device, given.sweeps, given.of or tuple(SIZES))
    name = given.name or given.device.partition(":")[0]
    frame.to_csv(given.out or RESULTS / f"planted-{name}.csv", index=False)
    print(frame.drop(columns="what").to_string(index=False))
    return int(bool((frame["fault"] == "none").dot(frame["caught"])))


if __name__ == "__main__":
    sys.exit(main())
