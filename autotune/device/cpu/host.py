"""What the host has for the cpu backend: threads, memory, caches."""

import os
import re
from pathlib import Path

from autotune.device.cpu.native import CONSTANT_BYTES
from autotune.errors import DeviceError
from autotune.hardware import Limits

__all__ = ["last_level_cache_bytes", "limits", "threads"]


_NO_LIMIT = 2**31 - 1

_ASSUMED_CACHE_BYTES = 64 << 20


def threads() -> int:
    """As many as AUTOTUNE_CPU_THREADS says, else as this process may run on. Raises DeviceError."""
    named = os.environ.get("AUTOTUNE_CPU_THREADS", "")
    if named:
        if not named.isdigit() or int(named) == 0:
            raise DeviceError(f"AUTOTUNE_CPU_THREADS is {named!r}; it is a number of threads, 1 or more")
        return int(named)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limits() -> Limits:
    """The host's memory, constant memory and block size as on a GPU, and no other limit."""
    try:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory_bytes = Limits.memory_bytes
    return Limits(
        grid_x=_NO_LIMIT,
        grid_y=_NO_LIMIT,
        grid_z=_NO_LIMIT,
        shared_bytes_per_block=_NO_LIMIT,
        constant_bytes=CONSTANT_BYTES,
        texture_1d_texels=_NO_LIMIT,
        texture_2d_width=_NO_LIMIT,
        texture_2d_height=_NO_LIMIT,
        texture_pitched_width=_NO_LIMIT,
        texture_pitched_height=_NO_LIMIT,
        texture_pitch_bytes=1,
        memory_bytes=memory_bytes,
    )


def last_level_cache_bytes() -> int:
    """The largest cache the system tells of, or 64 MiB."""
    found = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        digits = re.fullmatch(r"(\d+)([KMG]?)", path.read_text().strip())
        if digits:
            found.append(int(digits[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[digits[2]])
    return max(found, default=_ASSUMED_CACHE_BYTES)
