"""What the paper's 128 layouts do not have: ranges of leaves, and words in tables in place of the tree.

    python benchmarks/mummergpu_beyond.py [--rows CSV] [--h200 CSV]

Prints the tables as Markdown; pages.py puts them into the page. Needs no GPU. --rows is the results.csv of

    autotune sweep mummergpu -w lmono -w cbrigg -w ssuis -w hsill --preset beyond
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from mummergpu_policy_analysis import H200, WORKLOADS, ranged, table
from result_files import RESULTS, read_frame

from autotune.declaration import Family, load_family
from autotune.report.policy_effects import pairs, settings

ROWS = RESULTS / "mummergpu-h200-beyond.csv.xz"
SEARCHES = {
    "walk": "the paper's, best of 128",
    "tree": "tree, ranges",
    "coarse_table": "coarse table",
    "fine_table": "fine table",
}
STEPS = (
    ("search", "coarse_table", "fine_table"),
    ("leaf_records", "aos", "soa"),
    ("leaf_memory", "global", "readonly"),
    ("leaf_memory", "global", "texture"),
    ("query_memory", "global", "texture"),
    ("reference_memory", "global", "texture"),
    ("block_size", 64, 128),
    ("block_size", 128, 256),
    ("tree_order", "construction", "reordered"),
)


def read(path: Path) -> dict[str, pd.DataFrame]:
    """A results.csv -> the measured rows of each workload, in ms ``match``, ``print``, ``total`` and ``all``: with the
    transfer and the transform of the layout."""
    rows = read_frame(path)
    rows = rows[rows["state"] == "measured"]
    printing = [name for name in rows if str(name).startswith(("kernel_print", "kernel_scan"))]
    rows = rows.assign(match=rows["kernel_match_ms"], print=rows[printing].sum(axis=1), total=rows["time_ms"])
    rows = rows.assign(all=rows["total"] + rows["transfer_ms"] + rows["transform_ms"])
    return {name: rows[rows["workload"] == name] for name in WORKLOADS if name in set(rows["workload"])}


def kinds(rows: pd.DataFrame) -> pd.Series:
    """Of each row a key of SEARCHES."""
    return rows["search"].where(rows["emit"] == "ranges", "walk")


def said_of(row: pd.Series) -> str:
    """How a configuration searches, for a reader."""
    return "as the paper" if row["emit"] == "walk" else SEARCHES[str(row["search"])]


def changed(row: pd.Series, family: Family) -> str:
    """What tells a configuration from control, but for how it searches."""
    control = family.space.control
    named = [
        f"{name}={row[name]}"
        for name in control
        if name not in ("search", "emit") and str(row[name]) != str(control[name])
    ]
    return ", ".join(named) or "control's"


def fastest(rows: pd.DataFrame, measure: str) -> pd.Series:
    return rows.iloc[int(rows[measure].argmin())]


def ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def searches(rows: Mapping[str, pd.DataFrame], paper: pd.DataFrame, family: Family) -> str:
    """The fastest of each kind; the paper's from its own sweep."""
    lines = []
    for workload, of in rows.items():
        original = paper[(paper["workload"] == workload) & (paper["state"] == "measured")]
        control = {name: value for name, value in family.space.control.items() if name not in original}
        printing = [name for name in original if str(name).startswith(("kernel_print", "kernel_scan"))]
        original = original.assign(
            match=original["kernel_match_ms"],
            print=original[printing].sum(axis=1),
            total=original["median_ms"],
            **control,
        )
        paper_ms = original["total"].min()
        for kind, said in SEARCHES.items():
            chosen = original if kind == "walk" else of[kinds(of) == kind]
            if chosen.empty:
                continue
            best = fastest(chosen, "total")
            times = [ms(best[measure]) for measure in ("match", "print", "total")]
            lines.append([workload, said, changed(best, family), *times, f"{paper_ms / best['total']:.1f} x"])
    return table("workload | search | layout and block | match | print | all kernels | faster by", lines)


def effects(rows: Mapping[str, pd.DataFrame], family: Family) -> str:
    """Percent by which one value in place of another changes all kernels: mean [least, most] over all pairs that
    differ in nothing else."""
    policies = [policy.name for policy in family.space.policies]
    lines = []
    for name, off, on in STEPS:
        cells = []
        for every in rows.values():
            of = every[every["emit"] == "ranges"]
            before, after = pairs(settings(of[policies], name), of[name], off, on)
            times = of["total"].to_numpy(float)
            change = pd.Series(100 * (times[after] / times[before] - 1))
            cells.append(f"{ranged(change)} ({len(change)})" if len(change) else "no such pair")
        lines.append([f"`{name}`", f"{off} to {on}", *cells])
    return table(" | ".join(["policy", "change", *rows]), lines)


def one_call(rows: Mapping[str, pd.DataFrame], family: Family) -> str:
    """What is best for kernels alone, and what with the transform and the transfer of one call."""
    lines = []
    for workload, of in rows.items():
        kernels, call = fastest(of, "total"), fastest(of, "all")
        control = of[kinds(of) == "walk"].iloc[0]
        lines.append(
            [
                workload,
                f"{ms(kernels['total'])}, {ms(kernels['all'])}",
                f"{said_of(call)}, {changed(call, family)}",
                f"{ms(call['total'])}, {ms(call['all'])}",
                f"{ms(control['total'])}, {ms(control['all'])}",
            ]
        )
    header = "workload | best kernels: kernels, all | best single call | kernels, all | control: kernels, all"
    return table(header, lines)


def tables(rows: Path = ROWS, h200: Path = H200) -> dict[str, str]:
    """What docs/results/mummergpu.md has (pages.py)."""
    of, paper, family = read(rows), read_frame(h200), load_family("mummergpu")
    return {
        "searches": searches(of, paper, family),
        "effects": effects(of, family),
        "one-call": one_call(of, family),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=Path, default=ROWS, help="results.csv of the preset beyond")
    parser.add_argument("--h200", type=Path, default=H200, help="results.csv of the paper's 128")
    given = parser.parse_args(arguments)
    try:
        made = tables(given.rows, given.h200)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print("\n\n".join(f"**{name}**\n\n{text}" for name, text in made.items()))


if __name__ == "__main__":
    main()
