"""A sweep as the store sees it, to be run in a process of its own and killed.

python store_process.py WHERE CONFIGURATIONS SECONDS LOG [BYTES]

Tries each configuration for SECONDS. Into LOG it writes "trying N", "recorded N", and at the end "done". With BYTES no
file may grow beyond that, as on a full disk.
"""

import resource
import sys
import time
from pathlib import Path

from autotune.declaration.space import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.store import Store, StudyStore
from autotune.record.study import Study
from autotune.record.trial import Measurement, Trial

POLICIES = {"number": Policy("number", tuple(range(1000)), 0)}


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"number": number}) for number in range(count)]


def trial(configuration: Configuration, state: str = "measured") -> Trial:
    measured = Measurement(median_ms=1.0, minimum_ms=1.0, spread=0.0, samples=3)
    return Trial(
        family="f", workload="w", device="d", configuration=configuration, state=state,  # type: ignore[arg-type]
        measurement=measured if state == "measured" else None, reason="" if state == "measured" else state,
    )  # fmt: skip


def study(device: str = "d", identity: str = "0" * 64) -> Study:
    return Study(
        family="f", workload="w", device=device, identity=identity, control=Configuration({"number": 0})
    )


def opened(where: str | Path) -> StudyStore:
    return Store(where).open(study(), POLICIES)


def main(where: str, count: int, seconds: float, log: Path) -> None:
    with log.open("a", buffering=1) as told:
        try:
            store = opened(where)
            print("ready", file=told)
            wanted = configurations(count)
            while left := [c for c in wanted if c not in store.known()]:
                mine = [c for c in left if store.claim(c) and _try(store, c, seconds, told)]
                if not mine:
                    time.sleep(0.02)
                    store.refresh()
        except StoreError as problem:
            print(f"StoreError {problem}", file=told)
            sys.exit(problem.exit_code)
        print("done", file=told)


def _try(store: StudyStore, configuration: Configuration, seconds: float, told: object) -> bool:
    print(f"trying {configuration['number']}", file=told)  # type: ignore[call-overload]
    time.sleep(seconds)
    store.record(trial(configuration))
    print(f"recorded {configuration['number']}", file=told)  # type: ignore[call-overload]
    return True


if __name__ == "__main__":
    if len(sys.argv) > 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[5]), resource.RLIM_INFINITY))
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
