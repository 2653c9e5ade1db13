"""What the record costs a trial: claim and record, on a store that holds many trials already.

    python benchmarks/store_overhead.py [--store postgresql://…|grpc://…|DIR] [--trials 1000] [--timed 200] [--out FILE]

Without --store it is a journal in a new folder of the current one. ``--out`` keeps the figures as a CSV. The limits
are 5 ms (journal), 30 ms (PostgreSQL) and 100 ms (gRPC before SQLite), and the exit code is 1 when the median is
above.
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pandas as pd
from result_files import write_rows

from autotune.compile import KernelProfile
from autotune.declaration import Configuration, Policy
from autotune.record import Measurement, Store, Study, Trial

LIMITS_MS = {"journal": 5.0, "grpc": 100.0, "postgresql": 30.0}
POLICIES = {name: Policy(name, tuple(range(10)), 0) for name in "abcdefg"}


def trial(number: int) -> Trial:
    """As large as a trial of two kernels is."""
    configuration = Configuration({name: number // 10**place % 10 for place, name in enumerate(POLICIES)})
    return Trial(
        family="f", workload="w", device="d", configuration=configuration, state="measured",
        profiles=(KernelProfile(kernel="first", registers=32), KernelProfile(kernel="second", registers=64)),
        measurement=Measurement(median_ms=1.0 + number, minimum_ms=1.0, spread=0.01, samples=20,
                                kernel_ms={"first": 0.5, "second": 0.5}),
        phases_ms={"compile": 1.0, "place": 2.0, "verify": 3.0, "measure": 4.0},
    )  # fmt: skip


def milliseconds(step: Callable[[], Any]) -> float:
    began = time.perf_counter()
    step()
    return (time.perf_counter() - began) * 1e3


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", default="")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--timed", type=int, default=200)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=".", prefix="store-overhead-") as folder:
        where = given.store or folder
        study = Study(
            family="f",
            workload=uuid.uuid4().hex,
            device="d",
            identity="0" * 64,
            control=trial(0).configuration,
        )
        opened = Store(where).open(study, POLICIES)
        for number in range(given.trials):
            opened.record(trial(number))
        opening = milliseconds(lambda: Store(where).open(study, POLICIES))
        opened = Store(where).open(study, POLICIES)
        claims, records = [], []
        for number in range(given.trials, given.trials + given.timed):
            new = trial(number)
            claims.append(milliseconds(partial(opened.claim, new.configuration)))
            records.append(milliseconds(partial(opened.record, new)))
    kind = given.store.partition("://")[0] if "://" in given.store else "journal"
    both = [claim + record for claim, record in zip(claims, records, strict=True)]
    rows = [
        {
            "store": kind, "trials": given.trials, "timed": given.timed, "step": step,
            "median_ms": round(median(times), 2), "percentile_95_ms": round(quantiles(times, n=20)[-1], 2),
            "most_ms": round(max(times), 2), "limit_ms": LIMITS_MS[kind],
        }
        for step, times in (("claim", claims), ("record", records), ("both", both))
    ]  # fmt: skip
    print(f"{kind}, {given.trials} trials recorded: opened in {opening:.0f} ms")
    print(pd.DataFrame(rows).to_string(index=False))
    if given.out:
        write_rows(given.out, rows)
    return int(median(both) > LIMITS_MS[kind])


if __name__ == "__main__":
    sys.exit(main())
