"""The MUMmerGPU 2.0 paper's policy analysis (sections 4.1 to 4.7), of our rows and of its authors' own.

    python benchmarks/mummergpu_policy_analysis.py [--h200 CSV] [--paper FOLDER]

Prints the tables as Markdown; pages.py puts them into the page. Needs no GPU. ``--normalise FOLDER`` makes the
authors' rows again from their own files (*.allstats and tests.regs.s, from SOURCE).

Configurations have the authors' letters: each policy that is on gives one, in the order QRTmrtn; none is control.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from result_files import RESULTS, read_frame, write_text

from autotune.report.policy_effects import pairs, settings

H200 = RESULTS / "mummergpu-h200.csv.xz"
PAPER = RESULTS / "mummergpu-8800gtx"
SOURCE = "github.com/yuhc/gpu-rodinia cuda/mummergpu/experiments"

LETTERS = list("QRTmrtn")
DEFAULT, VERSION_1 = "Tn", "RTrtn"  # MUMmerGPU 2.0 and 1.0 as they were shipped
PRESETS = {"control": "control", DEFAULT: "mummergpu-2.0", VERSION_1: "mummergpu-1.0"}  # as in family.yaml
MEASURES = ("match", "print", "total")
BLOCK_SIZE = 256  # the paper's
WORKLOADS = ("hsill", "ssuis", "lmono", "cbrigg")  # the paper's, in the order of the tables
PUBLISHED = ("hsill", "lmono", "cbrigg")  # those of them whose original rows are public


@dataclass(frozen=True)
class Policy:
    """One of the paper's seven: ``off`` and ``on`` are the values of ``column`` in results.csv."""

    letter: str
    section: str
    column: str
    off: str
    on: str


POLICIES = (
    Policy("r", "4.1", "reference_dims", "1d", "2d"),
    Policy("Q", "4.2", "query_memory", "global", "texture"),
    Policy("R", "4.3", "reference_memory", "global", "texture"),
    Policy("T", "4.4", "tree_memory", "global", "texture"),
    Policy("t", "4.5", "tree_dims", "1d", "2d"),
    Policy("n", "4.6", "tree_order", "construction", "reordered"),
    Policy("m", "4.7", "tree_grouping", "split", "merged"),
)

# Section, letter, measure and what the paper says of HSILL; its total is all but reading and writing files.
SENTENCES = (
    ("4.1", "r", "without_disk_ms", "+0.4 on average"),
    ("4.2", "Q", "print", "+6 on average"),
    ("4.2", "Q", "match", "+3 on average"),
    ("4.3", "R", "match", "-12 to +35"),
    ("4.3", "R", "print", "essentially identical"),
    ("4.4", "T", "print", "-8 on average"),
    ("4.4", "T", "match", "-11 on average"),
    ("4.5", "t", "without_disk_ms", "+15 on average"),
    ("4.5", "t", "print", "up to +52"),
    ("4.6", "n", "without_disk_ms", "-5 on average, -11 to -1"),
    ("4.7", "m", "print", "+6 on average"),
)

ORIGINALS = {
    "hsill": "h_sapiens.two_pages.fna.half_million_reads.fna.14",
    "human-1m": "h_sapiens.two_pages.fna.million_reads.fna.15",
    "lmono": "lmonocytogenes.cleanref.fna.million_reads.fna.20",
    "cbrigg": "cbriggsae.cleanref.fna.half_million_reads.fna.100",
}


# (device, workload) -> its 128 rows of results.csv, and with them a column of 0 or 1 for each letter, ``name``, and
# in ms ``match``, ``print`` and ``total``.
Rows = dict[tuple[str, str], pd.DataFrame]


# -- reading ----------------------------------------------------------------------------------------------


def name_of(switches: Iterable[int]) -> str:
    """Seven 0s and 1s in the order of LETTERS -> the configuration's name."""
    return "".join(letter for letter, on in zip(LETTERS, switches, strict=True) if on) or "control"


def kernels_of(rows: pd.DataFrame) -> list[str]:
    """The kernels that have a time in every row."""
    return [str(c)[7:-3] for c in rows if re.fullmatch("kernel_.*_ms", str(c)) and rows[c].notna().all()]


