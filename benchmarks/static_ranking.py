"""The static ranking against recorded sweeps, with no GPU: the regret of its first choice and of the best of its first
five, compared with a placement model after PORPLE, with registers and occupancy alone, and with chance.

    python benchmarks/static_ranking.py ./examples/lookup=benchmarks/results/lookup-h200.csv.xz \
        allpairs=benchmarks/results/allpairs-h200.csv.xz --out benchmarks/results/static-ranking.csv

Each argument is a family and the table of a whole sweep of it. A workload without its data is reported and left out.
Of a space with more than --most configurations a part is drawn at random, the same for all models; regrets are against
the best of that part. Static profiles are those in the table (the compiler's, no measurement).

The rival follows Chen et al., *PORPLE: An Extensible Optimizer for Portable Data Placement on GPU* (MICRO 2014), as far
as the paper says: the sum over the transactions of each array, in its memory, each at the latency of the cache level
that its reuse gives; the placement with the least sum is taken. This is our own implementation, on the same traces.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from result_files import read_frame, write_rows

from autotune.compile import KernelProfile, StaticProfile
from autotune.declaration import Configuration, Family, load_family
from autotune.errors import AutotuneError
from autotune.files import data_root
from autotune.ranking import static_ranking
from autotune.ranking.forecasts import Forecast, find_unseen_policies, sort_by_cycles
from autotune.ranking.warp_requests import Requests
from autotune.record import Study, read_results

ARCH = "sm_90"
_LATENCY = {"hit": 33.0, "texture hit": 80.0, "constant": 25.0, "shared": 29.0, "behind": 260.0}  # cycles
_DRAWS = 2000
_SIZES = ("registers", "static_shared_bytes", "dynamic_shared_bytes", "block_size", "blocks_per_sm")


@dataclass(frozen=True)
class Row:
    """``first`` and ``best_of_five`` are regrets, 0 for the best of the ``configurations``. ``correlation`` is
    Spearman's, between estimate and time. ``unseen`` are the policies that the estimate is blind to."""

    family: str
    workload: str
    configurations: int
    model: str
    first: float
    best_of_five: float
    correlation: float
    unseen: str = ""
    seconds: float = math.nan


def profiles(line: Any) -> tuple[KernelProfile, ...]:
    """Of one configuration, as a row of the table has them."""
    kernels = [
        name.removeprefix("registers_") for name in line.index
        if name.startswith("registers_") and pd.notna(line[name])
    ]  # fmt: skip
    found = []
    for kernel in kernels:
        occupancy = float(line[f"occupancy_{kernel}"])
        sizes: dict[str, Any] = {name: int(line[f"{name}_{kernel}"]) for name in _SIZES}
        found.append(replace(KernelProfile(kernel=kernel, occupancy=occupancy), **sizes))
    return tuple(found)


def porple(requests: Requests) -> float:
    """Latencies of a warp's transactions, summed; see the module."""
    asked = requests.sectors or 1.0
    missed = min(1.0, requests.missed / asked)
    level = {True: _LATENCY["texture hit"], False: _LATENCY["hit"]}
    total = requests.constant * _LATENCY["constant"] + requests.shared * _LATENCY["shared"]
    for count, is_texture in ((requests.lines, False), (requests.quads, True)):
        total += count * ((1 - missed) * level[is_texture] + missed * _LATENCY["behind"])
    return total


