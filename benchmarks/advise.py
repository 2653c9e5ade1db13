"""What `autotune advise` suggests, held against recorded sweeps and against public kernels, with no GPU.

    python benchmarks/advise.py spaces ./examples/lookup=benchmarks/results/lookup-h200.csv.xz \
        allpairs=benchmarks/results/allpairs-h200.csv.xz --out benchmarks/results/advise-spaces.csv
    python benchmarks/advise.py kernels FOLDER --keep MADE --out benchmarks/results/advise-kernels.csv
    python benchmarks/advise.py time MADE --seconds 60 --out benchmarks/results/advise-kernels-times.csv

``spaces`` takes families with the tables of whole sweeps of them. The advice is made from control's traces and those of
each other layout, on the table's inputs; the times are the table's. Which layout matters is measured twice: by how much
slower than its best single change control is, policy by policy (``matters``), and by how much the winner of the whole
sweep loses with one policy back at its default (``matters_at_best``). A suggestion agrees where it lays out an array
that the policy does. Regrets are of times: over the best that other layouts of control reach, with the other policies
that these need (``regret_of_layouts``), and over the best of all (``regret``). ``control_*`` are those of doing
nothing. With ``--workloads`` the rows that ``--out`` has of other inputs stay.

``kernels`` takes checkouts of the repositories in public_kernels.csv, each under its name, and kernels from there or
from ``--list``. What is advised there is applied in the family folder that the command writes, which is loaded again
and traced on other sizes and other random inputs: does it lower the sectors there, too? ``--keep`` names a folder in
which those stay. ``time`` takes that, and times on a GPU the kernel as it was, control and the first suggestion, in a
sweep of two configurations for each kernel, on inputs as large as ``--bytes`` allows. No kernel begins later than
``--seconds`` after the first.
"""

import argparse
import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness import python_path
from public_kernels import LIST
from result_files import RESULTS, read_rows, write_rows

import autotune
from autotune.advise import (
    Advice,
    LayoutChange,
    find_arrays,
    find_changes,
    make_advice,
    trace_configurations,
)
from autotune.declaration import Configuration, Family, Inputs, load_family, load_workload, prepare
from autotune.errors import AutotuneError, UnknownName
from autotune.files import data_root
from autotune.ranking import find_clang
from autotune.record import Study, read_results

TIMES = RESULTS / "advise-kernels-times.csv"
PROVED = RESULTS / "public-kernels-cpu.csv"
MATTERS = 0.03  # of the time: less is no effect

# -- recorded spaces --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpaceRow:
    """One input of a family; see the module. Names of policies with their values; empty where nothing matters."""

    family: str
    workload: str
    configurations: int
    layout_policies: int
    named: str
    arrays: str
    estimate: float
    measured: float
    matters: str
    matters_arrays: str
    gain: float
    agrees: bool
    matters_at_best: str
    gain_at_best: float
    agrees_at_best: bool
    advised: str
    regret_of_layouts: float
    control_regret_of_layouts: float
    regret: float
    control_regret: float
    traced_with: str
    seconds: float


def times_of(family: Family, study: Study) -> dict[Configuration, float]:
    """The recorded times, by configurations as the family declares them today: without those that have a value that it
    has no more, and of those that differ in a policy alone that it has no more, the best."""
    found: dict[Configuration, float] = {}
    known, control = {policy.name for policy in family.space.policies}, family.space.control
    for trial in study.trials:
        if trial.measurement:
            try:
                told = {
                    n: family.space.policy(n).value(v) for n, v in trial.configuration.items() if n in known
                }
            except UnknownName:
                continue
            one = Configuration({**control, **told})
            found[one] = min(trial.time_ms, found.get(one, math.inf))
    return found


def all_changes(family: Family, inputs: Inputs) -> list[LayoutChange]:
    """Those of the advice, and memories that it does not tell apart."""
    found, control = find_changes(family, inputs), family.space.control
    changes = list(found.traced)
    for policy, value in (name.split("=", 1) for name in found.left_out):
        one = family.space.policy(policy)
        configuration = Configuration({**control, policy: one.value(value)})
        changes.append(LayoutChange(one, one.value(value), configuration, find_arrays(family, one)))
    return changes


def of_policies(
    changes: Sequence[LayoutChange], times: Mapping[Configuration, float]
) -> dict[str, LayoutChange]:
    """Of each layout policy the change whose recorded time is best; of those alone that were timed."""
    best: dict[str, LayoutChange] = {}
    for one in (one for one in changes if one.configuration in times):
        name = one.policy.name
        if name not in best or times[one.configuration] < times[best[name].configuration]:
            best[name] = one
    return best


