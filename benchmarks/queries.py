"""The functions that the queries of the pages call, besides pandas (pages.py): what a table of ``results`` says.

The first part reads any table; the others know what the columns of some tables mean.
"""

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pandas as pd
from result_files import RESULTS, read_frame

from autotune.declaration import yamlfile
from autotune.errors import PolicyFileError

ROOT = Path(__file__).parents[1]


@cache
def table(name: str) -> Any:
    """A table of ``results``; the ceilings of limits.json as a mapping."""
    if name.endswith(".json"):
        return json.loads((RESULTS / name).read_text(encoding="utf-8"))["ceilings"]
    return read_frame(RESULTS / name, low_memory=False)


def rows(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows that have these values; a list stands for any of its members."""
    for name, value in wanted.items():
        frame = frame[frame[name].isin(value if isinstance(value, list) else [value])]
    return frame


def having(frame: pd.DataFrame, *words: str) -> pd.DataFrame:
    """The rows whose column ``configuration`` has all of these ``name=value``."""
    for word in words:
        there = ("," + frame["configuration"] + ",").str.contains(f",{word},", regex=False)
        frame = frame[there]
    return frame


def one(frame: pd.DataFrame, **wanted: Any) -> Any:
    """The only row that has these values."""
    (found,) = rows(frame, **wanted).to_dict("records")
    return found


def value(frame: pd.DataFrame, column: str, **wanted: Any) -> float:
    """``column`` of the only row that has these values."""
    return float(one(frame, **wanted)[column])


def count(frame: pd.DataFrame, **wanted: Any) -> int:
    return len(rows(frame, **wanted))


def shortest(frame: pd.DataFrame, **wanted: Any) -> float:
    """The shortest ``time_ms`` of the measured rows that have these values."""
    return float(rows(frame, **wanted)["time_ms"].min())


@cache
def entries(family: str) -> dict[str, Any]:
    """The entries of the family's policy file that ships for an H200, by name."""
    file = ROOT / "policies" / family / "nvidia-h200.yaml"
    found: dict[str, Any] = yamlfile.read(file, PolicyFileError)["entries"]
    return found


def winner(frame: pd.DataFrame, family: str, workload: str) -> float:
    """The time of the configuration that the shipped policy file has: of the tie set, not always the shortest. A policy
    that the family had when the table was made, and has no more, counts with its best value."""
    configuration = entries(family)[workload]["configuration"]
    there = {name: value for name, value in configuration.items() if name in frame}
    return shortest(frame, workload=workload, **there)


# -- tuners, searches and rules of selection ---------------------------------------------------------------

KERNEL_TUNER, RACED, SAMPLED = (
    "Kernel Tuner 1.5.0 nvcuda", "autotune, 7 samples, race 1.005", "autotune, 7 samples"
)  # fmt: skip


def hub(frame: pd.DataFrame, tuner: str) -> list[float]:
    """Configurations, seconds of Kernel Tuner and of ``tuner``, their ratio, and that of the tuning alone."""
    theirs, own = one(frame, tuner=KERNEL_TUNER), one(frame, tuner=tuner)
    ratios = [theirs[name] / own[name] for name in ("wall_s", "sweep_s")]
    return [theirs["configurations"], theirs["wall_s"], own["wall_s"], *ratios]


def hub_bests(times: pd.DataFrame, tuner: str) -> tuple[float, float]:
    """Kernel Tuner's own best and its figure for that of ``tuner``, of the configurations that both have timed."""
    both = times.dropna().set_index("configuration")
    theirs = both[f"{KERNEL_TUNER} ms"]
    return theirs.min(), theirs.iloc[int(both[f"{tuner} ms"].argmin())]


def t1_result(frame: pd.DataFrame, kernel: str, file: str) -> list[float]:
    """Seconds that a T1 file of the hub took, and milliseconds of its winner."""
    found = rows(frame, kernel=kernel, file=file).iloc[0]
    number, unit = re.findall(r"winner ([\d.]+) (ms|µs)", found["result"])[0]
    return [found["seconds"], float(number) * (1 if unit == "ms" else 1e-3)]


def slower(frame: pd.DataFrame, backend: str) -> list[float]:
    """Microseconds that Kernel Tuner's time is longer, and how many times as long the shortest and longest quarters."""
    theirs, ours = frame[f"Kernel Tuner 1.5.0 {backend} ms"], frame["autotune, full protocol ms"]
    rank, ratio = ours.rank(pct=True), theirs / ours
    return [1e3 * (theirs - ours).median(), ratio[rank <= 0.25].median(), ratio[rank > 0.75].median()]


def found_shares(frame: pd.DataFrame, **known: Any) -> list[float]:
    """Percent of the space until the search had found it: median and worst, without those that were not found."""
    found = (100 * value(frame, column, **known) for column in ("median_share", "worst_share"))
    return [share for share in found if math.isfinite(share)]


def regrets(frame: pd.DataFrame, rule: str) -> list[float]:
    """What a rule of selection loses, as ``losses`` has it."""
    return losses(frame[frame["rule"] == rule]["regret"])


def losses(regret: pd.Series) -> list[float]:
    """Median, geometric mean (of 1 + regret), 95 % and worst of regrets, as shares."""
    mean = math.expm1(sum(map(math.log1p, regret)) / len(regret))
    return [regret.median(), mean, regret.quantile(0.95), regret.max()]


def rules_regrets(frame: pd.DataFrame, kind: str, **wanted: Any) -> list[float]:
    """Median or max of what autotune and the two rules of the pages lose in a record."""
    some = rows(frame, **wanted)
    rules = ("autotune", "nearest volume", "majority vote")
    return [float(getattr(some[some["rule"] == rule]["regret"], kind)()) for rule in rules]


def percent(shares: Sequence[float], times_from: int = 99) -> list[float]:
    """Shares in percent; from the one with that index, as how many times the best."""
    return [100 * share if i < times_from else 1 + share for i, share in enumerate(shares)]


# -- coulomb ------------------------------------------------------------------------------------------------


def rate_of(frame: pd.DataFrame, **wanted: Any) -> list[float]:
    """Of the fastest with these values: milliseconds, 10¹² evaluations a second, percent of the unit's rate."""
    fastest = rows(frame, **wanted).sort_values("time_ms").iloc[0]
    rate = float(fastest["operations_per_s"])
    return [float(fastest["time_ms"]), rate / 1e12, 100 * rate / table("limits.json")["mufu_per_s"]]


def instead(frame: pd.DataFrame, policy: str, before: int | str, after: int | str) -> pd.Series:
    """How many percent more time one value of a policy takes in place of another, in each pair of cubics."""
    frame = frame[frame["rsqrt"] == "cubic3"]
    kept = [name for name in ("points_x", "block_y", "unroll", "points") if name != policy]
    times = {value: frame[frame[policy] == value].set_index(kept)["time_ms"] for value in (before, after)}
    return (times[after] / times[before] - 1).dropna() * 100


def spread_run(frame: pd.DataFrame, devices: int, allocation: str) -> list[float]:
    """Milliseconds of a run on several devices, its efficiency, and the prediction over it."""
    run = one(frame, devices=devices, worker="all", redone=0, allocation=allocation)
    return [1e3 * run["elapsed_s"], run["efficiency"], run["predicted_over_measured"]]


WHOLE_MAP = 585**3  # points


def maps(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The maps by several programs that have these values, without what failed."""
    return rows(frame[frame["ms"].notna()], **wanted)


# -- eri and eri_sp -----------------------------------------------------------------------------------------

_ERI_POLICIES = ("order", "granularity", "roots", "screening", "block_size", "split", "unroll", "bras")


def beside_libcint(frame: pd.DataFrame, rate: str, workload: str, words: str) -> list[float]:
    """Milliseconds of a configuration, its rate, and how many times as long libcint takes."""
    (found,) = having(rows(frame, workload=workload), *words.split(",")).to_dict("records")
    return [found["gpu_ms"], found[rate], found["libcint_ms"] / found["gpu_ms"]]


def program(frame: pd.DataFrame, part: str) -> Any:
    """The row of the program whose name has ``part`` in it."""
    return one(frame[frame["program"].str.contains(part, regex=False)])


def eri_ratios(frame: pd.DataFrame, policy: str, value: Any, other: Any, **wanted: Any) -> list[float]:
    """The times with ``other`` over those with ``value``, of configurations that differ in that policy alone."""
    some = rows(frame, **wanted)
    rest = ["workload", *(name for name in _ERI_POLICIES if name != policy)]
    left, right = (some[some[policy] == v].set_index(rest)["time_ms"] for v in (value, other))
    return sorted((right / left).dropna())


def planned(frame: pd.DataFrame, devices: int, allocation: str) -> float:
    """Mean over longest of the measured times when kernels/eri/cost_model.py divides the work by ``allocation``."""
    costs = _cost_model()
    shares = [costs.Share(c, u) for c, u in zip(frame["components"], frame["work_units"], strict=True)]
    model = costs.calibrated(list(zip(shares, frame["measured_ms"], strict=True)))
    of_one = dict(zip(frame["components"], frame["measured_ms"] / frame["work_units"], strict=True))
    divided = {
        "equal": lambda: costs.equal_counts(shares, devices),
        "whole": lambda: costs.whole_subclasses(shares, devices, model),
        "pieces": lambda: costs.chunked(shares, devices, model),
    }[allocation]()
    return float(costs.efficiency([sum(of_one[s.components] * s.units for s in gpu) for gpu in divided]))


@cache
def _cost_model() -> Any:
    spec = spec_from_file_location("eri_cost_model", ROOT / "kernels" / "eri" / "cost_model.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sp(frame: pd.DataFrame, column: str = "time_ms", **other: Any) -> float:
    """Return a figure of the configuration of eri_sp that differs only in ``other`` from the base of comparisons."""
    base = {
        "workload": "water8", "order": "place", "classes": "apart", "granularity": "block", "parts": 3, "split": 1,
        "split_heavy": 1, "bra_transform": "once", "pair_table": "device", "table_records": "aos", "boys": "table",
        "boys_memory": "global", "block_size": 64,
    }  # fmt: skip
    return value(frame, column, **(base | other))


# -- mummergpu ----------------------------------------------------------------------------------------------

OURS = "autotune, warm cache"
ON_32_CORES = "mummergpu-h200-end-to-end-32.csv"


def last_run(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows of the last run that had this workload; a table without a column ``run`` is of one run."""
    some = rows(frame, workload=workload)
    return rows(some, run=rows(some, tool=OURS)["run"].max()) if "run" in some else some


def command(frame: pd.DataFrame, workload: str, tool: str = OURS, column: str = "seconds_median") -> float:
    """Seconds of a whole command in the last run."""
    some = last_run(frame, workload)
    return float(some[some["tool"] == tool][column].iloc[0])


def beside_command(frame: pd.DataFrame, workload: str, tool: str) -> list[float]:
    """Seconds of a whole command here and of ``tool``, and how many times as long that is."""
    ours, other = command(frame, workload), command(frame, workload, tool)
    return [ours, other, other / ours]


def whole_row(frame: pd.DataFrame, workload: str) -> list[float]:
    """Seconds of the peers that ran, ours with a cold and a warm cache, the best peer over ours, a copy's seconds."""
    some = last_run(frame, workload)
    there = set(some[some["seconds_median"].notna()]["tool"])
    theirs = [command(frame, workload, tool) for tool in ("MUMmer4", "copMEM2", "E-MEM") if tool in there]
    ours = [command(frame, workload, column=f"seconds_{which}") for which in ("median", "min", "max")]
    cold, copy = (command(frame, workload, tool) for tool in ("autotune, cold cache", "copy of the output"))
    return [*theirs, cold, *ours, min(theirs) / ours[0], copy]


def phases(frame: pd.DataFrame, workload: str) -> list[float]:
    """Seconds of each phase of a whole command, their sum, and the command's."""
    text = rows(last_run(frame, workload), tool=OURS)["phases"].iloc[0].partition(";")[0]
    parts = [float(part.split()[1]) for part in text.split(", ")]
    return [*parts, sum(parts), command(frame, workload)]


def fetches(frame: pd.DataFrame, workload: str, layouts: str) -> list[float]:
    """L2 requests and fetches of 64 bytes in millions and 10⁹ a second, with the percent of what there is."""
    found, limits = one(frame, workload=workload, layouts=layouts), table("limits.json")
    seconds, fetched = found["match_ms"] / 1e3, found["dram_read_sectors"] / 2
    requests, rate = found["l2_requests"], fetched / seconds
    return [
        requests / 1e6, requests / seconds / 1e9, found["l2_busy_percent"], fetched / 1e6, rate / 1e9,
        100 * rate / limits["random_64_byte_fetches_per_s"], 100 * 64 * rate / limits["dram_read_bytes_per_s"],
    ]  # fmt: skip


def beyond(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    """Rows by what their kernels take, with ``print`` and, all that a single call takes, ``call``."""
    some = rows(frame, workload=workload, emit="ranges")
    printing = [name for name in some if str(name).startswith(("kernel_print", "kernel_scan"))]
    call = some["time_ms"] + some["transfer_ms"] + some["transform_ms"]
    return some.assign(print=some[printing].sum(axis=1), call=call).sort_values("time_ms")


# -- others -------------------------------------------------------------------------------------------------


def texture(frame: pd.DataFrame, workload: str, **wanted: Any) -> float:
    """How many times as long a step through a texture takes as one from global memory."""
    some = {"workload": workload, "time_block": 1, **wanted}
    return shortest(frame, field_memory="texture", **some) / shortest(frame, field_memory="global", **some)


def theirs(
    frame: pd.DataFrame, problem: str, run: int, variant: str = "", column: str = "kernel_ms"
) -> float:
    """The shortest time of the authors' variants whose name matches ``variant``."""
    some = rows(frame, problem=problem, run=run, whose="theirs")
    return float(some[some["variant"].str.contains(variant, regex=True)][column].min())


def ours(frame: pd.DataFrame, problem: str, run: int, role: str = "", configuration: str = "") -> float:
    """The shortest time of our configurations of that role, whose name matches ``configuration``."""
    some = rows(frame, problem=problem, run=run, whose="ours")
    named = some["configuration"].str.contains(configuration, regex=True)
    return float(some[some["role"].fillna("").str.contains(role) & named]["kernel_ms"].min())


def adopted(frame: pd.DataFrame, problem: str, run: int) -> list[float]:
    """Theirs, control and winner in microseconds, and how many times as fast as theirs the winner is."""
    best, tuned = theirs(frame, problem, run), ours(frame, problem, run, "winner")
    return [best * 1e3, ours(frame, problem, run, "control") * 1e3, tuned * 1e3, best / tuned]


def bilateral(frame: pd.DataFrame, staging: str) -> list[float]:
    """The shortest of plain memory, a linear texture, a texture with rows of its own."""
    some = rows(frame, image_staging=staging, state="measured")
    is_texture, is_line = some["image_memory"] == "texture", some["image_dims"] == "1d"
    return [float(some[which]["median_ms"].min()) for which in (~is_texture, is_texture & is_line, ~is_line)]


# -- the rows of README and performance.md, a family each ---------------------------------------------------


def first_page() -> list[list[float]]:
    """In each row ours, the best other, their ratio; then what the device could do at most, and the percent of it."""
    ceilings = table("limits.json")
    return [
        _allpairs_row(),
        _kinship_row(),
        beside_command(table(ON_32_CORES), "cbrigg", "copMEM2"),
        _genome_row(),
        _potential_row(ceilings["mufu_per_s"]),
        *_map_rows(),
        _spectrum_row(),
        _matrix_row(table("eri-h200-matrices.csv"), "screening=schwarz"),
        _matrix_row(table("eri-sp-h200-winner.csv"), "split_heavy=1"),
        _lattice_row(ceilings["fp32_fma_per_s"]),
    ]


def beside_products(frame: pd.DataFrame, workload: str) -> list[float]:
    """Milliseconds of ours, of the fastest other program that gives the distances, and their ratio."""
    times = rows(frame, workload=workload).set_index("what")["median_ms"]
    ours = times["autotune: tuned"]
    other = times[
        [what for what in times.index if not what.startswith("autotune") and "alone" not in what]
    ].min()
    return [ours, other, other / ours]


def _allpairs_row() -> list[float]:
    ours, *others = beside_products(table("allpairs-h200-cutlass.csv"), "wide")
    stored = value(table("allpairs-h200-limits.csv"), "ms", what="bytes stored")
    return [ours, *others, stored, 100 * stored / ours]


def _kinship_row() -> list[float]:
    """Seconds of a call, numpy to numpy, and of PLINK's command."""
    frame = rows(table("king-h200-plink.csv"), workload="biobank-slice")
    ours = value(frame, "median_ms", what="autotune", part="call") / 1e3
    other = value(frame, "median_ms", part="command") / 1e3
    return [ours, other, other / ours]


def _genome_row() -> list[float]:
    commands = table(ON_32_CORES)
    ours, other, times = beside_command(commands, "hsill", "MUMmer4")
    copied = command(commands, "hsill", "copy of the output")
    return [ours, other, times, copied, 100 * copied / ours]


def _potential_row(roots: float) -> list[float]:
    rates = table("coulomb-h200-peers.csv").set_index("what")["evaluations_per_s"]
    ours, other = rates["autotune"], rates.drop("autotune").max()
    return [ours, other, ours / other, roots, 100 * ours / roots]


def _map_rows() -> list[list[float]]:
    """The fastest mesh, with the fastest map of no larger measured error before it; and a map by the configuration of
    ``million-bounds`` beside the mesh with the least error, then the fastest mesh again."""
    pairs = equal_errors(table("coulomb_map-h200-equal-errors.csv"))
    (ours, _, quick, _, times), exact = pairs[0], pairs[-1][2]
    entry = bounded_map()["ms"]
    return [[ours, quick, times], [entry, exact, quick, exact / entry]]


def equal_errors(frame: pd.DataFrame, program: str = "mesh") -> list[list[float]]:
    """Of the fastest map with no larger measured error than a mesh, or one of another ``program``: ms and error, the
    mesh's, and the ratio; by the meshes' times."""
    ours, found = maps(frame, program="autotune"), []
    for mesh in maps(frame, program=program).sort_values("ms").to_dict("records"):
        best = ours[ours["error_of_sum"] <= mesh["error_of_sum"]].nsmallest(1, "ms").iloc[0]
        times = [best["ms"], best["error_of_sum"], mesh["ms"], mesh["error_of_sum"]]
        found.append([*times, mesh["ms"] / best["ms"]])
    return found


def bounded_map() -> Any:
    """The map beside those meshes by the configuration of the entry ``million-bounds``."""
    made = table("coulomb_map-h200-equal-errors.csv").assign(configuration=lambda frame: frame["settings"])
    chosen = entries("coulomb_map")["million-bounds"]["configuration"]
    names = ("method", "cell", "order", "separation", "tile", "expand_blocks", "point_blocks")
    return one(having(rows(made, program="autotune"), *(f"{name}={chosen[name]}" for name in names)))


def _spectrum_row() -> list[float]:
    ours = winner(table("cyclospectrum-h200.csv.xz"), "cyclospectrum", "n16384")
    sort = "torch prefix differences + cupy sort in place"
    other = value(table("cyclospectrum-h200-peers.csv"), "ms", residues=16384, what=sort)
    stored = 1e3 * 4 * 16384**2 / value(table("allpairs-h200-limits.csv"), "per_second", what="bytes stored")
    return [ours, other, other / ours, stored, 100 * stored / ours]


def _matrix_row(frame: pd.DataFrame, part: str) -> list[float]:
    """Coulomb and exchange matrices by the configuration that has ``part``, and by the fastest other program."""
    is_ours = frame["program"].str.startswith("autotune")
    ours, other = program(frame[is_ours], part)["device_ms"], frame[~is_ours]["device_ms"].min()
    return [ours, other, other / ours]


def _lattice_row(instructions: float) -> list[float]:
    lattice = rows(table("reaction_diffusion-h200-an5d.csv"), grid=16384).set_index("program")[
        "updates_per_second"
    ]
    is_ours = lattice.index.str.startswith("autotune")
    ours, other = lattice[is_ours].max(), lattice[~is_ours].max()
    most = instructions / 5
    return [ours, other, ours / other, most, 100 * ours / most]
