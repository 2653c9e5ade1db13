"""Times ways to do one thing beside each other on a GPU: what the examples' compare.py share.

A compare.py gives its ways: functions that take the workload's inputs, put them on the device and return a `Way`. Here
the tuned kernel is put beside them, each result is compared with the family's reference (a way that is wrong is left
out), and all are timed in turns, so that a clock that drifts drifts for all. Data lie on the device before. A sample
lies between two CUDA events, behind a kernel that only waits: while it does the host queues the calls, and so no
Python is in the times. Where the workload says so (cache: cold, as it is without a word), what the cache holds is
flushed before each call, as in a sweep. Times are medians of the samples. A way whose call waits for its result cannot
be queued: it brings a `sample` of its own, `waited` by the host's clock.
"""

import argparse
import csv
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import autotune
from autotune.family import AutotuneError, Inputs, TunedKernel, data_root, load_workload, prepare

TUNED, PLAIN = "autotune", "plain.cu"
CALLED = "autotune, new inputs, waited for"
ROUNDS = 31  # samples of each way
WARM_MS = 1.0  # a sample of a warm workload is of so many calls as take this long
MOST_CALLS = 50
LONGEST_HOLD_MS = 20.0

# One row for each way on each workload. `sizes` are the inputs' extents, `measured` is how many configurations the
# sweep measured, `times_the_tuned` the way's time over the tuned kernel's (above 1 the tuned kernel is faster), of a
# library's call that waits over that of the tuned kernel's that does; `difference` that from the reference.
COLUMNS = (
    "example", "workload", "sizes", "cache", "what", "version", "configuration", "measured",
    "median_ms", "lowest_ms", "highest_ms", "samples", "times_the_tuned", "times_the_plain",
    "operations_per_s", "operation", "difference", "device",
)  # fmt: skip

HOLD = """
extern "C" __global__ void hold(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}
"""


Sample = Callable[[Callable[[], Any], int], float]  # milliseconds a call, of so many calls one after another


@dataclass(frozen=True)
class Way:
    """``call`` is timed; ``result`` gives what the calls made as an array of the host. ``version`` is the library's,
    ``configuration`` the one that autotune chose. ``sample`` takes its times where `sampler`'s would not do; the
    workload must be warm."""

    call: Callable[[], Any]
    result: Callable[[], NDArray[Any]]
    version: str = ""
    configuration: str = ""
    sample: Sample | None = None


Make = Callable[[Inputs], Way]


def plain_way(
    folder: Path, kernel: str, grid: tuple[int, ...], block: tuple[int, ...], given: tuple[Any, ...], out: Any
) -> Way:
    """An example's plain.cu unmodified: its ``kernel`` with the arguments ``given`` makes ``out``."""
    cupy = import_module("cupy")
    raw = cupy.RawKernel((folder / "plain.cu").read_text(), kernel, options=("-std=c++17",))
    return Way(lambda: raw(grid, block, given), lambda: cupy.asnumpy(out), cupy.__version__)


def waited(call: Callable[[], Any], calls: int) -> float:
    """A `Sample` by the host's clock, of a call that returns when its result is there."""
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - started) * 1e3 / calls


def tuned(
    kernel: TunedKernel, inputs: Inputs, opened: ExitStack, anew: Sequence[str] = ()
) -> dict[str, Callable[[], Way]]:
    """The configuration that the policy file has for these sizes: its kernel alone, the result in the layout that was
    chosen, as a sweep measures it; and the whole call of a program, the result in a plain array of cupy's. With inputs
    ``anew``, named in declared order, also a call that is given these, plain arrays of cupy's, each time, and waits."""
    cupy = import_module("cupy")
    handle = opened.enter_context(kernel.prepare(**inputs.arrays, **inputs.options, **inputs.scalars))
    configuration = handle.variant.configuration.id
    print(f"autotune: {handle.match}: {configuration}")
    (output,) = kernel.family.outputs
    shape = tuple(inputs.sizes[extent] for extent in output.shape)
    # cupy has no records: their fields, which are of one type, are a last extent
    plain = (shape, output.dtype)
    if output.record:
        plain = ((*shape, len(output.fields)), np.dtype(output.fields[0].type))

    def alone() -> Way:
        execution = handle.execution
        return Way(
            execution.run,
            lambda: numbers(execution.restore(output.name, shape)),
            autotune.__version__,
            configuration,
        )

    def whole() -> Way:
        out = cupy.empty(*plain)
        return Way(lambda: handle(out=out), lambda: cupy.asnumpy(out), autotune.__version__, configuration)

    def new() -> Way:
        kept = {name: array for name, array in inputs.arrays.items() if name not in anew}
        partly = opened.enter_context(kernel.prepare(**kept, **inputs.options, **inputs.scalars))
        given = [cupy.asarray(inputs.arrays[name]) for name in anew]
        out, stream = cupy.empty(*plain), cupy.cuda.Stream.null

        def call() -> None:
            partly(*given, out=out)
            stream.synchronize()

        return Way(call, lambda: cupy.asnumpy(out), autotune.__version__, configuration, waited)

    return {TUNED: alone, "autotune, whole call": whole} | ({CALLED: new} if anew else {})