def at_best(family: Family, times: Mapping[Configuration, float]) -> tuple[str, float]:
    """The layout policy that the winner loses most without, alone back at its default, and how much slower it is."""
    winner = min(times, key=lambda one: times[one])
    losses = {}
    for policy in (policy for policy in family.space.policies if policy.layout):
        back = Configuration({**winner, policy.name: policy.default})
        if back != winner and back in times:
            losses[policy.name] = times[back] / times[winner] - 1
    name = max(losses, key=lambda one: losses[one], default="")
    return (name, losses[name]) if name and losses[name] > MATTERS else ("", 0.0)


def space_row(family: Family, name: str, study: Study, data: Path) -> SpaceRow:
    begun = time.perf_counter()
    advice = make_advice(family, study.workload, data)
    seconds = time.perf_counter() - begun
    times, control = times_of(family, study), family.space.control
    inputs = prepare(family, load_workload(family, study.workload), data)
    changes = all_changes(family, inputs)
    best = of_policies(changes, times)
    gains = {name: times[control] / times[one.configuration] - 1 for name, one in best.items()}
    most = max(gains, key=lambda one: gains[one], default="")
    matters = best[most] if most and gains[most] > MATTERS else None
    single = next((one for one in advice.suggestions if len(one.changes) == 1 and one.helps), None)
    advised = next((one for one in advice.advised if one.costs.configuration in times), None)
    advised_ms = times[advised.costs.configuration] if advised else times[control]
    reached = [times[control], *(times[one.configuration] for one in best.values())]
    reached += [ms for one, ms in times.items() if is_layout_alone(family, one, changes)]
    at_winner, loss = at_best(family, times)
    arrays = {*find_arrays(family, family.space.policy(at_winner))} if at_winner else set()
    return SpaceRow(
        name,
        study.workload,
        len(times),
        len({one.policy.name for one in changes}),
        single.name if single else "",
        " ".join(advice.arrays),
        single.ratio if single else 1.0,
        times.get(single.costs.configuration, math.nan) / times[control] if single else 1.0,
        matters.name if matters else "",
        " ".join(matters.arrays) if matters else "",
        gains.get(most, 0.0),
        agrees(advice, set(matters.arrays) if matters else set()),
        at_winner,
        loss,
        agrees(advice, arrays),
        advised.name if advised else "",
        advised_ms / min(reached) - 1,
        times[control] / min(reached) - 1,
        advised_ms / min(times.values()) - 1,
        times[control] / min(times.values()) - 1,
        find_clang() or "g++",
        seconds,
    )


def agrees(advice: Advice, arrays: set[str]) -> bool:
    """Whether the advice names one of those arrays, or nothing where nothing matters."""
    return bool({*advice.arrays} & arrays) if arrays else not advice.arrays


def is_layout_alone(family: Family, one: Configuration, changes: Sequence[LayoutChange]) -> bool:
    """Whether it differs from control in layouts, and in others only as one of the changes does."""
    control = family.space.control
    plain = {name: value for name, value in one.items() if not family.space.policy(name).layout}
    allowed = [{n: each.configuration[n] for n in plain} for each in changes] + [
        {n: control[n] for n in plain}
    ]
    return plain in allowed


def spaces(given: argparse.Namespace) -> list[dict[str, Any]]:
    only = {*filter(None, given.workloads.split(","))}
    rows: list[dict[str, Any]] = [*read_rows(given.out)] if only and given.out.exists() else []
    for pair in given.sweeps:
        folder, _, path = pair.partition("=")
        family = load_family(folder)
        for study in read_results([Path(path)]):
            if only and study.workload not in only:
                continue
            try:
                row = space_row(family, Path(folder).name, study, data_root(given.data))
            except AutotuneError as problem:
                print(f"{folder} {study.workload} is left out: {problem}", flush=True)
                continue
            print(row, flush=True)
            rows = [r for r in rows if (r["family"], r["workload"]) != (row.family, row.workload)]
            rows.append(asdict(row))
            write_rows(given.out, rows)
    for name in ("agrees", "agrees_at_best"):
        agreed = sum(str(row[name]) == "True" for row in rows)
        print(f"{name}: {agreed} of {len(rows)}")
    return rows


