"""A search that begins from other GPUs' records, replayed on recorded spaces with no GPU: which share of a space each
search visits until it is within 2 % of the optimum, one GPU left out in turn.

    python benchmarks/transfer.py hub/convolution_milo/*_T4.json.gz hub/dedispersion_milo/*_T4.json.gz \
        --out benchmarks/results/transfer.csv --regret benchmarks/results/regret-stated.csv

The files are those of the benchmark hub, a folder a kernel and a file a GPU. The records of all other GPUs of its
kernel are what the search begins from. The methods:

    cold         ``auto`` as it is without a record
    transfer     ``auto`` that begins from the records (``--from``)
    misleading   the same, with the times of each record given to other configurations at random
    copy         what the winner of each other GPU loses here, with no search: regret alone
    named        what the best of the five named without measuring loses here (``--budget 0s``): regret alone

With --regret it also writes the stated regret of a search that ends after some visits, and the true one; with --regret
and no --out it writes only that. The factor of that statement was found on other records:

    python benchmarks/transfer.py unused/{convolution,gemm,pnpoly}/*.json.gz --seeds 7 \
        --regret benchmarks/results/regret-factor.csv

They are of that repository's ``currently_unused``, on four GPUs each. The constants of the search were chosen on them,
too.

    python benchmarks/transfer.py hub/{convolution,dedispersion}_milo/*_T4.json.gz \
        --ceilings benchmarks/results/transfer-ceilings.csv

asks whether the two GPUs' ceilings improve what is expected. In a record's time nothing says what limits it but the
share of the memory's bandwidth that the least bytes of a call reach in it. By ``ranks`` the times are used as they are.
By ``two factors`` those with at least a share (``threshold``) are scaled by the ratio of bandwidths, the others by that
of peak rates; by ``floor`` all are scaled by that of rates, and none takes less than the bytes need. Each row has the
largest share in the records, how many of their configurations reach the threshold, what the best of the five named
loses, and after how many visits in the expected order one is within 2 % of the best.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from replay import replay, space
from result_files import write_rows
from search_replay import studies_of

from autotune.declaration import Configuration
from autotune.record import Study
from autotune.search import Prior, Search, Strategy

WITHIN, FIVE, SURE = 0.02, 5, 0.9
MARKS = (12, 24, 48, 96)
Times = Mapping[Configuration, float]
# Of the vendors' data sheets: GB/s, and TFLOP/s of float32 (clock x units x 2). NVIDIA A100 (40 GB), RTX A4000 and RTX
# A6000; AMD Radeon PRO W6600 and W7800; Instinct MI250X, one of its two dies, since a program sees one.
CEILINGS = {
    "A100": (1555, 19.5), "A4000": (448, 19.2), "A6000": (768, 38.7),
    "MI250X": (1638.4, 23.95), "W6600": (224, 10.4), "W7800": (576, 45.2),
}  # fmt: skip
# What a call has to move, by the arrays of the hub's kernels.
LEAST_BYTES = {
    "convolution_milo": 4 * (4096**2 + (4096 + 14) ** 2),
    "dedispersion_milo": 25_650 * 1536 + 4 * 2048 * 25_000,
}
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


def read_times(study: Study) -> Times:
    """Milliseconds of all that the device could run; infinite where it failed."""
    return {trial.configuration: trial.time_ms for trial in study.trials if trial.state != "excluded"}


def name_gpu(study: Study) -> str:
    """By its record, or by its file where that does not say."""
    return study.workload if study.device == "unknown" else study.device


def deal_out(record: Times, seed: int) -> Times:
    """The same times, of other configurations."""
    return dict(
        zip(record, np.random.default_rng(seed).permutation([*record.values()]).tolist(), strict=True)
    )


def replay_search(
    study: Study, method: str, records: Sequence[Times], seeds: int, budget: float
) -> dict[str, Any]:
    """A row: shares of the space until within 2 % of the best."""
    members = len(read_times(study))
    visits: list[float] = []
    for seed in range(seeds):
        known = [deal_out(one, seed) for one in records] if method == "misleading" else records
        prior = None if method == "cold" else Prior(known)
        run = replay(study, "auto", seed, trials=math.ceil(budget * members), within=WITHIN, prior=prior)
        visits.append(run.visits_until(WITHIN) or math.inf)
    shares = sorted(one / members for one in visits)
    return {
        "kernel": study.family, "gpu": name_gpu(study), "members": members, "method": method, "seeds": seeds,
        "median_visits": median(visits), "median_share": median(shares), "worst_share": shares[-1], "regret": math.nan,
    }  # fmt: skip


def compute_regret(study: Study, method: str, records: Sequence[Times]) -> dict[str, Any]:
    """A row for what is taken without measuring: how much slower than the best it is."""
    own, prior = read_times(study), Prior(records)
    best = min(own.values())
    tried = prior.rank([*own])[:FIVE] if method == "named" else prior.winners
    lost = [own.get(one, math.inf) / best - 1 for one in tried]
    return {
        "kernel": study.family, "gpu": name_gpu(study), "members": len(own), "method": method, "seeds": 1,
        "median_visits": 0, "median_share": math.nan, "worst_share": math.nan,
        "regret": min(lost) if method == "named" else median(lost),
    }  # fmt: skip


def compare_statement(
    study: Study, method: str, records: Sequence[Times], seeds: int
) -> Iterator[dict[str, Any]]:
    """Yield the regret stated at the end of a search after some visits, and the true one."""
    own = read_times(study)
    best, prior = min(own.values()), Prior(records) if method == "transfer" else None
    for seed in range(seeds):
        search = Search(
            space(study), tuple(own), Strategy(sampler="auto", trials=len(own), seed=seed), prior=prior
        )
        found = math.inf
        for visit in range(1, min(MARKS[-1], len(own) // 2) + 1):
            asked = search.ask()
            assert asked is not None, "half of the space is left"
            found = min(found, own[asked])
            search.tell(asked, own[asked])
            if visit in MARKS and math.isfinite(found):
                yield {
                    "kernel": study.family, "gpu": name_gpu(study), "method": method, "seed": seed, "visits": visit,
                    "stated": search.estimate_gain_left(SURE), "true": 1 - best / found,
                }  # fmt: skip


def find_floor(kernel: str, gpu: str) -> float:
    """The milliseconds that the least bytes of a call need."""
    return LEAST_BYTES[kernel] / (CEILINGS[gpu][0] * 1e6)


def scale(record: Times, kernel: str, source: str, target: str, threshold: float | None) -> Times:
    """A record as it might be on another GPU: by two factors, distinguished by ``threshold``; by the floor without."""
    bandwidth, rate = (there / here for there, here in zip(CEILINGS[source], CEILINGS[target], strict=True))
    if threshold is None:
        return {one: max(find_floor(kernel, target), ms * rate) for one, ms in record.items()}
    most = find_floor(kernel, source) / threshold
    return {one: ms * (bandwidth if ms <= most else rate) for one, ms in record.items()}


def compare_ceilings(study: Study, others: Mapping[str, Times]) -> Iterator[dict[str, Any]]:
    """A row for each way to scale the records of other GPUs."""
    own, kernel, gpu = read_times(study), study.family, name_gpu(study)
    best = min(own.values())
    shares = [find_floor(kernel, name) / ms for name, record in others.items() for ms in record.values()]
    ways: list[tuple[str, float | None]] = [("ranks", None), *(("two factors", one) for one in THRESHOLDS)]
    for method, threshold in [*ways, ("floor", None)]:
        records = [
            record if method == "ranks" else scale(record, kernel, name, gpu, threshold)
            for name, record in others.items()
        ]
        order = Prior(records).rank([*own])
        yield {
            "kernel": kernel, "gpu": gpu, "method": method, "threshold": threshold or math.nan,
            "largest_share": max(shares), "above": sum(share >= threshold for share in shares) if threshold else 0,
            "of": len(shares), "named": min(own[one] for one in order[:FIVE]) / best - 1,
            "visits": next(n for n, one in enumerate(order, 1) if own[one] <= (1 + WITHIN) * best),
        }  # fmt: skip


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The shares of each method, space by space, and their ratio to the cold search."""
    for study in dict.fromkeys((row["kernel"], row["gpu"]) for row in rows):
        of = {row["method"]: row for row in rows if (row["kernel"], row["gpu"]) == study}
        cold = of["cold"]["median_share"]
        shares = ", ".join(
            f"{name} {100 * row['median_share']:.2f} % ({row['median_share'] / cold:.2f} x)"
            for name, row in of.items()
            if not math.isnan(row["median_share"])
        )
        lost = ", ".join(
            f"{n} {100 * r['regret']:.1f} %" for n, r in of.items() if not math.isnan(r["regret"])
        )
        print(f"{' '.join(study)}: {shares}; slower than the best: {lost}", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path, help="a record for each GPU")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.25, help="share of the space a run may visit")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--regret", type=Path)
    parser.add_argument("--ceilings", type=Path)
    options = parser.parse_args(words)
    studies = studies_of(options.results)
    others = [[read_times(s) for s in studies if s.family == one.family and s is not one] for one in studies]
    rows: list[dict[str, Any]] = []
    both = list(zip(studies, others, strict=True))
    for study, records in both if options.out or not (options.regret or options.ceilings) else ():
        found = [
            replay_search(study, method, records, options.seeds, options.budget)
            for method in ("cold", "transfer", "misleading")
        ]
        found += [compute_regret(study, method, records) for method in ("copy", "named")]
        show(found)
        rows += found
        if options.out:
            write_rows(options.out, rows)
    rows_of_regret: list[dict[str, Any]] = []
    for study, records in both if options.regret else ():
        for method in ("cold", "transfer"):
            rows_of_regret += compare_statement(study, method, records, -(-options.seeds // 4))
        write_rows(options.regret, rows_of_regret)
    rows_of_ceilings: list[dict[str, Any]] = []
    for study in studies if options.ceilings else ():
        named = {name_gpu(s): read_times(s) for s in studies if s.family == study.family and s is not study}
        rows_of_ceilings += compare_ceilings(study, named)
        print(f"{study.family} {name_gpu(study)}: done", flush=True)
        write_rows(options.ceilings, rows_of_ceilings)


if __name__ == "__main__":
    main()
