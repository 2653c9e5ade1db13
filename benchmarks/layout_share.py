"""What does the choice of layouts bring on its own, all other policies tuned?

    python benchmarks/layout_share.py

Tables for docs/results/where-layout-matters.md (pages.py). ``entries`` counts, in shipped policy files, the winners
whose layout policies leave their defaults. ``tuned`` and ``untuned`` compare, in the recorded sweeps of an H200, the
fastest of all measured configurations with the fastest of those that keep every layout policy at its default. Both are
the best that the same sweep found; the table says how many configurations it measured on each side. ``inputs`` does so
on the many inputs of a family that ``selection_sweep.py`` swept.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import queries

from autotune.declaration import Family, load_family

ROOT = Path(__file__).parents[1]
TUNED = 10  # configurations that show the gain of the other policies
SWEEPS = {  # the fullest recorded sweep of each family
    "allpairs": ["allpairs-h200.csv.xz"],
    "coulomb": ["coulomb-h200-slice.csv.xz", "coulomb-h200-slice-float64.csv.xz"],
    "coulomb_map": ["coulomb_map-h200.csv.xz"],
    "cyclospectrum": ["cyclospectrum-h200.csv.xz"],
    "eri": ["eri-h200-tiles.csv.xz", "eri-h200-water2.csv.xz"],
    "eri_sp": ["eri-sp-h200.csv.xz", "eri-sp-h200-screened-sweep.csv.xz"],
    "ion_placement": ["ion_placement-h200-sweep.csv.xz"],
    "king": ["king-h200.csv"],
    "mummergpu": ["mummergpu-h200.csv.xz"],
    "reaction_diffusion": ["reaction_diffusion-h200.csv.xz", "reaction_diffusion-h200-layouts.csv.xz"],
    "bilateral": ["bilateral-h200.csv.xz"],
    "forest": ["forest-h200.csv.xz"],
    "hash_grid": ["hash_grid-h200.csv.xz"],
    "lattice_boltzmann": ["lattice_boltzmann-h200.csv"],
    "lookup": ["lookup-h200.csv.xz"],
    "nbody": ["nbody-h200.csv.xz"],
    "recursive_filter": ["recursive_filter-h200.csv.xz"],
    "spmv": ["spmv-h200.csv.xz"],
    "stencil": ["stencil-h200.csv"],
}


@cache
def family_of(name: str) -> Family:
    """The family that ships under this name, or the example."""
    folder = ROOT / "examples" / name
    return load_family(str(folder) if folder.is_dir() else name)


def layout_defaults(family: Family) -> dict[str, str]:
    """Each layout policy's default, as a table has it."""
    return {policy.name: str(policy.default) for policy in family.space.policies if policy.layout}


def entries() -> str:
    """Winners that ship, and how many have a layout that is not the default."""
    lines = [
        "| family | entries | with a layout policy off its default | which, and in how many |",
        "|---|---|---|---|",
    ]
    for path in sorted((ROOT / "policies").glob("*/*.yaml")):
        family = family_of(path.parent.name)
        defaults = layout_defaults(family)
        moved: dict[str, int] = {}
        winners = list(_winners(path))
        for winner in winners:
            for name in defaults:
                if str(winner.get(name, defaults[name])) != defaults[name]:
                    moved[name] = moved.get(name, 0) + 1
        leaving = sum(
            any(str(winner.get(name, default)) != default for name, default in defaults.items())
            for winner in winners
        )
        which = ", ".join(f"`{name}` {count}" for name, count in sorted(moved.items(), key=lambda x: -x[1]))
        lines.append(f"| {family.name} | {len(winners)} | {leaving} | {which or 'none'} |")
    return "\n".join(lines)


def _winners(path: Path) -> Iterator[Mapping[str, Any]]:
    from autotune.policy import read_policy_file

    for entry in read_policy_file(path).entries.values():
        yield entry.configuration


