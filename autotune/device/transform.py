"""Layouts applied on the device, to arrays that are there already (transform.cu).

It does what ``Layout.apply`` does for one array that is not merged with others: packing, vector width, storage as
float16, bfloat16, float8 and float32, axes, padding, tiles, curves, steps of indices, records, dims in linear memory.
``explain_refusal`` says what it cannot do; such an array goes through the host.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Batch, Cache, Geometry, VariantSource, compile_one
from autotune.declaration import source_files
from autotune.device.backend import Backend, Launch, Module, Placed
from autotune.device.foreign import View
from autotune.files import include_dir
from autotune.layout import CURVES, Layout

KERNEL = "move_texels"
_MOST_AXES = 6
_MOST_PARTS = 32  # of a record whose fields lie in groups
_TEXTURE_ALIGNMENT = 512  # bytes, on every GPU (CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)
_BLOCK = 256
_MOST_BLOCKS = 2**31 - 1


# transform.cu: Codec, by its number
CODECS = ("as it is", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
# transform.cu: Move
MOVE = np.dtype(
    [
        ("elements", "u8"), ("part_stride", "u8"), ("extents", "u8", _MOST_AXES), ("strides", "i8", _MOST_AXES),
        ("blocks", "u8", _MOST_AXES),
        ("packed_stride", "i8"), ("packed", "u8"), ("packed_axis", "u4"), ("parts", "u4"), ("texel_bytes", "u4"),
        ("members", "u4"), ("member", "u4"), ("lanes", "u4"), ("width", "u4"), ("rows", "u4"), ("bits", "u4"),
        ("planar", "u4"), ("joined", "u4"), ("element_bytes", "u4"), ("inward", "u4"), ("codec", "u4"),
        ("tile", "u4", _MOST_AXES), ("side", "u4", _MOST_AXES), ("curve", "u4"), ("groups", "u4"),
        ("width_of_group", "u4"), ("fields", "u4"), ("before", "u1", 32), ("count", "u1", 32), ("within", "u1", 32),
    ],
    align=True,
)  # fmt: skip


@cache
def batch() -> Batch:
    """The kernel as one compiler request; what is kept of it is known by all files that it is made from."""
    source = Path(__file__).with_name("transform.cu")
    key = source_files.combine(
        source_files.hash_files(source_files.follow_includes([source], source.parent, include_dir()))
    )
    variant = VariantSource(f"autotune-transform-{key}", "Plain", "struct Plain {};\n", (KERNEL,))
    return Batch(source, (include_dir(),), (variant,))


def is_as_stored(layout: Layout, view: View) -> bool:
    """Whether the array's bytes are already what ``layout`` makes of them, so that a kernel can use them in place, by a
    texture over them or by a copy in constant memory where the layout asks for that."""
    return (
        layout.is_in_place(view.shape)
        and view.dtype == layout.dtype
        and (layout.storage is None or not layout.data.record)
        and view.is_contiguous
        and view.address % alignment(layout) == 0
    )


def lie_merged(layouts: Sequence[Layout], views: Sequence[View]) -> bool:
    """Whether the arrays lie by turns as their ``layouts`` (grouping: merged) would store them, so that a kernel can
    use them in place."""
    members = len(layouts)
    first, size = views[0], layouts[0].data.dtype.itemsize
    return all(
        replace(layout, group=(1, 0)).is_canonical(view.shape)
        and layout.group == (members, member)
        and layout.memory != "constant"
        and view.dtype == layout.data.dtype
        and view.strides == (members * size,)
        and view.address == first.address + member * size
        and first.address % alignment(layout) == 0
        for member, (layout, view) in enumerate(zip(layouts, views, strict=True))
    )


def alignment(layout: Layout) -> int:
    """Bytes whose multiple the address of an array that is used in place has to be."""
    return _TEXTURE_ALIGNMENT if layout.memory == "texture" else layout.texel_bytes


def view_staged(array: NDArray[Any], address: int = 0) -> View:
    """What a canonical array of the host is when its bytes are on the GPU at ``address``."""
    return View(None, address, array.shape, array.strides, array.dtype)


def explain_refusal(layout: Layout, view: View, inward: bool = True) -> str:
    """Why the array cannot be moved on the device (``inward``: from the caller's array to the stored one); empty when
    it can. Constant memory is filled from linear memory, which is what it is stored in."""
    itemsize = view.dtype.itemsize
    if len(view.shape) > _MOST_AXES:
        return f"{len(view.shape)} axes, and {_MOST_AXES} are the most"
    if layout.memory == "texture" and layout.is_plane:
        return f"texture memory in {layout.dims} is no linear memory"
    if layout.is_surface and not inward:
        return "what is written through a surface is in no linear memory"
    are_few = not layout.field_groups or layout.parts <= _MOST_PARTS
    if not are_few or not all(step.device for step in layout.steps):
        return f"steps of indices for the host alone, or more than {_MOST_PARTS} parts of fields in groups"
    if layout.group != (1, 0):
        return "it is merged with other arrays"
    if layout.packing:
        if not inward:
            return "packed values are unpacked on the host"
        if view.dtype.kind not in "iu" or itemsize > 8:
            return f"elements of {view.dtype}, and whole numbers are needed"
        unit = itemsize
    elif view.dtype == layout.dtype and not (layout.storage and layout.data.record):
        unit = layout.texel_bytes
    elif view.dtype != layout.data.dtype:
        return f"elements of {view.dtype}, and {layout.data.dtype} is declared"
    elif layout.storage:
        if layout.storage.name not in CODECS:
            return f"storage {layout.storage.name} is made on the host"
        unit = np.dtype(layout.data.fields[0].type).itemsize
    else:
        unit = layout.texel_bytes
    if view.address % unit or any(s % unit for s, n in zip(view.strides, view.shape, strict=True) if n > 1):
        return f"addresses that are no multiples of {unit} bytes"
    return ""


def move(layout: Layout, view: View, inward: bool) -> bytes:
    """The kernel's argument: what goes where. The addresses come next to it."""
    shape, stored = view.shape, layout.room(view.shape)
    rank, packing = len(shape), layout.packing
    missing = _MOST_AXES - rank
    made = np.zeros(1, MOVE)
    strides = [0 if extent == 1 else stride for stride, extent in zip(view.strides, shape, strict=True)]
    made["elements"] = math.prod(stored.extents)
    made["part_stride"] = stored.part_stride
    made["extents"] = [1] * missing + [stored.extents[axis] for axis in layout.axes]
    made["strides"] = [0] * missing + [strides[axis] for axis in layout.axes]
    _place(made, layout, stored.extents)
    made["parts"], made["texel_bytes"] = layout.parts, layout.texel_bytes
    made["members"], made["member"] = layout.group
    made["lanes"] = layout.lanes
    if groups := layout.field_groups:
        made["fields"] = 1
        for part in range(layout.parts):
            made["before"][0, part], made["count"][0, part], made["within"][0, part] = groups.place(part)
    made["width"], made["rows"] = layout.data.plane if layout.is_plane else (0, 0)
    made["element_bytes"], made["inward"] = view.dtype.itemsize, inward
    if layout.storage and view.dtype == layout.data.dtype:
        made["codec"] = CODECS.index(layout.storage.name)
        made["element_bytes"] = np.dtype(layout.data.fields[0].type).itemsize
    if packing:
        axis = layout.data.shape.index(layout.data.packed)
        made["packed_axis"] = missing + layout.axes.index(axis)
        made["packed"], made["packed_stride"] = shape[axis], strides[axis]
        made["bits"], made["planar"] = packing.bits, packing.planar
        made["joined"] = packing.elements * layout.vector
    return made.tobytes()


def _place(made: NDArray[Any], layout: Layout, extents: Sequence[int]) -> None:
    """The part of the argument that says where a value is stored among the others."""
    grid, mapping = layout.grid(extents), layout.mapping
    missing = [1] * (_MOST_AXES - len(extents))
    for name, lengths in (("blocks", grid.strides), ("tile", grid.tile), ("side", grid.side)):
        made[name] = missing + [lengths[axis] for axis in layout.axes]
    made["curve"] = 1 + CURVES.index(mapping.curve.kind) if mapping.curve else 0
    made["groups"] = made["width_of_group"] = 1
    for step in mapping.steps:
        for name, number in step.device.items():
            made[name] = number


class LayoutTransform:
    """The kernel on one device, compiled and loaded when it is first wanted; for any number of threads."""

    def __init__(self, backend: Backend, cache: Cache) -> None:
        self._backend = backend
        self._cache = cache
        self._module: Module | None = None
        self._lock = threading.Lock()

    def launch(
        self, layout: Layout, view: View, placed: Placed, address: int, inward: bool, names: tuple[str, str]
    ) -> Launch:
        """One move between ``view`` and ``placed``, which is at ``address``; ``names`` are what the two addresses are
        called in a Call. Raises CompilerError."""
        texels = math.prod(placed.stored.extents) * layout.parts
        blocks = -(-texels // _BLOCK)
        assert blocks <= _MOST_BLOCKS, "more texels than a layout's indices reach"
        ends = (end.to_bytes(8, "little") for end in (view.address, address))
        arguments = (*ends, move(layout, view, inward))
        geometry = Geometry((blocks, 1, 1), (_BLOCK, 1, 1))
        called = tuple((name, number, 0) for number, name in enumerate(names) if name)
        return Launch(self.load(), KERNEL, geometry, arguments, called)

    def load(self) -> Module:
        """The kernel. Raises CompilerError, LaunchError."""
        with self._lock:
            if self._module is None:
                failed = "the kernel that moves arrays does not compile: "
                self._module = self._backend.load(
                    compile_one(batch(), self._backend.toolchain(), self._cache, failed)
                )
            return self._module