def with_times(rows: pd.DataFrame) -> pd.DataFrame:
    """One workload's rows with ``name``, ``match``, ``print`` and ``total``."""
    printing = [f"kernel_{name}_ms" for name in kernels_of(rows) if name.startswith(("print", "scan"))]
    rows = rows.assign(match=rows["kernel_match_ms"], print=rows[printing].sum(axis=1))
    names = [name_of(on) for on in rows[LETTERS].to_numpy()]
    return rows.assign(total=rows["median_ms"], name=names)


def read(device: str, paths: Sequence[Path]) -> Rows:
    """Files of the form of results.csv -> the measured rows of the paper's 128 configurations.

    A workload that lacks some is left out, and said so on stderr. Raises ValueError where a configuration occurs
    twice or no workload has them all.
    """
    files = ", ".join(path.name for path in paths)
    if not paths:
        raise ValueError(f"no CSV for {device}; make the authors' with --normalise")
    rows = pd.concat([read_frame(path).assign(file=path.name) for path in paths])
    rows = rows[(rows["state"] == "measured") & (rows["block_size"] == BLOCK_SIZE)]
    for policy in POLICIES:
        rows = rows[rows[policy.column].isin([policy.off, policy.on])]
        rows = rows.assign(**{policy.letter: (rows[policy.column] == policy.on).astype(int)})
    if rows.duplicated(["workload", *LETTERS]).any():
        raise ValueError(f"{files}: a configuration occurs twice; keep one device and study a workload")
    by_workload = {str(name): of for name, of in rows.groupby("workload", sort=False)}
    counts = {name: len(by_workload[name]) for name in (*WORKLOADS, *by_workload) if name in by_workload}
    complete = [name for name, count in counts.items() if count == 2 ** len(LETTERS)]
    if not complete:
        raise ValueError(f"{files}: no workload has all 128 configurations, only {counts}; sweep the rest")
    for name in [name for name in counts if name not in complete]:
        print(f"{files}: {name} left out, {counts[name]} of 128 configurations", file=sys.stderr)
    return {(device, name): with_times(by_workload[name]) for name in complete}