def of_porple(found: Forecast) -> float:
    return sum(
        porple(one.requests) * math.prod(one.geometry.grid) * -(-one.geometry.block_size // 32)
        for one in found.launches
    )


def regrets(times: Sequence[float], estimates: Sequence[float]) -> tuple[float, float]:
    """Of the first choice, and of the best of five; equal estimates in the order of configurations."""
    order = np.argsort(estimates, kind="stable")
    best = min(times)
    return times[int(order[0])] / best - 1, min(times[int(i)] for i in order[:5]) / best - 1


def by_chance(times: Sequence[float]) -> tuple[float, float]:
    """The median regrets of one at random, and of the best of five."""
    rng = np.random.default_rng(0)
    drawn = (
        np.array([rng.choice(times, min(5, len(times)), replace=False) for _ in range(_DRAWS)]) / min(times)
        - 1
    )
    return float(np.median(drawn[:, 0])), float(np.median(drawn.min(axis=1)))


def correlation(times: Sequence[float], estimates: Sequence[float]) -> float:
    ranks = pd.DataFrame({"a": times, "b": estimates}).rank()
    return float(ranks["a"].corr(ranks["b"]))


def whole(family: Family, recorded: Configuration) -> Configuration:
    """With values as the family declares them (a table has text where some of them are no numbers), and the control's
    for each policy that the family has got since."""
    told = {name: family.space.policy(name).value(value) for name, value in recorded.items()}
    return Configuration({**family.space.control, **told})


def rows_of(
    family: Family, name: str, study: Study, table: pd.DataFrame, most: int, data: Path
) -> Iterator[Row]:
    trials = [t for t in study.trials if t.measurement]
    if len(trials) > most:
        chosen = np.random.default_rng(0).choice(len(trials), most, replace=False)
        trials = [trials[i] for i in sorted(chosen.tolist())]
    lines = table[table["workload"] == study.workload].set_index("configuration")
    static = [
        StaticProfile(ARCH, whole(family, t.configuration), profiles(lines.loc[t.configuration.id]))
        for t in trials
    ]
    began = time.perf_counter()
    found = list(static_ranking(family, study.workload, data, static, 1))
    seconds = time.perf_counter() - began
    kept = [(f, t.time_ms, s) for f, t, s in zip(found, trials, static, strict=True) if f.launches]
    if lost := [f for f in found if not f.launches]:
        print(f"{name} {study.workload}: {len(lost)} of {len(found)} were not traced: {lost[0].message}")
    if not kept:
        return
    times = [t for _, t, _ in kept]
    unseen = " ".join(find_unseen_policies(found, family.space.policies))
    models = {
        "static ranking": [f.cycles for f, _, _ in kept],
        "PORPLE": [of_porple(f) for f, _, _ in kept],
        "occupancy": [-sum(p.occupancy for p in s.kernels) for _, _, s in kept],
    }
    head = (name, study.workload, len(kept))
    for model, estimates in models.items():
        first, five = regrets(times, estimates)
        own = (unseen, seconds) if model == "static ranking" else ("", math.nan)
        yield Row(*head, model, first, five, correlation(times, estimates), *own)
    yield Row(*head, "chance", *by_chance(times), 0.0)
    print(f"{name} {study.workload}: first {sort_by_cycles(found)[0].configuration.id}")


def show(rows: Sequence[Row]) -> None:
    print(f"\n{'':32}{'model':16}{'first':>9}{'of five':>9}{'rho':>7}")
    for r in rows:
        print(
            f"{r.family + ' ' + r.workload:32}{r.model:16}{r.first:9.1%}{r.best_of_five:9.1%}{r.correlation:7.2f}"
        )
    for model in dict.fromkeys(r.model for r in rows):
        mine = [r for r in rows if r.model == model]
        print(
            f"{'median of ' + str(len(mine)):32}{model:16}{median(r.first for r in mine):9.1%}"
            f"{median(r.best_of_five for r in mine):9.1%}"
        )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweeps", nargs="+", metavar="FAMILY=CSV")
    parser.add_argument("--workloads", default="", help="names, joined by commas; default: all in the tables")
    parser.add_argument("--most", type=int, default=1200, help="configurations of a space")
    parser.add_argument("--data", type=Path, help="where workloads' files are")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    only = set(filter(None, options.workloads.split(",")))
    rows: list[Row] = []
    for pair in options.sweeps:
        folder, _, path = pair.partition("=")
        family, table = load_family(folder), read_frame(Path(path))
        for study in read_results([Path(path)]):
            if only and study.workload not in only:
                continue
            try:
                rows += rows_of(
                    family, Path(folder).name, study, table, options.most, data_root(options.data)
                )
            except AutotuneError as problem:
                print(f"{folder} {study.workload} is left out: {problem}")
    show(rows)
    if options.out:
        write_rows(options.out, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