def gain(family: Family, sweep: pd.DataFrame) -> tuple[float, float, int, int, str] | None:
    """The fastest time with all layouts at their defaults, and of all, in milliseconds; how many configurations were
    measured of each kind; the layouts of the fastest. None where the sweep has only one kind."""
    measured = sweep[sweep["state"] == "measured"]
    defaults = {name: value for name, value in layout_defaults(family).items() if name in measured}
    usual = pd.Series(True, index=measured.index)
    for name, default in defaults.items():
        usual &= _same(measured[name], default)
    if not defaults or not usual.any() or usual.all():
        return None
    fastest = measured.nsmallest(1, "time_ms")
    moved = [f"`{n}={fastest[n].iloc[0]}`" for n, v in defaults.items() if not _same(fastest[n], v).all()]
    return (
        float(measured["time_ms"][usual].min()),
        float(fastest["time_ms"].iloc[0]),
        int(usual.sum()),
        len(measured),
        ", ".join(moved) or "all at their defaults",
    )


def _same(column: pd.Series, default: str) -> pd.Series:
    """Where a column has the default, written as a number or as a word."""
    if pd.api.types.is_numeric_dtype(column):
        return column == float(default)
    return column.astype(str) == default


def gains(is_tuned: bool) -> str:
    """What layouts bring, by family and workload: where at least TUNED configurations with the default layouts were
    measured, or where fewer were."""
    lines = [
        "| family | workload | default layouts, ms | all layouts, ms | gain | configurations | fastest layouts |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, files in SWEEPS.items():
        family = family_of(name)
        for file in files:
            for workload, sweep in queries.table(file).groupby("workload", sort=False):
                figures = gain(family, sweep)
                if figures is None or (figures[2] >= TUNED) is not is_tuned:
                    continue
                usual, best, usual_count, count, moved = figures
                lines.append(
                    f"| {name} | {workload} | {usual:.4g} | {best:.4g} | {usual / best:.2f} x "
                    f"| {usual_count:,} of {count:,} | {moved} |"
                )
    return "\n".join(lines)


def inputs() -> str:
    """What layouts bring over a family's range of inputs: of those where at least TUNED configurations with the default
    layouts were measured."""
    lines = [
        "| family | inputs | gain, median | largest | inputs with a gain above 2 % | default layouts are the fastest |",
        "|---|---|---|---|---|---|",
    ]
    frames = [queries.table(f"selection-{kind}-h200.csv.xz") for kind in ("taught", "asked")]
    for name, swept in pd.concat(frames).groupby("family", sort=False):
        defaults = layout_defaults(family_of(str(name)))
        times = swept[["input", "time_ms"]].assign(usual=_keeps(swept["configuration"], defaults))
        found = [
            each["time_ms"][each["usual"]].min() / each["time_ms"].min()
            for _, each in times.groupby("input")
            if each["usual"].sum() >= TUNED and not each["usual"].all()
        ]
        if found:
            gained = pd.Series(found)
            lines.append(
                f"| {name} | {len(found)} | {gained.median():.2f} x | {gained.max():.2f} x "
                f"| {int((gained > 1.02).sum())} | {int((gained == 1).sum())} |"
            )
    return "\n".join(lines)


def _keeps(configurations: pd.Series, defaults: Mapping[str, str]) -> pd.Series:
    """Which of these texts have no layout but the default ones."""
    texts = "," + configurations + ","
    kept = pd.Series(True, index=texts.index)
    for name, default in defaults.items():
        kept &= texts.str.contains(f",{name}={default},", regex=False) | ~texts.str.contains(
            f",{name}=", regex=False
        )
    return kept


def tables() -> dict[str, str]:
    """What docs/results/where-layout-matters.md has (pages.py)."""
    return {"entries": entries(), "inputs": inputs(), "tuned": gains(True), "untuned": gains(False)}


def main(words: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0]).parse_args(words)
    print("\n\n".join(tables().values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