def occupancy_8800(registers: int) -> float:
    """The paper's rule (1.1) for blocks of 256: 8,192 registers and 768 threads to a multiprocessor."""
    return min(768 // BLOCK_SIZE, 8192 // (BLOCK_SIZE * registers)) * BLOCK_SIZE / 768


def normalise(originals: Path, folder: Path) -> None:
    """The authors' *.allstats and tests.regs.s -> a CSV in the form of results.csv for each workload.

    Their print kernel's time has its copies over PCIe in it. ``median_ms`` is match and print, of one run;
    ``without_disk_ms`` is the paper's total, with the host's work on the tree and without reading and writing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    registers = pd.read_csv(originals / "tests.regs.s", names=["name", "match", "print"])
    registers = registers.replace("CONTROL", "control").set_index("name")
    for workload, name in ORIGINALS.items():
        theirs = pd.read_csv(originals / f"{name}.allstats")
        names = [name_of(on) for on in theirs[LETTERS].to_numpy()]
        made: dict[str, Any] = {"family": "mummergpu", "workload": workload, "device": "geforce-8800-gtx"}
        made |= {"configuration": names, "preset": [PRESETS.get(name) for name in names]}
        made |= {p.column: theirs[p.letter].map({0: p.off, 1: p.on}) for p in POLICIES}
        made |= {"block_size": BLOCK_SIZE, "state": "measured", "samples": 1, "spread_relative": None}
        made["median_ms"] = (theirs["Match kernel"] + theirs["Print Kernel"]).round(6)
        disk = theirs[["Queries from disk", "Ref from disk", "Output to disk"]].sum(axis=1)
        made["without_disk_ms"] = (theirs["Total"] - disk).round(6)
        for kernel, column in {"match": "Match kernel", "print": "Print Kernel"}.items():
            used = registers.loc[names, kernel]
            made |= {f"kernel_{kernel}_ms": theirs[column], f"registers_{kernel}": used.to_numpy()}
            made[f"occupancy_{kernel}"] = [round(occupancy_8800(count), 6) for count in used]
        made |= {"device_name": "GeForce 8800 GTX", "compiler": "CUDA 1.1"}
        made["source"] = f"{SOURCE}/{name}.allstats"
        table = pd.DataFrame(made).sort_values("configuration").to_csv(index=False)
        write_text(folder / f"{workload}.csv", table)


# -- figures ----------------------------------------------------------------------------------------------


def effect(rows: pd.DataFrame, letter: str, measure: str) -> pd.Series:
    """Percent by which turning one policy on changes ``measure``, for each setting of the other six."""
    off, on = pairs(settings(rows[LETTERS], letter), rows[letter], 0, 1)
    times = rows[measure].to_numpy(float)
    return pd.Series(100 * (times[on] / times[off] - 1))


def spearman(a: pd.Series, b: pd.Series) -> float | None:
    """Rank correlation, ties at their mean rank; None where one side is constant."""
    return None if a.nunique() < 2 or b.nunique() < 2 else float(a.rank().corr(b.rank()))


def regrets(times: dict[str, pd.Series]) -> pd.DataFrame:
    """Times by configuration for each workload -> each over the workload's best, a column for a workload."""
    return pd.DataFrame({workload: of / of.min() for workload, of in times.items()})


def neighbours(rows: pd.DataFrame, kernel: str) -> tuple[pd.Series, pd.Series]:
    """Percent between configurations one policy apart: (to the lower occupancy, absolute where it is the same)."""
    lower, same = [], []
    for letter in LETTERS:
        change, gain = (effect(rows, letter, c) for c in (f"kernel_{kernel}_ms", f"occupancy_{kernel}"))
        lower += [change[gain < 0], 100 * (1 / (1 + change[gain > 0] / 100) - 1)]
        same.append(change[gain == 0].abs())
    return pd.concat(lower), pd.concat(same)


# -- tables -----------------------------------------------------------------------------------------------


def by_name(rows: pd.DataFrame, measure: str) -> pd.Series:
    """ms by configuration, in the order of names, so that ties fall alike everywhere."""
    return rows.set_index("name")[measure].sort_index()


# -- tables -----------------------------------------------------------------------------------------------


def table(header: str, rows: Iterable[Sequence[str]]) -> str:
    """``header`` has its cells between bars."""
    cells = [cell.strip() for cell in header.split("|")]
    return "\n".join(f"| {' | '.join(line)} |" for line in [cells, ["---"] * len(cells), *rows])


def labels(rows: Rows) -> dict[str, pd.DataFrame]:
    return {f"{device} {workload}": of for (device, workload), of in rows.items()}


def ranged(percents: pd.Series) -> str:
    return f"{percents.mean():+z.1f} [{percents.min():+z.0f}, {percents.max():+z.0f}]"


def correlation(value: float | None) -> str:
    return "constant" if value is None else f"{value:z.2f}"


def sources(rows: Rows) -> str:
    lines = []
    for label, of in labels(rows).items():
        spread = 100 * of["spread_relative"]
        noise = f"{spread.median():.1f} %, at most {spread.max():.1f} %" if spread.any() else "not known"
        samples = " to ".join(f"{n:.0f}" for n in sorted({of["samples"].min(), of["samples"].max()}))
        setup = of.iloc[0].reindex(["device_name", "driver", "compiler", "date"]).dropna()
        on = ", ".join(re.sub(r" --.*|T\d\d:.*", "", str(value)) for value in setup)
        lines.append([label, f"{len(of)}", samples, noise, on, f"`{of.iloc[0]['file']}`"])
    return table(" | configurations | samples of a time | median spread | on | file", lines)


def sentences(rows: Rows) -> str:
    def figures(device: str, letter: str, measure: str) -> str:
        if (device, "hsill") not in rows:
            return "not measured"
        of = rows[device, "hsill"]
        of = of if letter == "r" else of[of["r"] == 0]  # the paper drops the 2D reference after section 4.1
        return ranged(effect(of, letter, measure if measure in of else "total"))

    lines = []
    for section, letter, measure, said in SENTENCES:
        cells = [figures(device, letter, measure) for device in ("8800 GTX", "H200")]
        lines.append([section, f"`{letter}`", measure.replace("without_disk_ms", "total"), said, *cells])
    return table("section | policy | time | the paper says | its rows give | H200 hsill", lines)


def effects(rows: Rows, measure: str) -> str:
    lines = []
    for policy in POLICIES:
        cells = [ranged(effect(of, policy.letter, measure)) for of in rows.values()]
        lines.append([policy.section, f"`{policy.letter}` {policy.column}={policy.on}", *cells])
    return table(" | ".join(["section", "policy", *labels(rows)]), lines)


def layouts(rows: Rows, measure: str) -> str:
    lines = []
    for label, of in labels(rows).items():
        times = by_name(of, measure)
        best, worst, rank = str(times.idxmin()), str(times.idxmax()), times.rank(method="min")
        named = (worst, "control", DEFAULT, VERSION_1)
        last, control, two, one = (f"{times[name] / times[best]:.2f} x" for name in named)
        ms = f"{times[best]:,.0f}" if times[best] >= 100 else f"{times[best]:.4g}"
        place = f"{rank[DEFAULT]:.0f} of {len(times)}"
        lines.append([label, f"`{best}`", ms, control, two, place, one, f"`{worst}`", last])
    return table(f" | best | ms | control | `{DEFAULT}` | its rank | `{VERSION_1}` | worst | ", lines)


def correlations(rows: Rows, measure: str) -> str:
    times = {label: by_name(of, measure) for label, of in labels(rows).items()}
    lines = [[label, *(correlation(spearman(a, b)) for b in times.values())] for label, a in times.items()]
    return table(" | ".join(["", *times]), lines)


def minimax(rows: Rows) -> str:
    lines = []
    for device in dict.fromkeys(device for device, _ in rows):
        times = {workload: by_name(of, "total") for (owner, workload), of in rows.items() if owner == device}
        sets = [times]
        if set(PUBLISHED) < set(times):
            sets.append({workload: times[workload] for workload in PUBLISHED})
        for chosen in sets:
            regret = regrets(chosen)
            largest = regret.max(axis=1)
            best = str(largest.idxmin())
            each = ", ".join(f"{workload} {ratios[best]:.2f}" for workload, ratios in regret.items())
            largest_of = [f"{largest[name]:.2f} x" for name in (best, DEFAULT, VERSION_1, "control")]
            lines.append([device, f"`{best}`", each, *largest_of])
    header = f" | minimax | on each workload | its largest | `{DEFAULT}` | `{VERSION_1}` | control"
    return table(header, lines)


def occupancy(rows: Rows) -> str:
    lines = []
    for label, of in labels(rows).items():
        for kernel in kernels_of(of):
            registers, share = of[f"registers_{kernel}"], of[f"occupancy_{kernel}"]
            levels = " or ".join(f"{100 * level:.0f}" for level in sorted(set(share)))
            related = [correlation(spearman(of[f"kernel_{kernel}_ms"], by)) for by in (registers, share)]
            lower, same = neighbours(of, kernel)
            falls = f"{lower.mean():+z.1f} ({len(lower)})" if len(lower) else "no such pair"
            stays = f"{same.mean():.1f} ({len(same)})" if len(same) else "no such pair"
            span = f"{registers.min():.0f} to {registers.max():.0f}"
            lines.append([label, kernel, span, levels, *related, falls, stays])
    header = " | kernel | registers | occupancy, % | time ~ registers | time ~ occupancy"
    return table(f"{header} | falls: mean % (pairs) | stays: mean absolute % (pairs)", lines)


_ON_THE_PAGE = ("sources", "sentences", "effects-total", "layouts-total", "minimax")


def tables() -> dict[str, str]:
    """What docs/results/mummergpu-policy-analysis.md has (pages.py)."""
    made = all_tables(read("H200", [H200]) | read("8800 GTX", sorted(PAPER.glob("*.csv"))))
    return {name: made[name] for name in _ON_THE_PAGE}


def all_tables(rows: Rows) -> dict[str, str]:
    """Name -> Markdown."""
    made = {"sources": sources(rows), "sentences": sentences(rows)}
    for measure in MEASURES:
        made[f"effects-{measure}"] = effects(rows, measure)
        made[f"layouts-{measure}"] = layouts(rows, measure)
        made[f"correlation-{measure}"] = correlations(rows, measure)
    return made | {"minimax": minimax(rows), "occupancy": occupancy(rows)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--h200", type=Path, default=H200, help="our results.csv")
    parser.add_argument(
        "--paper", type=Path, default=PAPER, help="the folder of the authors' rows, a CSV each"
    )
    parser.add_argument("--normalise", type=Path, help="the folder of *.allstats to make --paper from, first")
    given = parser.parse_args(arguments)
    try:
        if given.normalise:
            normalise(given.normalise, given.paper)
        rows = read("H200", [given.h200]) | read("8800 GTX", sorted(given.paper.glob("*.csv")))
        print("\n\n".join(f"**{name}**\n\n{made}" for name, made in all_tables(rows).items()))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
