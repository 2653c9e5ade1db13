"""The static profile of a variant: what the compiler says, and the theoretical occupancy that follows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.compile.occupancy_model import occupancy
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant
from autotune.declaration import FamilyKernel
from autotune.errors import AutotuneError
from autotune.hardware import Device


@dataclass(frozen=True, kw_only=True)
class KernelProfile:
    """What the compiler says of one kernel of a variant, and the theoretical occupancy that follows.

    Per thread: ``registers``, ``local_bytes`` (stack frame), ``spill_store_bytes``, ``spill_load_bytes``.
    Per block: ``static_shared_bytes``, ``dynamic_shared_bytes``, ``block_size`` threads. ``blocks_per_sm`` and
    ``occupancy`` (0..1, active warps over the maximum) are the documented limits' (see ``occupancy``);
    ``limited_by`` names what binds. ``blocks`` are those of the grid, 0 where the sizes are not known; ``numbers`` are
    the compiled ones that the launch reads. A cpu has no
    figures of a thread or a multiprocessor: all zero, ``limited_by`` empty; so it is where a static pass does not know
    the sizes that a block depends on, but for its threads where they depend on none.
    """

    kernel: str
    block_size: int = 0
    registers: int = 0
    local_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    constant_bytes: int = 0
    blocks_per_sm: int = 0
    occupancy: float = 0.0
    limited_by: str = ""
    blocks: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def spilled_bytes(self) -> int:
        """Of a thread: written and read back."""
        return self.spill_store_bytes + self.spill_load_bytes

    @property
    def shared_bytes(self) -> int:
        """Of a block: known when compiled and asked for at launch."""
        return self.static_shared_bytes + self.dynamic_shared_bytes


def profiles(
    variant: Variant, compiled: Compiled, names: Mapping[str, Any], device: Device
) -> tuple[KernelProfile, ...]:
    """One profile per kernel. On a cpu there are no registers to count and the figures are zero. What reads a name that
    is not in ``names``, as a static pass without sizes has it, is left at zero, and occupancy with it."""
    kernels, names = [], {**names, **compiled.numbers}
    for kernel in variant.kernels.values():
        figures: dict[str, Any] = dict(compiled.figures.get(kernel.name, {}))
        if not kernel.block_names <= names.keys():
            threads = _threads(kernel, names)
            kernels.append(KernelProfile(kernel=kernel.name, block_size=threads, **figures))
            continue
        block, shared_bytes = variant.block(kernel, names)
        profile = KernelProfile(
            kernel=kernel.name,
            block_size=block[0] * block[1] * block[2],
            dynamic_shared_bytes=shared_bytes,
            blocks=_blocks(variant, kernel, names),
            numbers={name: n for name, n in compiled.numbers.items() if name in kernel.names},
            **figures,
        )
        if device.kind == "cuda" and figures:
            at = occupancy(device.arch, profile.block_size, profile.registers, profile.shared_bytes)
            profile = replace(
                profile, blocks_per_sm=at.blocks_per_sm, occupancy=at.occupancy, limited_by=at.limited_by
            )
        kernels.append(profile)
    return tuple(kernels)


def _threads(kernel: FamilyKernel, names: Mapping[str, Any]) -> int:
    """Of a block whose shared memory is not known; 0 where its threads are not either."""
    is_known = all(item.names <= names.keys() for item in kernel.block)
    return math.prod(item.integer(names) for item in kernel.block) if is_known else 0


def _blocks(variant: Variant, kernel: FamilyKernel, names: Mapping[str, Any]) -> int:
    try:
        return math.prod(variant.geometry(kernel, names).grid)
    except AutotuneError:  # an extent, or a scalar that follows from one, is not known
        return 0
