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

With --regret it also writes what is stated of the regret where a search ends after some visits, beside the true one;
with --regret and no --out it writes only that. The factor of that statement was found on other records:

    python benchmarks/transfer.py unused/{convolution,gemm,pnpoly}/*.json.gz --seeds 7 \
        --regret benchmarks/results/regret-factor.csv

They are of that repository's ``currently_unused``, on four GPUs each. The constants of the search were chosen on them,
too.
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
    """What is stated where the search ends after some visits, beside how much faster the best is."""
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
    options = parser.parse_args(words)
    studies = studies_of(options.results)
    others = [[read_times(s) for s in studies if s.family == one.family and s is not one] for one in studies]
    rows: list[dict[str, Any]] = []
    both = list(zip(studies, others, strict=True))
    for study, records in both if options.out or not options.regret else ():
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


if __name__ == "__main__":
    main()
