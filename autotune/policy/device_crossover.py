"""Where a GPU overtakes the cpu: the amount of work above which a single call is faster there, all included."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.declaration import Family, yamlfile
from autotune.policy.file import Crossover, Entry, PolicyFile


def operations(family: Family, sizes: Mapping[str, int], options: Mapping[str, Any],
               scalars: Mapping[str, Any]) -> float:  # fmt: skip
    """The work of one call: what the family declares as ``operations``, else the product of its extents."""
    if family.operations is None:
        return volume(sizes)
    return float(family.operations.evaluate({**sizes, **options, **scalars, **family.space.control}))


def volume(sizes: Mapping[str, float]) -> float:
    """The product of the extents."""
    return math.prod(float(size) for size in sizes.values())


def call_ms(item: Entry, kind: str) -> float:
    """One call that begins with host arrays, on a device of ``kind``: layout transform, transfer, kernels. A GPU
    applies the layouts itself, in a time that no sweep measures; what the transform takes the host is not in it."""
    return item.median_ms + item.transfer_ms + (0.0 if kind == "cuda" else item.transform_ms)


def expected_ms(
    entries: Sequence[Entry],
    work: float,
    distances: Sequence[float] | None = None,
    *,
    call: str = "",
) -> float:
    """The time of ``work`` operations from the ``entries`` of one device, in milliseconds; 0 when they say nothing.
    ``call`` names the kind of device, and adds what a call takes beside the kernels (``call_ms``).

    It is the work times a mean time an operation: the geometric mean over the entries, each weighted by one over the
    square of its distance from the input (Shepard, A two-dimensional interpolation function for irregularly-spaced
    data, 1968). ``distances`` are those (see ``features.distance``); without them the logarithm of the ratio of the
    work is taken. Less than half the work of the smallest entry says nothing: launches then take most of the time."""
    known = [
        (item, abs(math.log(work / item.operations)) if distances is None else distances[i])
        for i, item in enumerate(entries)
        if item.operations > 0 and work > 0
    ]
    if not known or work < min(item.operations for item, _ in known) / 2:
        return 0.0
    weights = [1 / max(away, 1e-6) ** 2 for _, away in known]
    taken = [call_ms(item, call) if call else item.median_ms for item, _ in known]
    rates = [math.log(ms / item.operations) for ms, (item, _) in zip(taken, known, strict=True)]
    mean = sum(w * rate for w, rate in zip(weights, rates, strict=True)) / sum(weights)
    return work * math.exp(mean)


def crossover(cpu: PolicyFile, gpu: PolicyFile) -> Crossover | None:
    """Where ``gpu`` overtakes ``cpu``, from the workloads with the same input that both were tuned on; None when there
    is none. The threshold is the one that errs least (sum of the logarithms of the slowdowns) on those; it lies where
    the two times meet, were they straight lines between its neighbours on logarithmic scales. 0: the GPU is always
    faster; ``yamlfile.LARGEST``, the largest number of a policy file: never."""
    both = sorted(
        (
            gpu.entries[name].operations,
            math.log(call_ms(item, "cpu") / call_ms(gpu.entries[name], "cuda")),
            name,
        )
        for name, item in cpu.entries.items()
        if name in gpu.entries and _same_input(item, gpu.entries[name])
    )
    if not both:
        return None
    # Below position i the cpu is taken: that errs by log(cpu / gpu) where it is slower, and the other way round above.
    errors = [
        sum(max(0.0, ratio) for _, ratio, _ in both[:i]) + sum(max(0.0, -ratio) for _, ratio, _ in both[i:])
        for i in range(len(both) + 1)
    ]
    at = errors.index(min(errors))
    names = sorted(name for _, _, name in both)
    device = cpu.path.stem if cpu.path else cpu.device.name
    if at == 0:
        return Crossover(device=device, below=0.0, workloads=names)
    if at == len(both):
        return Crossover(device=device, below=yamlfile.LARGEST, workloads=names)
    (low, low_ratio, _), (high, high_ratio, _) = both[at - 1], both[at]
    rises = high_ratio > low_ratio
    share = min(1.0, max(0.0, -low_ratio / (high_ratio - low_ratio))) if rises else 0.5
    return Crossover(device=device, below=round(low * (high / low) ** share, 1), workloads=names)


def _same_input(a: Entry, b: Entry) -> bool:
    alike = a.workload_digest == b.workload_digest and dict(a.options) == dict(b.options)
    return alike and a.operations > 0 and b.operations > 0
