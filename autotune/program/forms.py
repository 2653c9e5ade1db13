"""Stored forms: how the bytes of a program's array lie on the device, whatever kernel reads them and through which
memory. Two kernels share an array as it is where its forms are equal."""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.layout import Data, Field, Layout


@dataclass(frozen=True)
class Form:
    """``layout`` is that of an array of no family, in global memory."""

    layout: Layout

    def __hash__(self) -> int:
        return hash(self.digest)

    @classmethod
    def make(cls, layout: Layout, shape: tuple[int, ...]) -> "Form":
        """What ``layout`` makes of the bytes of an array of canonical ``shape``."""
        data, is_wide = layout.data, math.prod(shape) >= 2**31
        more: dict[str, Any] = {"plane": data.plane} if layout.is_plane else {}
        more |= {"low": data.low, "high": data.high} if layout.scales else {}
        neutral = Data(
            name="array", role="output", fields=tuple(Field(f.name, f.type) for f in data.fields),
            shape=tuple(f"n{at}" for at in range(len(shape))),
            record=f"Record_{hashlib.sha256(repr(data.dtype).encode()).hexdigest()[:8]}" if data.record else "",
            packed=f"n{data.shape.index(data.packed)}" if layout.packing else "", index_bits=64 if is_wide else 32,
            **more,
        )  # fmt: skip
        kept = replace(layout, data=neutral, memory="global", constant_offset=0)
        if not kept.is_plane:
            kept = replace(kept, dims="1d")
        bare = replace(kept, padding=1, plus=0)
        rooms = [one.room(shape) for one in (kept, bare)] if kept.padding > 1 or kept.plus else []
        # Rows that are whole multiples already are as without padding.
        is_bare = len({(room.strides, room.nbytes) for room in rooms}) == 1
        return cls(bare if is_bare else kept)

    @classmethod
    def make_plain(cls, data: Data, shape: tuple[int, ...]) -> "Form":
        """Elements one behind the other, as they are declared."""
        return cls.make(Layout.make_plain(data), shape)

    @cached_property
    def digest(self) -> str:
        """Eight letters that another form would hardly have."""
        return hashlib.sha256(repr(self.layout).encode()).hexdigest()[:8]

    def restore(self, held: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[Any]:
        """The canonical array that is stored so."""
        return self.layout.restore(replace(self.layout.room(shape), buffer=held), shape)

    def nbytes(self, shape: tuple[int, ...]) -> int:
        return self.layout.room(shape).nbytes

    def text(self, data: Data) -> str:
        """What tells it from the plain one, in the words of family.yaml: ``axes x,i``, ``records soa``."""
        layout, plain = self.layout, Layout.make_plain(data)
        told = []
        if layout.axes != plain.axes:
            told.append("axes " + ",".join(data.shape[axis] for axis in layout.axes))
        if layout.records != plain.records:
            told.append(layout.records)
        if layout.padding > 1 or layout.plus:
            told.append(f"rows padded to {layout.padding}" if layout.padding > 1 else f"rows + {layout.plus}")
        if layout.tiles and any(size > 1 for size in layout.tiles):
            told.append("tiles " + "x".join(map(str, layout.tiles)))
        if layout.curve:
            told.append(layout.curve.kind)
        told += [step.name for step in layout.steps]
        if layout.packing:
            told.append(f"{layout.packing.bits} bits" + (f" x {layout.vector}" if layout.vector > 1 else ""))
        if layout.storage != plain.storage:
            told.append(layout.storage.name if layout.storage else "as read")
        if layout.is_plane:
            told.append(layout.dims)
        usual = "aos" if data.record else ",".join(data.shape) if len(data.shape) > 1 else "plain"
        return " ".join(told) or usual


def explain_unshareable(variant: Variant, data: str, is_written: bool) -> str:
    """Why a program cannot hold the array as this configuration stores it; empty where it can. ``is_written`` says that
    the kernel that reads it writes it too."""
    layout = variant.layouts[data]
    if layout.group != (1, 0):
        return f"{data} is merged with another array"
    if layout.memory == "constant":
        return f"{data} is in constant memory, which a program does not fill between kernels"
    if layout.is_image or (layout.is_plane and layout.memory == "texture"):
        return f"{data} is in an image of the hardware's own"
    if layout.stored_scales is not None:
        return f"{data} is stored with scales that the host finds in its content"
    if is_written and layout.memory in ("readonly", "texture"):
        return f"{data} is updated in place, which {layout.memory} memory does not see"
    if variant.is_reordered(data):
        return f"{data} is reordered by the host"
    return ""
