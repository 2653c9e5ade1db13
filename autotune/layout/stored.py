"""An array as a device holds it: its bytes, what a kernel is given of it, and whether a device takes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.hardware import Limits
from autotune.layout.arrays import Data
from autotune.layout.image import Raster

Bytes = NDArray[np.uint8]


POINTER_BYTES = 8  # which an accessor begins with


def handle(argument: bytes) -> int:
    """The handle that an accessor begins with, as ``Stored.argument`` was given it: an address, or a texture's."""
    return int.from_bytes(argument[:POINTER_BYTES], "little")


def members(arguments: Sequence[bytes]) -> tuple[bytearray, list[int]]:
    """The bytes of ``arguments`` as C++ lays out the members of a struct, and a launch its parameters; and where each
    begins: at its natural alignment, its size up to 8 (an accessor's is 8)."""
    buffer, offsets = bytearray(), []
    for argument in arguments:
        buffer += bytes(-len(buffer) % _alignment(argument))
        offsets.append(len(buffer))
        buffer += argument
    return buffer, offsets


def struct_of(arguments: Sequence[bytes]) -> bytes:
    """The bytes of a C++ struct whose members are ``arguments``, in that order."""
    buffer, _ = members(arguments)
    return bytes(buffer + bytes(-len(buffer) % max(map(_alignment, arguments))))


def _alignment(argument: bytes) -> int:
    return len(argument) if len(argument) in (1, 2, 4) else 8


@dataclass(frozen=True)
class Known:
    """What an accessor's type says of its array, by axis, as constants of the compiler: 0 where a kernel is given the
    number. ``part_stride`` is 1 where no address depends on it."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    part_stride: int = 1

    def list_given(
        self, extents: tuple[int, ...], strides: tuple[int, ...], part_stride: int
    ) -> list[tuple[int, ...]]:
        """What a kernel is given: those extents, strides and part stride that are not known."""
        numbers = (extents, self.extents), (strides, self.strides), ((part_stride,), (self.part_stride,))
        return [tuple(n for n, known in zip(*each, strict=True) if not known) for each in numbers]


@dataclass(frozen=True)
class Stored:
    """An array as a device holds it. ``buffer`` is the bytes in address order, or None for an output that needs
    room and no content; ``nbytes`` its size. ``plane`` is (width, height) in texels when dims are 2d. ``extents``
    are what the kernel sees (packed), ``strides`` and ``part_stride`` are in elements and texels. ``raster`` is of a
    texture or a surface with the array's own rows, ``not_an_image`` why there can be none. ``known`` is what the
    accessor's type says; None where it says nothing."""

    buffer: Bytes | None
    nbytes: int
    texel_bytes: int
    memory: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    part_stride: int
    index_bits: int = 32
    plane: tuple[int, int] | None = None
    pitched: bool = False
    constant_offset: int = 0
    raster: Raster | None = None
    not_an_image: str = ""
    known: Known | None = None

    @property
    def texels(self) -> int:
        return self.nbytes // self.texel_bytes

    def argument(self, handle: int) -> bytes:
        """The bytes of the C++ accessor (array.cuh), passed by value: the handle, and of extents, strides and part
        stride what its type does not say."""
        index, none = f"u{(self.index_bits + 1) // 8}", (0,) * len(self.extents)
        known = self.known or Known(none, none, 0)
        given = known.list_given(self.extents, self.strides, self.part_stride)
        kinds = zip(("extents", "strides", "part_stride"), ("u4", index, index), given, strict=True)
        members: list[Any] = [("handle", "u8")]
        members += [(name, kind, (len(numbers),)) for name, kind, numbers in kinds]
        accessor = np.zeros(1, np.dtype(members, align=True))
        for (name, *_), numbers in zip(members, [(handle,), *given], strict=True):
            accessor[name] = numbers
        return accessor.tobytes()

    def explain_refusal(self, data: Data, limits: Limits) -> str:
        """Why this, which ``data`` declares, does not fit on a device with ``limits``; empty when it does."""
        name, texels = data.name, self.texels
        if self.not_an_image:
            return self.not_an_image
        is_long = max(self.extents) >= 2**32
        if texels >= 2**data.index_bits or is_long:
            more = "extents: 32-bit" if is_long else "index_bits: 64 in family.yaml widens it"
            return f"{name}: {texels} texels pass the range of {data.index_bits}-bit addresses ({more})"
        if max(*self.strides, self.part_stride) >= 2**data.index_bits:  # of one row, there may be no second
            return f"{name}: strides of {self.strides} pass the range of {data.index_bits}-bit addresses"
        allowed = max(0, min(data.constant_bytes, limits.constant_bytes - self.constant_offset))
        if self.memory == "constant" and self.nbytes > allowed:
            reason = f"{name}: {self.nbytes} bytes do not fit in {allowed} bytes of constant memory"
            if allowed < self.nbytes <= limits.constant_bytes:
                reason += ", its part of it: constant_bytes in family.yaml says the most that each array there takes"
            return reason
        if self.raster is not None and (reason := self.raster.explain_refusal(name, limits)):
            return reason
        is_line = self.plane is None and self.raster is None
        if self.memory == "texture" and is_line and texels > limits.texture_1d_texels:
            return f"{name}: {texels} texels pass the 1D texture limit of {limits.texture_1d_texels}"
        if self.memory == "texture" and self.plane is not None:
            most = limits.texture_2d_width, limits.texture_2d_height
            if self.pitched:
                most = limits.texture_pitched_width, limits.texture_pitched_height
            if self.plane[0] > most[0] or self.plane[1] > most[1]:
                return f"{name}: a plane of {self.plane} texels passes the 2D texture limit of {most}"
        if self.nbytes > limits.memory_bytes:
            return f"{name}: {self.nbytes} bytes pass the device's memory of {limits.memory_bytes}"
        return ""
