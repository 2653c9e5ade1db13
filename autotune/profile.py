"""The static profile of a variant: what the compiler says, and the theoretical occupancy that follows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autotune.device import Device
from autotune.occupancy import occupancy
from autotune.toolchain import Compiled
from autotune.trial import KernelProfile
from autotune.variant import Variant

__all__ = ["profiles"]


def profiles(
    variant: Variant, compiled: Compiled, names: Mapping[str, Any], device: Device
) -> tuple[KernelProfile, ...]:
    """One profile per kernel. On a cpu there are no registers to count and the figures are zero. What reads a name that
    is not in ``names``, as a static pass without sizes has it, is left at zero, and occupancy with it."""
    found = []
    for kernel in variant.family.kernels.values():
        figures: dict[str, Any] = dict(compiled.figures.get(kernel.name, {}))
        if not kernel.block_names <= names.keys():
            found.append(KernelProfile(kernel=kernel.name, **figures))
            continue
        block, shared_bytes = variant.block(kernel, names)
        profile = KernelProfile(
            kernel=kernel.name,
            block_size=block[0] * block[1] * block[2],
            dynamic_shared_bytes=shared_bytes,
            **figures,
        )
        if device.kind == "cuda" and figures:
            shared = profile.static_shared_bytes + profile.dynamic_shared_bytes
            at = occupancy(device.arch, profile.block_size, profile.registers, shared)
            profile = replace(
                profile, blocks_per_sm=at.blocks_per_sm, occupancy=at.occupancy, limited_by=at.limited_by
            )
        found.append(profile)
    return tuple(found)
