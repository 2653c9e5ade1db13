"""Where the GPU overtakes the cpu for whole calls: numpy arrays in and out, transforms and transfers included.

    python benchmarks/crossover.py allpairs --parameter instances=28,56,112,224 --parameter attributes=512

Each size is timed on both devices under their policy files (sweep both first), in turn.
"""

import itertools
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, check
from result_files import write_rows

import autotune
from autotune.declaration import Family, Inputs, Workload, load_family, prepare
from autotune.files import data_root

COLUMNS = ("parameters", "operations", "cuda_ms", "cpu_ms", "faster")


def grid(texts: list[str]) -> list[dict[str, int]]:
    """``instances=28,56`` … -> every combination."""
    named = [text.partition("=") for text in texts]
    values = [[(name, int(value)) for value in listed.split(",")] for name, _, listed in named]
    return [dict(chosen) for chosen in itertools.product(*values)]


def milliseconds(calls: Mapping[str, Callable[[], Any]], rounds: int, seconds: float) -> dict[str, float]:
    """The median time of each, taken in turn; at most about ``seconds`` in all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - begin) * 1e3)
        if time.perf_counter() > end:
            break
    return {name: median(found) for name, found in times.items()}


def inputs_for(family: Family, parameters: Mapping[str, int]) -> tuple[str, Inputs]:
    """The size in words, and the inputs that the family makes of its parameters."""
    size = " ".join(f"{name}={value}" for name, value in parameters.items())
    return size, prepare(family, Workload(name=size, family=family.name, parameters=parameters), data_root())


def work(family: Family, inputs: Inputs) -> float:
    """The operations of a call: what the family declares, else the product of its extents."""
    if family.operations is None:
        return float(math.prod(inputs.sizes.values()))
    return float(family.operations.evaluate(inputs.names(family.space.control)))


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "crossover.csv")
    parser.add_argument("family")
    parser.add_argument("--parameter", action="append", required=True, help="name=value,value of the inputs")
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each size")
    asked = parser.parse_args(words)
    family = load_family(asked.family)
    if asked.check:
        every = [inputs_for(family, parameters)[1] for parameters in grid(asked.parameter)]
        return check(family, every, [family.space.control])
    rows: list[dict[str, Any]] = []
    kernels = {kind: autotune.load(asked.family, kind, asked.policies) for kind in ("cuda", "cpu")}
    for parameters in grid(asked.parameter):
        size, inputs = inputs_for(family, parameters)
        arrays = [np.asarray(array) for array in inputs.arrays.values()]
        names = inputs.names(family.space.control)
        on_gpu, on_cpu = (np.asarray(kernels[kind](*arrays)) for kind in ("cuda", "cpu"))
        (within,) = family.tolerances(names).values()
        np.testing.assert_allclose(on_gpu, on_cpu, within.relative, within.absolute)
        calls = {kind: partial(kernel, *arrays) for kind, kernel in kernels.items()}
        taken = milliseconds(calls, asked.rounds, asked.seconds)
        rows.append({
            "parameters": size, "operations": work(family, inputs),
            "cuda_ms": round(taken["cuda"], 4), "cpu_ms": round(taken["cpu"], 4),
            "faster": min(taken, key=lambda kind: taken[kind]),
        })  # fmt: skip
        print("  ".join(str(value) for value in rows[-1].values()), flush=True)
    write_rows(asked.out, rows, COLUMNS)
    for kernel in kernels.values():
        kernel.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
