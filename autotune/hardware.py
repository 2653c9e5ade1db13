"""What runs a variant: its kind, its name, and the limits that a layout or a launch must respect."""

import re
from dataclasses import dataclass, field
from typing import Literal

_2_31 = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Queried from the device; the defaults are compute capability 9.0's (CUDA C++ Programming Guide,
    "Technical Specifications per Compute Capability"), used where no device is there.

    Texture extents are in texels, sizes in bytes.
    """

    grid_x: int = _2_31
    grid_y: int = 65535
    grid_z: int = 65535
    threads_per_block: int = 1024
    shared_bytes_per_block: int = 232448
    constant_bytes: int = 65536
    texture_1d_texels: int = 2**28
    texture_2d_width: int = 131072
    texture_2d_height: int = 65536
    texture_pitched_width: int = 131072
    texture_pitched_height: int = 65000
    texture_pitch_bytes: int = 32  # rows of pitched memory are apart by a multiple of it
    texture_3d: tuple[int, int, int] = (16384, 16384, 16384)
    surface_2d: tuple[int, int] = (131072, 65536)
    surface_3d: tuple[int, int, int] = (16384, 16384, 16384)
    memory_bytes: int = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Device:
    """``kind`` cuda or cpu; ``arch`` is the compile target (``sm_90``, ``x86_64``); ``multiprocessors`` counts
    SMs or CPU threads. Rankings never mix devices, so ``slug`` is part of every record's identity."""

    kind: Literal["cuda", "cpu"]
    name: str
    arch: str
    ordinal: int = 0
    multiprocessors: int = 1
    driver: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def slug(self) -> str:
        """The name as a file name: lower case, words joined by hyphens."""
        text = re.sub(r"\([^)]*\)|@.*", " ", self.name.lower())
        words = re.sub(r"[^a-z0-9]+", "-", text).strip("-") or "unknown"
        return words if self.kind == "cuda" else f"cpu-{words}".replace("cpu-cpu-", "cpu-")

    @property
    def compute_capability(self) -> str:
        """``"9.0"`` for ``sm_90``; empty on a cpu."""
        digits = re.fullmatch(r"sm_(\d+)(\d)[a-z]*", self.arch)
        return f"{digits[1]}.{digits[2]}" if digits else ""
