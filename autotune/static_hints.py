"""What the static figures suggest, with no GPU: how far the next block is, occupancy over block sizes, and which
configurations a neighbour beats in everything the compiler tells.

These are hints on registers, spills and occupancy alone. They know nothing of memory traffic, so none of them is a
verdict: only a measured sweep has one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.occupancy import next_step, occupancy
from autotune.space import Configuration, PolicyValue
from autotune.trial import KernelProfile

__all__ = ["BLOCK_SIZES", "Better", "better_neighbours", "occupancy_curve", "registers_to_next_block"]

BLOCK_SIZES = tuple(range(32, 1025, 32))


@dataclass(frozen=True)
class Better:
    """``configuration`` differs in ``policy`` alone and is nowhere worse: ``why`` names where it is better."""

    configuration: Configuration
    policy: str
    why: str


def registers_to_next_block(arch: str, profile: KernelProfile) -> int | None:
    """How many registers fewer a thread must use for one more block to fit a multiprocessor; None where registers
    are not what binds. Raises DeviceError for an architecture without known limits."""
    shared = profile.static_shared_bytes + profile.dynamic_shared_bytes
    return next_step(arch, profile.block_size, profile.registers, shared) if profile.registers else None


def occupancy_curve(
    arch: str, registers: int, shared_bytes: int, block_sizes: Sequence[int] = BLOCK_SIZES
) -> list[float]:
    """Theoretical occupancy (0..1) at each of ``block_sizes`` threads for a kernel of so many registers a thread and
    bytes of shared memory a block, were those the same at every size. Raises DeviceError."""
    return [occupancy(arch, size, registers, shared_bytes).occupancy for size in block_sizes]


def better_neighbours(
    profiles: Mapping[Configuration, Sequence[KernelProfile]],
) -> dict[Configuration, Better]:
    """Configurations that another one dominates: it differs in a single policy, no kernel of it has lower occupancy
    or more spilled bytes, and some kernel has higher occupancy or fewer spilled bytes. Of several, the one that
    spills least, then has the highest occupancy. ``profiles`` are of one architecture."""
    rest: dict[tuple[str, tuple[tuple[str, PolicyValue], ...]], list[Configuration]] = {}
    for one in profiles:
        for policy in one:
            others = tuple((name, value) for name, value in one.items() if name != policy)
            rest.setdefault((policy, others), []).append(one)
    found: dict[Configuration, tuple[tuple[float, float, str], Better]] = {}
    for (policy, _), group in rest.items():
        for one in group:
            for other in group:
                if other is one or not (why := _better(profiles[one], profiles[other])):
                    continue
                rank = (_spilled(profiles[other]), -_occupancy(profiles[other]), other.id)
                if one not in found or rank < found[one][0]:
                    found[one] = (rank, Better(other, policy, why))
    return {one: better for one, (_, better) in found.items()}


def _better(one: Sequence[KernelProfile], other: Sequence[KernelProfile]) -> str:
    """Where ``other`` is better than ``one``; empty when it is worse anywhere, or better nowhere."""
    kernels = {p.kernel: p for p in other}
    if {p.kernel for p in one} != set(kernels):
        return ""
    gains = []
    for p in one:
        q = kernels[p.kernel]
        if q.occupancy < p.occupancy or _bytes(q) > _bytes(p):
            return ""
        if q.occupancy > p.occupancy:
            gains.append(f"{p.kernel}: occupancy {p.occupancy:.0%} to {q.occupancy:.0%}")
        if _bytes(q) < _bytes(p):
            gains.append(f"{p.kernel}: {_bytes(p)} spilled bytes to {_bytes(q)}")
    return ", ".join(gains)


def _bytes(profile: KernelProfile) -> int:
    return profile.spill_store_bytes + profile.spill_load_bytes


def _spilled(profiles: Iterable[KernelProfile]) -> float:
    return float(sum(_bytes(p) for p in profiles))


def _occupancy(profiles: Iterable[KernelProfile]) -> float:
    return min((p.occupancy for p in profiles), default=0.0)