def within(
    bound: float, kernel: TunedKernel, inputs: Inputs, opened: ExitStack, given: argparse.Namespace
) -> list[tuple[str, Callable[[], Way]]]:
    """The configuration for results that may be off by so much, by its name; the kernel alone."""
    folder = kernel.family.folder
    other = opened.enter_context(
        autotune.load(folder, device="cuda", policies=given.policies, max_error=bound)
    )
    return [(f"{TUNED}, error up to {bound:g}", tuned(other, inputs, opened)[TUNED])]


def numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Records, whose fields are of one type, with these as one more extent; any other array as it is."""
    names = array.dtype.names
    return array.view(array.dtype[0]).reshape(*array.shape, len(names)) if names else array


def difference(result: NDArray[Any], expected: NDArray[Any]) -> float:
    """Floating point: the largest difference over the largest expected magnitude. Integers: the share of elements that
    differ. Raises ValueError where the shapes do."""
    if result.shape != expected.shape:
        raise ValueError(f"its result has shape {result.shape}, expected is {expected.shape}")
    if expected.dtype.kind in "iu":
        return float(np.mean(result != expected))
    wide = expected.astype(np.float64)
    return float(np.abs(result - wide).max() / np.abs(wide).max())


def checked(
    makes: Mapping[str, Callable[[], Way]], expected: NDArray[Any], allowed: float
) -> dict[str, tuple[Way, float]]:
    """The ways that work here and are right, by name, each with its difference from ``expected``."""
    found = {}
    for name, make in makes.items():
        try:
            way = make()
            way.call()
            apart = difference(way.result(), expected)
        except Exception as problem:  # noqa: BLE001 - a library that does not work here is no reason to lose the rest
            print(f"{name} is left out: {type(problem).__name__}: {problem}")
            continue
        if apart <= allowed:
            found[name] = (way, apart)
        else:  # NaN comes here, too
            print(f"{name} is left out: its result differs by {apart:.3g}, allowed is {allowed:.3g}")
    return found


def sampler(cold: bool) -> Sample:
    """Measures on cupy's device and stream, the default one, as it is for torch, numba and autotune."""
    cupy = import_module("cupy")
    hold = cupy.RawKernel(HOLD, "hold")
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cache = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["l2CacheSize"]
    more_than_cache = cupy.empty(2 * max(cache, 4 << 20), np.uint8)
    queued_ms: dict[Callable[[], Any], float] = {}  # what it took the host to queue a call, the last time

    def sample(call: Callable[[], Any], calls: int) -> float:
        if cold:
            more_than_cache.fill(0)
        held_ms = min(LONGEST_HOLD_MS, 0.1 + 2 * calls * queued_ms.get(call, 0.1))
        hold((1,), (1,), (np.uint64(held_ms * 1e6),))
        begin.record()
        started = time.perf_counter()
        for _ in range(calls):
            call()
        queued_ms[call] = (time.perf_counter() - started) * 1e3 / calls
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / calls

    return sample


def times_of(ways: Mapping[str, Way], sample: Sample, cold: bool, rounds: int) -> dict[str, list[float]]:
    """``rounds`` samples of each way, in milliseconds a call, taken in turns."""
    calls = {}
    for name, way in ways.items():
        taken = way.sample or sample
        taken(way.call, 1)
        once = max(taken(way.call, 1), 1e-6)
        calls[name] = 1 if cold else max(1, min(MOST_CALLS, int(WARM_MS / once)))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append((way.sample or sample)(way.call, calls[name]))
    return times


def measured_by_sweep(summary: Path | None, family: str, workload: str) -> str:
    """How many configurations a sweep measured on the workload, by its summary.csv; empty where it does not say."""
    if summary is None:
        return ""
    with summary.open(newline="") as file:
        found = (
            row for row in csv.DictReader(file) if (row["family"], row["workload"]) == (family, workload)
        )
        return next((row["measured"] for row in found), "")


