"""One of Kernel Tuner's strategies on a recorded study, once a seed: the part of ``search_replay.py`` that runs in
Kernel Tuner's python. The task is JSON on standard input; each run answers with a line of JSON, [how it ended, how
many different configurations it had visited by then, seconds of computing].
"""

import contextlib
import io
import json
import random
import signal
import sys
import time
from importlib.metadata import PackageNotFoundError, version


class Over(BaseException):
    """Found, or stopped: passes through whatever a strategy catches."""


def main() -> None:
    task = json.load(sys.stdin)
    if task["strategy"] == "version":
        with contextlib.suppress(PackageNotFoundError):
            print(version("kernel_tuner"))
        return
    import kernel_tuner
    import numpy as np
    from kernel_tuner.runners.simulation import SimulationRunner

    keys = {tuple(map(str, key)) for key in task["keys"]}
    names = list(task["tune_params"])
    seen: set[tuple[str, ...]] = set()
    simulate = SimulationRunner.run

    def watched(self, parameter_space, tuning_options):  # type: ignore[no-untyped-def]
        results = simulate(self, parameter_space, tuning_options)
        for result in results:
            if result is not None and "__error__" not in result:
                seen.add(tuple(str(result[name]) for name in names))
                if result["time"] <= task["bound"]:
                    raise Over("found")
        return results

    def alarm(_number: int, _frame: object) -> None:
        raise Over("stopped")

    def member(parameters: dict[str, object]) -> bool:
        return tuple(str(parameters[name]) for name in names) in keys

    SimulationRunner.run = watched
    signal.signal(signal.SIGPROF, alarm)
    began = time.perf_counter()
    for seed in range(task["seeds"]):
        if time.perf_counter() - began > task["seconds"]:
            return
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - what its strategies draw from
        seen.clear()
        end = "budget"
        signal.setitimer(signal.ITIMER_PROF, task["run_seconds"])
        run_began = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                kernel_tuner.tune_kernel(
                    "recorded", "extern void recorded();", 1, [], task["tune_params"], restrictions=member,
                    lang="C", strategy=task["strategy"], strategy_options={"max_fevals": task["budget"]},
                    cache=task["cache"], simulation_mode=True, quiet=True,
                )  # fmt: skip
            except Over as over:
                end = str(over)
            except Exception as problem:  # noqa: BLE001 - some strategies raise, and that is the answer
                end = f"{type(problem).__name__}: {problem}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([end, len(seen), time.process_time() - run_began]), flush=True)


if __name__ == "__main__":
    main()