# -- public kernels ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelRow:
    """One kernel, ``proved`` to do as its family does on the cpu device: the array with most sectors above the least
    that could hold what is asked for, and how many times as many; what is advised; what that saves of the moved sectors
    and of the passes of the first cache on the inputs it was chosen on, and on others (``again_*``)."""

    repository: str
    file: str
    kernel: str
    result: str
    proved: bool = False
    array: str = ""
    over_least: float = math.nan
    advised: str = ""
    arrays: str = ""
    saves_moved: float = math.nan
    saves_passes: float = math.nan
    again_moved: float = math.nan
    again_passes: float = math.nan
    holds: str = ""
    traced_with: str = find_clang() or "g++"
    seconds: float = math.nan
    reason: str = ""


def kernel_row(folder: Path, row: Mapping[str, str], seconds: float, keep: Path | None) -> KernelRow:
    source, begun = folder / row["repository"] / row["file"], time.perf_counter()
    head = (row["repository"], row["file"], row["kernel"])
    with tempfile.TemporaryDirectory() as made:
        out = Path(made, re.sub(r"\W.*", "", row["kernel"]))
        command = [sys.executable, "-m", "autotune", "advise", str(source), "--kernel", row["kernel"], "-o", str(out),
                   "--json", "-I", str(source.parent), *shlex.split(row["options"])]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, cwd=made, check=False,
                env={**os.environ, "PYTHONPATH": python_path()},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return KernelRow(*head, "refused", seconds=seconds, reason=f"it took more than {seconds:.0f} s")
        took = time.perf_counter() - begun
        if done.returncode:
            reason = " ".join(done.stderr.replace(made, "").replace(str(folder), "").split())[-300:]
            return KernelRow(*head, "refused", seconds=took, reason=reason)
        told = json.loads(done.stdout)
        proved = any(line.startswith("proved") for line in told["how_sure"])
        found = replace(KernelRow(*head, "nothing to gain", proved), seconds=took, **worst(told))
        first = next((one for one in told["suggestions"] if one["helps"]), None)
        if first is None:
            return found
        figures = {"saves_moved": first["saves_moved"], "saves_passes": first["saves_passes"]}
        figures |= {"advised": said(first["set"]), "arrays": " ".join(first["arrays"])}
        if keep:
            shutil.copytree(out, keep / out.name, dirs_exist_ok=True)
        return replace(found, result="advised", **figures, **again(out, first["set"]))


