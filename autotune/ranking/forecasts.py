"""How long a launch should take on a GPU, from what its warps ask of memory and from its static profile: cycles of one
multiprocessor, which tell configurations apart and are no times.

Five things go on side by side, and the slowest counts most (a norm of the third degree): the lines and texels that the
first cache serves, the sectors that come from behind it, the words of constant and shared memory, the instructions that
ask, and the latency of requests that warps have to wait for, which the warps that are resident share. The figures are a
recent GPU's as microbenchmarks have them (Jia et al., *Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking*, 2018; Luo et al., *Benchmarking and Dissecting the Nvidia Hopper GPU Architecture*, 2024), rounded.
What a kernel computes between its accesses is not known.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.compile import Geometry, KernelProfile
from autotune.declaration import Configuration, Policy, PolicyValue
from autotune.ranking.warp_requests import WARP, ArrayTraffic, Requests

CACHE_BYTES = 256 << 10  # of a multiprocessor, first cache and shared memory together
_MULTIPROCESSORS = {
    "sm_75": 68, "sm_80": 108, "sm_86": 84, "sm_89": 128, "sm_90": 132, "sm_100": 148, "sm_120": 170,
}  # fmt: skip
_COMMON_MULTIPROCESSORS = 132
_SECTOR_CYCLES = 1.0  # from behind the first cache
_REQUEST_CYCLES = 3.0  # issue of a request and of the instructions around it, on four schedulers
_WARP_CYCLES = 15.0  # a warp begins, finds its place and ends: some sixty instructions, on four schedulers
_HIT, _TEXTURE_HIT, _MISS = 33.0, 80.0, 260.0  # latency
_AT_ONCE = 2.0  # requests of one warp under way
_NORM = 3
_SAME = 0.02  # two estimates that differ by less are the same
PARTS = ("cache", "beyond the cache", "constant and shared", "instructions", "latency")


@dataclass(frozen=True)
class Launched:
    """One traced launch on one architecture; ``traffic`` is that of its first ``blocks``, by array. ``lanes`` is how
    many threads of a warp were traced, on average, before the trace was full: 32 where it was not."""

    geometry: Geometry
    requests: Requests
    kernel: str = ""
    blocks: int = 0
    lanes: float = 32.0
    traffic: tuple[ArrayTraffic, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """``cycles`` of a multiprocessor, all traced launches together; ``bound`` is what takes most of them; ``further``
    are the launches that came after those. Without launches ``message`` says why."""

    configuration: Configuration
    cycles: float
    bound: str
    launches: tuple[Launched, ...] = ()
    message: str = ""
    further: Sequence[tuple[str, Geometry]] = ()


def forecast(
    arch: str, configuration: Configuration, launches: Sequence[tuple[Launched, KernelProfile]]
) -> Forecast:
    """The estimate for launches with the profiles of their kernels."""
    parts = [0.0] * len(PARTS)
    cycles = 0.0
    for launched, profile in launches:
        found = _parts(arch, launched, profile)
        cycles += sum(part**_NORM for part in found) ** (1 / _NORM)
        parts = [a + b for a, b in zip(parts, found, strict=True)]
    bound = PARTS[parts.index(max(parts))]
    return Forecast(configuration, cycles, bound, tuple(launched for launched, _ in launches))


def cache_share(profile: KernelProfile, blocks: int) -> float:
    """Bytes of the first cache that ``blocks`` blocks have, where all that fit are resident."""
    resident = max(1, profile.blocks_per_sm)
    free = CACHE_BYTES - resident * profile.shared_bytes
    return max(0.0, free * min(1.0, blocks / resident))


def _parts(arch: str, launched: Launched, profile: KernelProfile) -> list[float]:
    """Cycles of each of PARTS, of the multiprocessor that gets most blocks."""
    blocks = -(-math.prod(launched.geometry.grid) // _MULTIPROCESSORS.get(arch, _COMMON_MULTIPROCESSORS))
    of_block = -(-launched.geometry.block_size // WARP)
    waves = -(-blocks // max(1, profile.blocks_per_sm))
    r, warps, resident = launched.requests, blocks * of_block, blocks * of_block / waves
    held = max(0.0, r.plain + r.texture - r.waited)
    hit = _TEXTURE_HIT if r.texture > r.plain else _HIT
    latency = (held * hit + r.waited * _MISS) / _AT_ONCE / resident
    instructions = r.count * _REQUEST_CYCLES + _WARP_CYCLES
    one = (r.lines + r.quads, r.missed * _SECTOR_CYCLES, r.constant + r.shared, instructions, latency)
    return [warps * part for part in one]


def sort_by_cycles(forecasts: Sequence[Forecast]) -> list[Forecast]:
    """The fastest first; without those that could not be traced."""
    return sorted((f for f in forecasts if f.launches), key=lambda f: (f.cycles, f.configuration.id))


def find_unseen_policies(forecasts: Sequence[Forecast], policies: Sequence[Policy]) -> list[str]:
    """The policies that the estimates do not see: nearly nowhere do two configurations that differ in them alone differ
    in cycles."""
    return [policy.name for policy in policies if _is_unseen(sort_by_cycles(forecasts), policy)]


def _is_unseen(forecasts: Sequence[Forecast], policy: Policy) -> bool:
    groups: dict[tuple[tuple[str, PolicyValue], ...], list[float]] = {}
    for one in forecasts:
        others: Mapping[str, PolicyValue] = {n: v for n, v in one.configuration.items() if n != policy.name}
        groups.setdefault(tuple(others.items()), []).append(one.cycles)
    spreads = sorted(max(group) / max(min(group), 1e-9) - 1 for group in groups.values() if len(group) > 1)
    return bool(spreads) and spreads[int(0.9 * (len(spreads) - 1))] < _SAME
