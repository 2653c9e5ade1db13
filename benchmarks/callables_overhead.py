"""The host's time for a call through the decorators, through Triton's, and for a bare call, in one run.

    python benchmarks/callables_overhead.py [--device cuda] [--calls 2000] [--rounds 15] [--out callables-overhead.csv]

Microseconds a call without waiting for the device: the median of rounds in which all ways take turns. On the cpu the
function does nothing with arrays of numpy; on a GPU it launches a Triton kernel of one block on tensors of torch.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, is_there
from result_files import write_rows

import autotune

if find_spec("triton") and find_spec("torch"):
    import triton
    import triton.language as tl

    from autotune.callables.triton import autotune as our_autotune

    CONFIGS = [triton.Config({"BLOCK": size}) for size in (128, 256)]

    @triton.jit
    def copy(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, at < n), at < n)


def nothing(x: Any, y: Any, n: int, *, block: int) -> None:
    """Called and timed."""


def ways_of_a_function(folder: str) -> dict[str, Callable[[], Any]]:
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    decorated = autotune.tuned(space={"block": [1, 2]}, policies=folder)(nothing)
    keyed = autotune.tuned(space={"block": [1, 2]}, key=["n"], policies=folder)(nothing)
    for one in (decorated, keyed):  # as after a first call
        one._known[one._kind((x, y, 64), {})] = {"block": 1}  # noqa: SLF001
    return {
        "bare function": lambda: nothing(x, y, 64, block=1),
        "autotune.tuned, all arguments": lambda: decorated(x, y, 64),
        "autotune.tuned, key n": lambda: keyed(x, y, 64),
    }


def ways_of_a_kernel() -> dict[str, Callable[[], Any]]:
    import torch

    x = torch.zeros(64, device="cuda")
    y = torch.zeros_like(x)
    grid = lambda meta: (triton.cdiv(64, meta["BLOCK"]),)  # noqa: E731
    own = triton.autotune(configs=CONFIGS, key=["n"])(copy)
    ours = our_autotune(configs=CONFIGS, key=["n"])(copy)
    own[grid](x, y, 64)
    ours._known[ours._kind((x, y, 64), {})] = CONFIGS[0]  # noqa: SLF001 - as after a first call
    launch = autotune.tuned(space={"BLOCK": [128, 256]})(launched)
    launch._known[launch._kind((x, y, 64), {})] = {"BLOCK": 128}  # noqa: SLF001
    return {
        "bare kernel": lambda: copy[grid](x, y, 64, BLOCK=128, num_warps=4, num_stages=3, num_ctas=1),
        "triton.autotune": lambda: own[grid](x, y, 64),
        "autotune.callables.triton.autotune": lambda: ours[grid](x, y, 64),
        "bare launching function": lambda: launched(x, y, 64, BLOCK=128),
        "autotune.tuned of it": lambda: launch(x, y, 64),
    }


def launched(x: Any, out: Any, n: int, *, BLOCK: int) -> None:
    copy[(1,)](x, out, n, BLOCK=BLOCK)


def microseconds(
    ways: dict[str, Callable[[], Any]], calls: int, rounds: int, wait: Callable[[], Any]
) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            wait()
            begin = time.perf_counter()
            for _ in range(calls):
                way()
            found[name].append((time.perf_counter() - begin) / calls * 1e6)
    return {name: median(times) for name, times in found.items()}


def main(argv: list[str] | None = None) -> int:
    parser = arguments(__doc__, "callables-overhead.csv")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args(argv)
    if asked.check:
        print(f"triton: {'installed' if find_spec('triton') else 'not installed'}; cuda: {is_there('cuda')}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = microseconds(ways_of_a_function(folder), asked.calls, asked.rounds, lambda: None)
    if asked.device == "cuda":
        import torch

        # 200 calls at a time: the device's queue is never full, so that no call waits for room in it
        found |= microseconds(ways_of_a_kernel(), min(asked.calls, 200), asked.rounds, torch.cuda.synchronize)
    rows = [{"way": name, "us_a_call": round(time_us, 3)} for name, time_us in found.items()]
    for row in rows:
        print(f"{row['way']:36} {row['us_a_call']:9} us")
    write_rows(asked.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