def said(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def worst(told: Mapping[str, Any]) -> dict[str, Any]:
    """The array with most sectors above the least."""
    arrays = [array for kernel in told["kernels"] for array in kernel["arrays"] if array["sectors"]]
    if not arrays:
        return {}
    most = max(arrays, key=lambda one: one["sectors"] - one["ideal"])
    return {"array": most["name"], "over_least": most["sectors"] / most["ideal"]}


def again(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the suggestion saves on other sizes and other random inputs than those it was chosen on."""
    family = load_family(str(folder))
    control = family.space.control
    configuration = Configuration({**control, **values})
    workload = load_workload(family, chosen_workload(folder))
    other = {n: v + v // 2 if n != "seed" and v >= 64 else v for n, v in workload.parameters.items()} | {
        "seed": 7
    }
    content = {"schema": 1, "workload": "again", "family": family.name, "parameters": other}
    if workload.scalars:
        content["scalars"] = {n: other.get(n, v) for n, v in workload.scalars.items()}
    (folder / "workloads" / "again.yaml").write_text(json.dumps(content), encoding="utf-8")
    skipped = frozenset(n for n in family.kernels if n.startswith("begin_"))
    try:
        costs = trace_configurations(family, "again", data_root(None), (control, configuration), skipped)
        before, after = costs[control], costs[configuration]
    except (AutotuneError, KeyError) as problem:
        return {"holds": f"not traced: {problem}"[:200]}
    saved = {n: 1 - after.add_up(n) / max(1.0, before.add_up(n)) for n in ("missed", "wavefronts")}
    holds = "yes" if max(saved.values()) > MATTERS and after.estimate < before.estimate else "no"
    return {"again_moved": saved["missed"], "again_passes": saved["wavefronts"], "holds": holds}


def chosen_workload(folder: Path) -> Path:
    """The one that the advice was made on."""
    other = folder / "workloads" / "advised.yaml"
    return other if other.exists() else folder / "workloads" / "adopted.yaml"


def kernels(given: argparse.Namespace) -> list[dict[str, Any]]:
    text, rows = given.list.read_text(encoding="utf-8"), []
    for row in listed(text, given.only):
        found = kernel_row(given.folder, row, given.seconds, given.keep)
        print(f"{found.repository} {found.kernel}: {found.result} {found.advised} {found.reason}", flush=True)
        rows.append(asdict(found))
        write_rows(given.out, rows)
        if sum(row["result"] != "refused" for row in rows) == given.most:
            break
    advised = [row for row in rows if row["result"] == "advised"]
    held = sum(row["holds"] == "yes" for row in advised)
    print(
        f"{len(rows)} kernels, {len(advised)} with advice; on other inputs {held} of these save sectors, too"
    )
    return rows


def listed(text: str, only: str) -> list[dict[str, str]]:
    """Those of the list: first what public_kernels.py proved, the quickest first."""
    proved = [row for row in read_rows(PROVED) if row["result"] == "proved"]
    seconds = {(row["file"], row["kernel"]): float(row["seconds"]) for row in proved}
    rows = [row for row in csv.DictReader(io.StringIO(text)) if only in f"{row['file']} {row['kernel']}"]
    return sorted(rows, key=lambda row: seconds.get((row["file"], row["kernel"]), math.inf))


# -- their times ------------------------------------------------------------------------------------------

LEAST, MOST_DOUBLED = 16, 6  # the smallest size that is doubled, and how many times


@dataclass(frozen=True)
class TimeRow:
    """One kernel of a folder of ``--keep`` on one device: milliseconds of the kernel as it was, of control and of the
    first suggestion, and control's time over that of the suggestion with its interval."""

    kernel: str
    device: str
    sizes: str
    advised: str
    plain_ms: float = math.nan
    control_ms: float = math.nan
    advised_ms: float = math.nan
    gain: float = math.nan
    gain_low: float = math.nan
    gain_high: float = math.nan
    seconds: float = math.nan
    reason: str = ""


def enlarge(family: Family, most: float, path: Path) -> Path:
    """A workload as the adopted one, with its sizes doubled as often as ``most`` bytes of inputs allow."""
    once, twice = (count_bytes(family, write_sizes(family, factor, path)) for factor in (1, 2))
    doublings = math.log(most / once) / math.log(twice / once) if twice > once else 0
    factor = 2 ** max(0, min(MOST_DOUBLED, int(doublings)))
    while factor > 1 and count_bytes(family, write_sizes(family, factor, path)) > most:
        factor //= 2  # not all arrays grow by as much
    return write_sizes(family, factor, path)


def write_sizes(family: Family, factor: int, path: Path) -> Path:
    adopted = load_workload(family, "adopted")
    sizes = {n: factor * v if n != "seed" and v >= LEAST else v for n, v in adopted.parameters.items()}
    content = {"schema": 1, "workload": "timed", "family": family.name, "parameters": sizes}
    if adopted.scalars:
        content["scalars"] = {name: sizes.get(name, value) for name, value in adopted.scalars.items()}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def count_bytes(family: Family, workload: Path) -> int:
    inputs = prepare(family, load_workload(family, workload), data_root(None))
    return sum(array.nbytes for array in inputs.arrays.values())


def time_row(folder: Path, device: str, most: float) -> TimeRow:
    """Every result is verified before it is timed."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        family = load_family(str(folder))
        workload = enlarge(family, most, Path(made, "timed.yaml"))
        advised = family.space.configurations("advised")[0].changes(family.space.control)
        sizes = json.loads(workload.read_text(encoding="utf-8"))["parameters"]
        row = TimeRow(folder.name, device, " ".join(f"{n}={v}" for n, v in sizes.items()), advised)
        try:
            found = autotune.sweep(
                str(folder),
                preset="advised",
                workload=workload,
                device=device,
                out=Path(made, "swept"),
                progress=False,
            )
        except AutotuneError as problem:
            return replace(
                row, seconds=time.perf_counter() - begun, reason=" ".join(str(problem).split())[-300:]
            )
        about, best = found.record.about, found.best
        return replace(
            row, device=about.device_name, plain_ms=about.baseline.median_ms if about.baseline else math.nan,
            control_ms=found.record.times.get(family.space.control, math.nan), advised_ms=best.ms, gain=best.speedup,
            gain_low=best.interval[0], gain_high=best.interval[1], seconds=time.perf_counter() - begun,
        )  # fmt: skip


def times(given: argparse.Namespace) -> list[dict[str, Any]]:
    rows, begun = [], time.perf_counter()
    for folder in sorted(path.parent for path in given.folder.glob("*/family.yaml")):
        if "advised" not in load_family(str(folder)).space.presets:
            continue
        if time.perf_counter() - begun > given.seconds:
            print(f"{folder.name} is left out: {given.seconds:g} s are over", flush=True)
            continue
        row = time_row(folder, given.device, given.bytes)
        rows.append(asdict(row))
        write_rows(given.out, rows)
        print(
            f"{row.kernel:28} plain {row.plain_ms:.4g} ms, control {row.control_ms:.4g} ms, {row.advised} "
            f"{row.advised_ms:.4g} ms: {row.gain:.3g} x ({row.gain_low:.3g} to {row.gain_high:.3g}), in "
            f"{row.seconds:.1f} s {row.reason}",
            flush=True,
        )
    faster = sum(row["gain_low"] > 1 for row in rows)
    print(f"{len(rows)} kernels in {time.perf_counter() - begun:.0f} s: with the advice {faster} are faster")
    return rows


# -- the page ---------------------------------------------------------------------------------------------


def tables() -> dict[str, str]:
    """What docs/results/advise.md has (pages.py)."""
    spaces_head = (
        "| space | named | estimate | measured | matters for control | agrees | matters for the winner | agrees "
        "| regret of layouts, and of control |\n|---|---|---|---|---|---|---|---|---|"
    )
    kernels_head = (
        "| kernel | most above the least | advised | saves of moved sectors, of passes | on other inputs | holds |"
        "\n|---|---|---|---|---|---|"
    )
    spaces_rows = [
        f"| {row['family']} {row['workload']} | {row['named'] or 'nothing'} | {float(row['estimate']):.2f} "
        f"| {float(row['measured']):.2f} | {of(row['matters'], row['gain'])} | {yes(row['agrees'])} "
        f"| {of(row['matters_at_best'], row['gain_at_best'])} | {yes(row['agrees_at_best'])} "
        f"| {float(row['regret_of_layouts']):.1%}, {float(row['control_regret_of_layouts']):.1%} |"
        for row in read_rows(RESULTS / "advise-spaces.csv")
    ]
    kernels_rows = [
        f"| {row['repository']}: {row['kernel']} | {row['array']}, {float(row['over_least']):.1f} times "
        f"| {row['advised'] or 'nothing'} | {saved(row, 'saves')} | {saved(row, 'again')} | {row['holds']} |"
        for row in read_rows(RESULTS / "advise-kernels.csv")
        if row["result"] != "refused"
    ]
    tables = {
        "spaces": "\n".join([spaces_head, *spaces_rows]),
        "kernels": "\n".join([kernels_head, *kernels_rows]),
    }
    if TIMES.exists():
        times_head = "| kernel | sizes | as it was | control | advised | faster |\n|---|---|---|---|---|---|"
        times_rows = [
            f"| {row['kernel']} | {row['sizes']} | {ms(row['plain_ms'])} | {ms(row['control_ms'])} "
            f"| {ms(row['advised_ms'])} | {float(row['gain']):.2f} x |"
            for row in read_rows(TIMES)
        ]
        tables["times"] = "\n".join([times_head, *times_rows])
    return tables


def ms(text: str) -> str:
    return f"{float(text):.4g} ms"


def of(name: str, gain: str) -> str:
    return f"{name} ({float(gain):.0%})" if name else "nothing"


def yes(text: str) -> str:
    return "yes" if text == "True" else "no"


def saved(row: Mapping[str, str], when: str) -> str:
    return f"{float(row[f'{when}_moved']):.0%}, {float(row[f'{when}_passes']):.0%}" if row["advised"] else ""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("spaces")
    one.add_argument("sweeps", nargs="+", metavar="FAMILY=CSV")
    one.add_argument("--workloads", default="", help="names, joined by commas; default: all in the tables")
    one.add_argument("--data", type=Path, help="where workloads' files are")
    one.set_defaults(run=spaces)
    other = parts.add_parser("kernels")
    other.add_argument("folder", type=Path)
    other.add_argument("--list", type=Path, default=LIST, help="a CSV of kernels")
    other.add_argument("--only", default="", help="kernels whose file or name this text is in")
    other.add_argument("--most", type=int, default=20, help="kernels that adopt can read")
    other.add_argument("--seconds", type=float, default=600)
    other.add_argument("--keep", type=Path, help="where the folders that are made stay")
    other.set_defaults(run=kernels)
    last = parts.add_parser("time")
    last.add_argument("folder", type=Path, help="that of --keep")
    last.add_argument("--device", default="cuda")
    last.add_argument("--bytes", type=float, default=2**26, help="of the inputs, at most; default: 64 MiB")
    last.add_argument("--seconds", type=float, default=60, help="after which no kernel begins")
    last.set_defaults(run=times)
    for each in (one, other, last):
        each.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    given.run(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
