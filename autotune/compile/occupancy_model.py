"""Theoretical occupancy from the documented limits of each compute capability, without a device.

The rules are those of NVIDIA's occupancy calculator (``cuda_occupancy.h`` in the CUDA toolkit).
"""

import re
from dataclasses import dataclass
from typing import Literal

from autotune.errors import DeviceError, suggestion

LimitedBy = Literal["blocks", "warps", "registers", "shared", "launch"]


_WARP = 32
_PARTITIONS = 4  # per multiprocessor; each has its own register file and schedules its own warps
_REGISTERS = 65536  # per multiprocessor, and the most one block may have
_REGISTER_UNIT = 256  # registers are allocated per warp in this unit
_REGISTERS_PER_THREAD = 255
_THREADS_PER_BLOCK = 1024


@dataclass(frozen=True)
class SmLimits:
    """Of one multiprocessor: resident ``warps`` and ``blocks``, and shared memory in bytes: all of it, what a
    block may use after opting in, the allocation unit, and what the system keeps for itself per block."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int
    shared_unit: int
    shared_reserved: int


def _limits(warps: int, blocks: int, shared_kib: int, *, reserves: bool = True) -> SmLimits:
    reserved = 1024 if reserves else 0
    shared = shared_kib * 1024
    return SmLimits(warps, blocks, shared, shared - reserved, 128 if reserves else 256, reserved)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
LIMITS = {
    "7.0": _limits(64, 32, 96, reserves=False),
    "7.2": _limits(64, 32, 96, reserves=False),
    "7.5": _limits(32, 16, 64, reserves=False),
    "8.0": _limits(64, 32, 164),
    "8.6": _limits(48, 16, 100),
    "8.7": _limits(48, 16, 164),
    "8.8": _limits(48, 16, 100),
    "8.9": _limits(48, 24, 100),
    "9.0": _limits(64, 32, 228),
    "10.0": _limits(64, 32, 228),
    "10.3": _limits(64, 32, 228),
    "11.0": _limits(48, 24, 228),
    "12.0": _limits(48, 24, 100),
    "12.1": _limits(48, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    """``occupancy`` is resident warps over the most a multiprocessor holds, 0..1. ``limited_by`` names what
    binds; ``launch`` says that not even one block fits, so that the kernel cannot start."""

    blocks_per_sm: int
    warps_per_sm: int
    occupancy: float
    limited_by: LimitedBy


def occupancy(arch: str, block_size: int, registers: int, shared_bytes: int) -> Occupancy:
    """The theoretical occupancy of a kernel on ``arch`` (``sm_90``, ``sm_90a`` or ``9.0``).

    ``block_size`` in threads, ``registers`` per thread, ``shared_bytes`` per block (static and dynamic). The
    largest shared-memory carveout is assumed, as the driver chooses it by default. Where several limits bind,
    the first of warps, blocks, shared, registers is named, so ``registers`` means that registers alone bind.
    Raises DeviceError for an unknown architecture.
    """
    limits = LIMITS[_capability(arch)]
    warps = -(-block_size // _WARP)
    if block_size < 1 or block_size > _THREADS_PER_BLOCK:
        return Occupancy(0, 0, 0.0, "launch")
    bounds: dict[LimitedBy, int] = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "shared": _blocks_by_shared(limits, shared_bytes),
        "registers": _blocks_by_registers(warps, registers),
    }
    limited_by = min(bounds, key=lambda name: bounds[name])
    blocks = bounds[limited_by]
    if blocks == 0:
        return Occupancy(0, 0, 0.0, "launch")
    return Occupancy(blocks, blocks * warps, blocks * warps / limits.warps, limited_by)


def next_step(arch: str, block_size: int, registers: int, shared_bytes: int) -> int | None:
    """How many registers fewer per thread would let one more block reside, or None when registers are not
    what binds. A kernel that cannot launch for its registers gets the number that lets it launch.

    Raises DeviceError for an unknown architecture.
    """
    now = occupancy(arch, block_size, registers, shared_bytes)
    if now.limited_by not in ("registers", "launch"):
        return None
    for fewer in range(1, registers):
        if occupancy(arch, block_size, registers - fewer, shared_bytes).blocks_per_sm > now.blocks_per_sm:
            return fewer
    return None


def _blocks_by_registers(warps: int, registers: int) -> int:
    if registers > _REGISTERS_PER_THREAD:
        return 0
    per_warp = _round_up(max(registers, 1) * _WARP, _REGISTER_UNIT)
    # A warp's registers lie in one partition, so what a partition has left over serves no other.
    return (_REGISTERS // _PARTITIONS // per_warp) * _PARTITIONS // warps


def _blocks_by_shared(limits: SmLimits, shared_bytes: int) -> int:
    used = _round_up(shared_bytes + limits.shared_reserved, limits.shared_unit)
    if used > limits.shared_bytes_per_block + limits.shared_reserved:
        return 0
    return limits.shared_bytes // used if used else limits.blocks


def _capability(arch: str) -> str:
    match = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", arch)
    capability = f"{match[1]}.{match[2]}" if match else arch
    if capability not in LIMITS:
        hint = suggestion(capability, LIMITS)
        message = f"no occupancy limits for compute capability {arch!r}{hint} (known: {', '.join(LIMITS)})"
        raise DeviceError(message)
    return capability


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
