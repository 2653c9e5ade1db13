"""In how many sweeps is each planted fault caught, and by what?

    python benchmarks/planted_faults.py [--device cpu|cuda] [--sweeps 20] [--name cpu] [--only FAULT]...

Writes ``benchmarks/results/planted-NAME.csv``, or --out: the rows of the faults that were swept, or of those that
--only names, in place of what that file says of them; pages.py makes the table of docs/results/planted-faults.md of the
CSVs that are there. The exit code is 1 when the right kernel is rejected in a sweep. The faults are those of
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
from result_files import RESULTS, read_frame, write_text

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from planted import FAULTS, SIZES, Seen, families, sweep_all  # noqa: E402

# By a part of the reason.
MEANS = {
    "writes outside of": "guards",
    "writes its input": "inputs compared",
    "and other values": "other values",
    "factor=": "other scalars",
    "times=": "other options",
    "n=6": "larger sizes",
    "right for the swept sizes": "ragged sizes",
    "pattern in local variables": "locals with a pattern",
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


def tables() -> dict[str, str]:
    """What docs/results/planted-faults.md has (pages.py): of all CSVs that are there, the cpu's first."""
    paths = sorted(RESULTS.glob("planted-*.csv"), key=lambda path: (path.stem != "planted-cpu", path.stem))
    frames = {path.stem.removeprefix("planted-"): read_frame(path, keep_default_na=False) for path in paths}
    most = {name: int(frame["sweeps"].max()) for name, frame in frames.items()}
    head = ["planted", *(f"{name}: caught by | in {most[name]}" for name in frames)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---|---|" * len(frames)]
    by_name = {name: frame.set_index("fault") for name, frame in frames.items()}
    for fault in FAULTS:
        cells = [fault.what]
        for name, frame in by_name.items():
            row = frame.loc[fault.name] if fault.name in frame.index else None
            cells += (
                ["not run", ""]
                if row is None
                else [_plain(row["caught_by"]) or "not caught", _often(row, most[name])]
            )
        lines.append(f"| {' | '.join(cells)} |")
    return {"faults": "\n".join(lines)}


def _plain(caught_by: str) -> str:
    """The words of the pages for those in CSVs of earlier versions."""
    return caught_by.replace("ragged sizes", "odd sizes").replace("refused before", "rejected before")


def _often(row: "pd.Series[Any]", most: int) -> str:
    of = f" of {row['sweeps']}" if row["sweeps"] != most else ""
    slow = f", {row['hopeless']} too slow" if row["hopeless"] else ""
    return f"{row['caught']}{of}{slow}"


def put(frame: pd.DataFrame, path: Path) -> None:
    """The rows of ``frame`` in place of those of the same faults in the file, in the order of the faults."""
    before = read_frame(path, keep_default_na=False) if path.is_file() else frame[:0]
    rows = {row["fault"]: row for each in (before, frame) for row in each.to_dict("records")}
    table = pd.DataFrame([rows[fault.name] for fault in FAULTS if fault.name in rows])
    write_text(path, table.to_csv(index=False))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--name", default="", help="of the device in the CSV's name; default its kind")
    parser.add_argument("--of", action="append", choices=tuple(SIZES), help="only the faults of that family")
    parser.add_argument("--only", action="append", choices=[fault.name for fault in FAULTS], metavar="FAULT")
    parser.add_argument("--out", type=Path, help="in place of that file")
    given = parser.parse_args(words)
    named = {fault.of for fault in FAULTS if fault.name in (given.only or ())}
    frame = counted(given.device, given.sweeps, given.of or tuple(named) or tuple(SIZES))
    frame = frame[frame["fault"].isin(given.only)] if given.only else frame
    name = given.name or given.device.partition(":")[0]
    put(frame, given.out or RESULTS / f"planted-{name}.csv")
    print(frame.drop(columns="what").to_string(index=False))
    return int(bool(frame["fault"].isin(["none", "right"]).dot(frame["caught"])))


if __name__ == "__main__":
    sys.exit(main())