def rows(
    about: Mapping[str, Any],
    work: float,
    ways: Mapping[str, tuple[Way, float]],
    times: Mapping[str, Sequence[float]],
) -> list[dict[str, Any]]:
    """`COLUMNS` for each way; ``work`` is the number of operations of a call."""
    middle = {name: median(taken) for name, taken in times.items()}

    def over(name: str, other: str) -> str:
        return f"{middle[name] / middle[other]:.3f}" if other in middle else ""

    made = []
    for name, (way, apart) in ways.items():
        alike = CALLED if way.sample is waited and CALLED in middle and name != CALLED else TUNED
        row = {
            **about,
            "what": name,
            "version": way.version,
            "configuration": way.configuration,
            "measured": about["measured"] if way.configuration else "",
            "median_ms": f"{middle[name]:.5g}",
            "lowest_ms": f"{min(times[name]):.5g}",
            "highest_ms": f"{max(times[name]):.5g}",
            "samples": len(times[name]),
            "times_the_tuned": over(name, alike),
            "times_the_plain": over(name, PLAIN),
            "operations_per_s": f"{work / middle[name] * 1e3:.4g}",
            "difference": f"{apart:.2g}",
        }
        made.append({column: row[column] for column in COLUMNS})
    return made


def measured(
    kernel: TunedKernel,
    name: str,
    makes: Mapping[str, Make],
    allowed: float,
    anew: Sequence[str],
    bounds: Sequence[float],
    given: argparse.Namespace,
) -> list[dict[str, Any]]:
    """The rows of one workload."""
    family = kernel.family
    workload = load_workload(family, name)
    inputs = prepare(family, workload, given.data)
    assert family.module is not None and family.operations is not None, (
        "each example has a reference and operations"
    )
    (made,) = family.module.reference(inputs.arrays, {**inputs.options, **inputs.scalars}).values()
    expected = numbers(made)
    device = import_module("cupy").cuda.runtime.getDeviceProperties(0)["name"].decode()
    about = {
        "example": family.name, "workload": workload.name, "operation": family.operation_unit, "device": device,
        "sizes": " ".join(f"{extent}={size}" for extent, size in inputs.sizes.items()),
        "cache": "cold" if workload.cold else "warm",
        "measured": measured_by_sweep(given.summary, family.name, workload.name),
    }  # fmt: skip
    with ExitStack() as opened:
        every = {
            **tuned(kernel, inputs, opened, anew),
            **{
                name: found
                for bound in bounds
                for name, found in within(bound, kernel, inputs, opened, given)
            },
            **{what: lambda make=make: make(inputs) for what, make in makes.items()},  # type: ignore[misc]
        }
        ways = checked(every, expected, allowed)
        calls = {what: way for what, (way, _) in ways.items()}
        times = times_of(calls, sampler(workload.cold), workload.cold, given.rounds)
    work = float(
        family.operations.evaluate(
            {**family.space.control, **inputs.sizes, **inputs.options, **inputs.scalars}
        )
    )
    return rows(about, work, ways, times)


def compare(
    doc: str | None, folder: Path, makes: Mapping[str, Make], allowed: float, anew: Sequence[str] = (),
    bounds: Sequence[float] = (),
) -> None:  # fmt: skip
    """What a compare.py runs: ``makes`` are its ways by name, plain.cu among them; ``allowed`` is the largest
    `difference` from the reference; ``anew`` as `tuned` has it, ``bounds`` as `within` has them. Raises SystemExit with
    a word where something is missing."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", action="append", help="again for more; default: the family's own")
    parser.add_argument("--policies", type=Path, help="folder of the policy files that a sweep wrote")
    parser.add_argument("--summary", type=Path, help="that sweep's summary.csv, for how many it measured")
    parser.add_argument("--data", type=Path, default=data_root())
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=Path(f"compare-{folder.name}.csv"))
    given = parser.parse_args()
    if find_spec("cupy") is None:
        raise SystemExit("compare.py needs cupy: pip install cupy-cuda12x, or the one for your CUDA version")
    try:
        with autotune.load(folder, device="cuda", policies=given.policies) as kernel:
            found = [
                row
                for name in given.workload or [kernel.family.default_workload]
                for row in measured(kernel, name, makes, allowed, anew, bounds, given)
            ]
    except AutotuneError as problem:  # no GPU, no such workload: its message says what to do
        raise SystemExit(f"compare.py: {problem}") from problem
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    for row in found:
        print(
            f"{row['workload']:14} {row['what']:34} {row['median_ms']:>10} ms"
            f" {row['times_the_tuned']:>9} x the tuned {row['operations_per_s']:>11} {row['operation']}/s"
        )
