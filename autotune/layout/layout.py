"""How one declared array is stored: host transform, inverse, address formula, C++ type.

The steps are always in this order, each the host twin of a header in ``kernels/include/autotune``:
order -> packing and vector width, or storage -> axes, padding, tiles, curve, swizzle -> records -> grouping -> dims ->
memory.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UnknownName
from autotune.hardware import Limits
from autotune.layout import fields, stored_links
from autotune.layout.arrays import SCALAR_TYPES, Data
from autotune.layout.bit_packing import PACKINGS, Packing
from autotune.layout.curve import Curve
from autotune.layout.fields import FieldGroups
from autotune.layout.image import HEADER as IMAGE_HEADER
from autotune.layout.image import Raster, Sampling, raster_refusal
from autotune.layout.mapping import HEADERS as MAPPING_HEADERS
from autotune.layout.mapping import Grid, Mapping
from autotune.layout.storage import AS_DECLARED, STORAGES, Storage
from autotune.layout.storage import HEADER as STORAGE_HEADER
from autotune.layout.stored_links import StoredLinks
from autotune.layout.swizzle import Swizzle

Bytes = NDArray[np.uint8]


POINTER_BYTES = 8  # which an accessor begins with
SCALE_BYTES = 4  # of a float, behind the elements


def handle(argument: bytes) -> int:
    """The handle that an accessor begins with, as ``Stored.argument`` was given it: an address, or a texture's."""
    return int.from_bytes(argument[:POINTER_BYTES], "little")


@dataclass(frozen=True)
class Stored:
    """An array as a device holds it. ``buffer`` is the bytes in address order, or None for an output that needs
    room and no content; ``nbytes`` its size. ``plane`` is (width, height) in texels when dims are 2d. ``extents``
    are what the kernel sees (packed), ``strides`` and ``part_stride`` are in elements and texels. ``raster`` is of a
    texture or a surface with the array's own rows, ``not_an_image`` why there can be none."""

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

    @property
    def texels(self) -> int:
        return self.nbytes // self.texel_bytes

    def argument(self, handle: int) -> bytes:
        """The bytes of the C++ accessor (array.cuh: handle, extents, strides, part stride), passed by value."""
        index, rank = f"u{self.index_bits // 8}", len(self.extents)
        members = [("handle", "u8"), ("extents", "u4", (rank,)), ("strides", index, (rank,)), ("part", index)]
        accessor = np.zeros(1, np.dtype(members, align=True))
        accessor["handle"], accessor["extents"], accessor["strides"] = handle, self.extents, self.strides
        accessor["part"] = self.part_stride
        return accessor.tobytes()

    def refusal(self, data: Data, limits: Limits) -> str:
        """Why this, which ``data`` declares, does not fit on a device with ``limits``; empty when it does."""
        name, texels = data.name, self.texels
        if self.not_an_image:
            return self.not_an_image
        if texels >= 2**data.index_bits or max(self.extents) >= 2**32:
            return (
                f"{name}: {texels} texels pass the range of {data.index_bits}-bit addresses (extents: 32-bit)"
            )
        allowed = max(0, min(data.constant_bytes, limits.constant_bytes - self.constant_offset))
        if self.memory == "constant" and self.nbytes > allowed:
            reason = f"{name}: {self.nbytes} bytes do not fit in {allowed} bytes of constant memory"
            if allowed < self.nbytes <= limits.constant_bytes:
                reason += ", its part of it: constant_bytes in family.yaml says the most that each array there takes"
            return reason
        if self.raster is not None and (reason := self.raster.refusal(name, limits)):
            return reason
        is_line = self.plane is None and self.raster is None
        if self.memory == "texture" and is_line and texels > limits.texture_1d_texels:
            return f"{name}: {texels} texels pass the 1D texture limit of {limits.texture_1d_texels}"
        if self.memory == "texture" and self.plane is not None:
            most = (
                (limits.texture_pitched_width, limits.texture_pitched_height)
                if self.pitched
                else (limits.texture_2d_width, limits.texture_2d_height)
            )
            if self.plane[0] > most[0] or self.plane[1] > most[1]:
                return f"{name}: a plane of {self.plane} texels passes the 2D texture limit of {most}"
        if self.nbytes > limits.memory_bytes:
            return f"{name}: {self.nbytes} bytes pass the device's memory of {limits.memory_bytes}"
        return ""


_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
MEMORIES = ("global", "readonly", "texture", "constant")
HEADERS = MappingProxyType(
    {**MAPPING_HEADERS, "storage": STORAGE_HEADER, "links": stored_links.HEADER}
)  # by the layout that needs one
PLANES = ("2d", "2d_pitched")  # the line, folded
IMAGES = ("image", "image_pitched")  # the array's own rows
DIMS = ("1d", *PLANES, *IMAGES)
GROUPINGS = ("split", "merged")
_VALUES = {
    "memory": MEMORIES, "dims": DIMS, "grouping": GROUPINGS, "packing": tuple(PACKINGS),
    "storage": tuple(dict.fromkeys((*AS_DECLARED, *STORAGES))),
}  # fmt: skip


def check_value(kind: str, value: Any, where: str) -> None:
    """Raise UnknownName for what is no value of a layout dimension whose values have names."""
    allowed = _VALUES.get(kind)
    if allowed and value not in allowed:
        raise UnknownName(f"{kind} layout", value, allowed, where)
    is_known = re.fullmatch(r"aos|soa|aosoa[1-9][0-9]*", str(value)) or fields.names_of(str(value))
    if kind == "records" and not is_known:
        known = ("aos", "soa", "aosoa<lanes>", "<field>+<field>-<field>")
        raise UnknownName("records layout", value, known, where)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Every layout choice for one declared array.

    ``axes`` lists the axes of ``data.shape`` by position, from slowest to contiguous. ``records`` is ``aos``, ``soa``,
    ``aosoa<lanes>`` or groups of fields, ``x+y-z``. ``group`` is (members, member) when merged with others over the
    same index space. ``padding`` rounds the contiguous extent up to a multiple, and ``plus`` elements follow each row.
    ``tiles`` has a size for each extent, or none; ``curve`` and ``swizzle`` are as in ``mapping``. ``storage`` is how
    each number is held, and ``links`` how each link is, None for as they are declared. Orders are applied to the arrays
    before they come here (see ``order.reordered``).
    """

    data: Data
    memory: str = "global"
    dims: str = "1d"
    axes: tuple[int, ...] = ()
    packing: Packing | None = None
    vector: int = 1
    records: str = "aos"
    group: tuple[int, int] = (1, 0)
    padding: int = 1
    plus: int = 0
    tiles: tuple[int, ...] = ()
    curve: Curve | None = None
    swizzle: Swizzle | None = None
    constant_offset: int = 0
    storage: Storage | None = None
    links: StoredLinks | None = None

    def __post_init__(self) -> None:
        for kind in ("memory", "dims", "records"):
            check_value(kind, getattr(self, kind), f"data {self.data.name}")
        if fields.names_of(self.records):
            where = f"data {self.data.name}"
            fields.check_groups(self.records, [f.name for f in self.data.fields], where)
        if not self.axes:
            object.__setattr__(self, "axes", tuple(range(len(self.data.shape))))

    @classmethod
    def plain(cls, data: Data) -> "Layout":
        """Elements one behind the other, each as it is declared."""
        return cls(data=data, storage=STORAGES.get(data.element))

    # -- the shape of one value -------------------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """1 for aos, 0 for soa and for groups of fields, the run length for aosoa."""
        if self.records == "soa" or self.field_groups:
            return 0
        return 1 if self.records == "aos" else int(self.records.removeprefix("aosoa"))

    @cached_property
    def field_groups(self) -> FieldGroups | None:
        """The groups of fields that ``records`` names."""
        names = fields.names_of(self.records)
        sizes = [self.storage.bytes if self.storage else np.dtype(f.type).itemsize for f in self.data.fields]
        return (
            FieldGroups.of(names, [*zip(self.data.dtype.names or (), sizes, strict=True)]) if names else None
        )

    @property
    def value_bytes(self) -> int:
        if self.storage:
            return self.storage.bytes * len(self.data.fields)
        if self.links:
            return self.links.dtype(self.data).itemsize
        return self.packing.word_bytes * self.vector if self.packing else self.data.dtype.itemsize

    @property
    def texel_bytes(self) -> int:
        """The widest access that divides a value; a field's size when the fields lie apart."""
        if self.field_groups:
            return self.field_groups.texel_bytes
        if self.lanes == 1 or not self.data.record:
            return math.gcd(self.value_bytes, 16)
        return self.storage.bytes if self.storage else np.dtype(self.data.fields[0].type).itemsize

    @property
    def parts(self) -> int:
        return self.value_bytes // self.texel_bytes

    def extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The extents a kernel sees for a canonical array of ``shape``: the packed axis counts values."""
        joined = self.packing.elements * self.vector if self.packing else 1
        return tuple(
            -(-n // joined) if name == self.data.packed else n
            for name, n in zip(self.data.shape, shape, strict=True)
        )

    @property
    def row_bytes(self) -> int:
        """How far apart two values of a row lie, or, where fields lie apart, the same field of both."""
        return (self.value_bytes if self.lanes else self.texel_bytes) * self.group[0]

    @cached_property
    def mapping(self) -> Mapping:
        """Where values lie among each other."""
        return Mapping(self.axes, self.padding, self.plus, self.tiles, self.curve, self.swizzle)

    def grid(self, extents: Sequence[int]) -> Grid:
        """Strides of each axis in elements, elements in all, and how each index is cut."""
        return self.mapping.grid(extents)

    # -- dims -------------------------------------------------------------------------------------------

    @property
    def is_plane(self) -> bool:
        """Whether the line of texels is folded into a plane."""
        return self.dims in PLANES

    @property
    def is_surface(self) -> bool:
        """Whether a kernel writes it through a surface."""
        return self.dims in IMAGES and self.data.role not in ("input", "view")

    @property
    def is_image(self) -> bool:
        """Whether it has a texture or a surface with the array's own rows: in other memory an image is a line."""
        return self.dims in IMAGES and (self.memory == "texture" or self.is_surface)

    def raster(self, extents: Sequence[int]) -> Raster | None:
        """Its rows, where it has rows of its own."""
        if not self.is_image:
            return None
        return Raster(
            size=tuple(extents[axis] for axis in reversed(self.axes)),
            element="" if self.data.record else self.data.fields[0].type,
            sampling=self.data.sampling or Sampling(),
            is_surface=self.is_surface,
            is_pitched=self.dims == "image_pitched",
        )

    @property
    def not_an_image(self) -> str:
        """Why it cannot be the image that ``dims`` asks for; empty when it can, or when it is none."""
        if not self.is_image:
            return ""
        more = (
            ("grouping: merged", self.group != (1, 0)),
            (f"padding: {self.padding}", self.padding > 1),
            (f"padding: +{self.plus}", self.plus > 0),
            ("tiles", self.tiles != ()),
            ("a curve", self.curve is not None),
            ("a swizzle", self.swizzle is not None),
            ("packing", self.packing is not None),
            (f"records: {self.records}", self.field_groups is not None),
            ("storage otherwise than declared", self.storage is not None),
            ("image_pitched of three extents", self.dims == "image_pitched" and len(self.axes) > 2),
        )
        return raster_refusal(self.data.name, len(self.axes), (self.value_bytes, self.parts), more)

    # -- what it leaves as it is ------------------------------------------------------------------------

    @property
    def keeps_order(self) -> bool:
        """Whether elements lie one behind the other in canonical order, but for padding: an image is its hardware's."""
        return (
            not self.is_plane
            and not self.is_image
            and self.axes == tuple(range(len(self.data.shape)))
            and self.mapping.is_strided
            and self.packing is None
            and self.links is None
            and not self.has_scales
            and self.group == (1, 0)
            and (self.lanes == 1 or self.parts == 1)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements of an array of another library that may be as it is stored: what a canonical one has, or the
        narrower numbers of its storage."""
        return self.storage.dtype if self.storage and not self.data.record else self.data.dtype

    def is_canonical(self, shape: Sequence[int]) -> bool:
        """Whether it leaves the bytes of a canonical array of ``shape`` as they are."""
        return self.storage is None and self.is_in_place(shape)

    def is_in_place(self, shape: Sequence[int]) -> bool:
        """Whether it leaves the elements of an array of ``shape`` where they are, as they may be stored."""
        is_whole = shape[-1] % self.padding == 0 and not self.plus
        return is_whole and (self.lanes <= 1 or math.prod(shape) % self.lanes == 0) and self.keeps_order

    def is_dense(self, shape: Sequence[int]) -> bool:
        """Whether every byte of the buffer is an element's, of an array of canonical ``shape``: nothing is padded or
        merged, and nothing else lies beside them."""
        texels = math.prod(self.extents(shape)) * self.parts
        return self.group == (1, 0) and not self.has_scales and self.room(shape).texels == texels

    # -- scales of stored numbers -----------------------------------------------------------------------

    @property
    def has_scales(self) -> bool:
        """Whether scales of the content lie behind the elements."""
        return self.storage is not None and self.storage.is_scaled and self._fixed_scale is None

    @property
    def _fixed_scale(self) -> NDArray[np.float32] | None:
        """The scale of the declared range, where that gives it."""
        data, storage = self.data, self.storage
        if storage is None or storage.by_row or data.low is None or data.high is None:
            return None
        return storage.scale_for(max(abs(data.low), abs(data.high))) if storage.is_scaled else None

    @property
    def fixed_scale(self) -> float:
        """The scale that is compiled in; 0 where there is none."""
        return 0.0 if self._fixed_scale is None else float(self._fixed_scale)

    def tail(self, texels: int, shape: Sequence[int]) -> tuple[int, int, int]:
        """Where the scales lie behind so many ``texels`` of elements (storage.cuh: scale_behind): (texel at which the
        first begins, how many there are, texels from one to the next)."""
        assert self.storage is not None
        unit = max(1, SCALE_BYTES // self.texel_bytes)
        return -(-texels // unit) * unit, shape[0] if self.storage.by_row else 1, unit

    def _scales(self, line: NDArray[Any], shape: Sequence[int]) -> NDArray[np.float32]:
        """The room for the scales in a ``line``, one each."""
        begin, count, unit = self.tail(self._texels(shape), shape)
        return line[begin : begin + count * unit].view(np.float32).reshape(count, -1)[:, 0]

    def _scales_in(self, line: NDArray[Any], shape: Sequence[int]) -> NDArray[np.float32]:
        if self.has_scales:
            return self._scales(line, shape)
        fixed = self._fixed_scale
        return np.ones(1, np.float32) if fixed is None else fixed.reshape(1)

    def _numbers(self, array: NDArray[Any]) -> NDArray[Any]:
        """A canonical array with its fields as one more extent."""
        number = self.data.fields[0].type
        return np.ascontiguousarray(array, self.data.dtype).view(number).reshape(*array.shape, -1)

    # -- addresses --------------------------------------------------------------------------------------

    def address(self, element: Any, part: Any, part_stride: int) -> Any:
        """Texel address of ``part`` of linear ``element``; works on integers and on arrays (records.cuh, dims.cuh)."""
        members, member = self.group
        element = element * members + member
        if self.field_groups:
            offset = self.field_groups.offset(element, part, part_stride)
        elif self.lanes == 0:
            offset = part * part_stride + element
        else:
            offset = ((element // self.lanes) * self.parts + part) * self.lanes + element % self.lanes
        if not self.is_plane:
            return offset
        width, rows = self.data.plane
        y = offset // (width * rows) * rows + offset % rows
        return y * width + offset // rows % width

    def _texels(self, shape: Sequence[int]) -> int:
        """Of the elements of each member of the group, in a line."""
        total = self._part_stride(self.grid(self.extents(shape)).elements)
        run = max(self.lanes, 1)
        return -(-total // run) * run * self.parts

    def _part_stride(self, elements: int) -> int:
        """Texels of one part of so many elements of each member of the group, where parts lie apart."""
        total = elements * self.group[0]
        return self.field_groups.part_stride(total) if self.field_groups else total

    def _room(self, shape: Sequence[int], elements: int) -> tuple[int, int, tuple[int, int] | None]:
        """(texels in the buffer, part stride, plane) for ``elements`` of each member of the group."""
        part_stride = self._part_stride(elements)
        texels = self._texels(shape)
        if self.has_scales:
            begin, count, unit = self.tail(texels, shape)
            texels = begin + count * unit
        if not self.is_plane:
            return texels, part_stride, None
        width, rows = self.data.plane
        height = -(-texels // (width * rows)) * rows
        return height * width, part_stride, (width, height)

    # -- host transform and inverse ---------------------------------------------------------------------

    def room(self, shape: Sequence[int]) -> Stored:
        """Where an array of canonical ``shape`` goes, without content."""
        extents = self.extents(shape)
        grid = self.grid(extents)
        texels, part_stride, plane = self._room(shape, grid.elements)
        return Stored(
            buffer=None,
            nbytes=texels * self.texel_bytes,
            texel_bytes=self.texel_bytes,
            memory=self.memory,
            extents=extents,
            strides=grid.strides,
            part_stride=part_stride,
            index_bits=self.data.index_bits,
            plane=plane,
            pitched=self.dims == "2d_pitched",
            constant_offset=self.constant_offset,
            raster=self.raster(extents),
            not_an_image=self.not_an_image,
        )

    def apply(self, array: NDArray[Any]) -> Stored:
        """Store ``array`` (canonical shape and dtype)."""
        line = self.line(array.shape)
        self.write(array, line)
        return replace(self.room(array.shape), buffer=self.plane(line))

    def restore(self, stored: Stored, shape: Sequence[int]) -> NDArray[Any]:
        """The canonical array of ``shape`` back from ``stored``: the inverse of ``apply``."""
        assert stored.buffer is not None, "only a stored buffer can be restored"
        texels = stored.buffer.view(self._texel)
        if self.is_plane:
            width, rows = self.data.plane
            texels = texels.reshape(-1, rows, width).transpose(0, 2, 1).reshape(-1)
        values = np.empty((self.grid(stored.extents).elements, self.parts), self._texel)
        self._move(values, texels, stored.part_stride, out=False)
        return self._array(values, stored.extents, shape, self._scales_in(texels, shape))

    def line(self, shape: Sequence[int]) -> NDArray[Any]:
        """Room for an array of canonical ``shape`` and its group, in texels, zeroed: all steps but dims."""
        return np.zeros(self.room(shape).texels, self._texel)

    def write(self, array: NDArray[Any], line: NDArray[Any]) -> None:
        """Put ``array`` where it belongs in ``line``, which the members of a group share."""
        if self.has_scales:
            assert self.storage is not None
            self._scales(line, array.shape)[...] = self.storage.scales_of(
                self.data.name, self._numbers(array)
            )
        values = self._values(array, self._scales_in(line, array.shape))
        self._move(values, line, self.room(array.shape).part_stride, out=True)

    def mark(self, shape: Sequence[int], line: NDArray[Any]) -> None:
        """Set every byte in ``line`` that belongs to an element of an array of canonical ``shape``, or to a scale."""
        if self.has_scales:
            line[self.tail(self._texels(shape), shape)[0] :].view(np.uint8)[...] = 0xFF
        marked = np.full((*self.extents(shape), self.value_bytes), 0xFF, np.uint8)
        self._move(self._arranged(marked), line, self.room(shape).part_stride, out=True)

    def plane(self, line: NDArray[Any]) -> Bytes:
        """The buffer of a ``line``: the last step, dims."""
        if self.is_plane:
            width, rows = self.data.plane
            line = np.ascontiguousarray(line.reshape(-1, width, rows).transpose(0, 2, 1)).reshape(-1)
        return line.view(np.uint8)

    @property
    def _texel(self) -> Any:
        """A numpy type of a texel's size that moves in one piece; its values are never looked at."""
        return _UNITS[self.texel_bytes]

    @property
    def _value(self) -> Any:
        """A numpy type of a value's size that moves in one piece."""
        return _UNITS.get(self.value_bytes) or np.dtype((np.void, self.value_bytes))

    def _move(self, values: NDArray[Any], line: NDArray[Any], part_stride: int, *, out: bool) -> None:
        """Texels between ``values`` (elements, parts) and their places in ``line``, by ``address`` for 1d: slices
        where the places of a part are evenly spaced, one by one in runs (aosoa)."""
        members, member = self.group
        for part in range(self.parts):
            if self.lanes == 1:
                places: Any = slice(member * self.parts + part, None, members * self.parts)
            elif self.field_groups:
                before, count, within = self.field_groups.place(part)
                begin = before * part_stride
                places = slice(begin + member * count + within, begin + count * part_stride, members * count)
            elif self.lanes == 0:
                places = slice(part * part_stride + member, (part + 1) * part_stride, members)
            else:
                elements = np.arange(len(values), dtype=np.int64) * members + member
                places = (elements // self.lanes * self.parts + part) * self.lanes + elements % self.lanes
            if isinstance(places, slice):
                line_part = line[places][: len(values)]
                if out:
                    line_part[...] = values[:, part]
                else:
                    values[:, part] = line_part
            elif out:
                line[places] = values[:, part]
            else:
                values[:, part] = line[places]

    def _values(self, array: NDArray[Any], scales: NDArray[np.float32]) -> NDArray[Any]:
        """Canonical array -> texels (elements as they are stored, parts)."""
        extents = self.extents(array.shape)
        if self.packing:
            axis = self.data.shape.index(self.data.packed)
            joined = self.packing.elements * self.vector
            moved = np.moveaxis(array, axis, -1)
            short = extents[axis] * joined - moved.shape[-1]
            moved = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, short)])
            words = np.ascontiguousarray(self.packing.pack(moved))
            joined_words = words.reshape(*moved.shape[:-1], extents[axis], -1).view(np.uint8)
            raw = np.moveaxis(joined_words, -2, axis)
        elif self.links:
            raw = self.links.narrow(self.data, array)
        elif self.storage:
            codes = np.ascontiguousarray(self.storage.narrow(self._numbers(array), scales))
            raw = codes.view(np.uint8).reshape(*array.shape, self.value_bytes)
        else:
            plain = np.ascontiguousarray(array, self.data.dtype)
            raw = plain.view(np.uint8).reshape(*array.shape, self.value_bytes)
        return self._arranged(raw)

    def _arranged(self, raw: Bytes) -> NDArray[Any]:
        """Bytes (extents as a kernel sees them, value bytes) -> texels (elements as they are stored, parts)."""
        whole = np.ascontiguousarray(raw).view(self._value)[..., 0]
        stored: NDArray[Any] = np.ascontiguousarray(self.mapping.arranged(whole)).view(self._texel)
        return stored.reshape(-1, self.parts)

    def _array(
        self,
        values: NDArray[Any],
        extents: Sequence[int],
        shape: Sequence[int],
        scales: NDArray[np.float32],
    ) -> NDArray[Any]:
        taken = self.mapping.taken(values.view(self._value)[..., 0], extents)
        raw = np.ascontiguousarray(taken).view(np.uint8).reshape(*extents, self.value_bytes)
        if self.links:
            return self.links.widen(self.data, raw)
        if self.storage:
            codes = np.ascontiguousarray(raw).view(self.storage.code)
            numbers = self.storage.widen(codes, scales).astype(self.data.fields[0].type, copy=False)
            return np.ascontiguousarray(numbers).view(self.data.dtype).reshape(tuple(shape))
        if not self.packing:
            return np.ascontiguousarray(raw).view(self.data.dtype).reshape(tuple(shape))
        axis = self.data.shape.index(self.data.packed)
        words = np.ascontiguousarray(np.moveaxis(raw, axis, -2)).view(np.uint32)
        grouped = words.reshape(*words.shape[:-2], -1, self.packing.word_bytes // 4)
        unpacked = self.packing.unpack(grouped)[..., : shape[axis]]
        return np.ascontiguousarray(np.moveaxis(unpacked, -1, axis)).astype(self.data.dtype)

    # -- what the compiler and the device need to know ---------------------------------------------------

    @property
    def cpp(self) -> str:
        """The accessor type that a kernel receives (array.cuh; image.cuh of an image)."""
        if self.is_image:
            return self._image_cpp
        if self.data.sampling:
            return f"autotune::Image<{self._array_cpp}, {len(self.axes)}, {self.data.sampling.cpp}>"
        return self._array_cpp

    @property
    def _image_cpp(self) -> str:
        index = "unsigned" if self.data.index_bits == 32 else "unsigned long long"
        axes = ", ".join(map(str, self.axes))
        if self.is_surface:
            return f"autotune::SurfaceImage<{self._element}, {index}, {axes}>"
        sampling = self.data.sampling or Sampling()
        return f"autotune::TextureImage<{self._element}, {index}, {sampling.cpp}, {axes}>"

    @property
    def _element(self) -> str:
        return self.data.record or SCALAR_TYPES[self.data.fields[0].type]

    @property
    def _array_cpp(self) -> str:
        texel = f"autotune::Texel<{self.texel_bytes}>"
        index = "" if self.data.index_bits == 32 else "unsigned long long"
        value = f"autotune::Packed<{self.packing.cpp}, {self.vector}>" if self.packing else self._element
        width, rows = (n.bit_length() - 1 for n in self.data.plane)
        by_rows = self.data.is_view and self.memory == "texture" and len(self.data.shape) == 2  # see view
        plane = f"Dims2D<{width}, {rows}>" if self.is_plane else "Dims1D"
        memory = {
            "global": f"Global<{texel}>",
            "readonly": f"ReadOnly<{texel}>",
            "texture": f"Texture{'2D' if self.is_plane or by_rows else '1D'}<{texel}>",
            "constant": f"Constant<{texel}, {self.constant_offset}>",
        }[self.memory]
        parts = [
            value,
            f"autotune::{memory}",
            f"autotune::Coordinates<{index}>" if by_rows else self.mapping.cpp(index),
            f"autotune::{'DimsRows' if by_rows else plane}",
            f"autotune::{self._records_cpp}",
            f"autotune::Merged<{self.group[0]}, {self.group[1]}>",
        ]
        if self.storage:
            return self._narrow_cpp(self.storage, value, parts)
        if self.links:
            stored = ", ".join([f"autotune::StoredBytes<{self.value_bytes}>", *parts[1:]])
            return self.links.cpp(self.data, f"autotune::Array<{stored}>")
        return f"autotune::Array<{', '.join(parts)}>"

    @property
    def _records_cpp(self) -> str:
        if self.field_groups:
            return self.field_groups.cpp
        return {0: "Soa", 1: "Aos"}.get(self.lanes, f"Aosoa<{self.lanes}>")

    @property
    def headers(self) -> tuple[str, ...]:
        """Those of the layout library that the type needs beyond ``array.cuh``."""
        image = self.is_image or self.data.sampling
        more = (
            (STORAGE_HEADER, self.storage), (fields.HEADER, self.field_groups), (stored_links.HEADER, self.links),
            (IMAGE_HEADER, image),
        )  # fmt: skip
        return (*self.mapping.headers, *(header for header, needed in more if needed))

    def _narrow_cpp(self, storage: Storage, value: str, parts: list[str]) -> str:
        """Of an accessor that converts (storage.cuh), over that of the codes: an Array of these ``parts``."""
        fixed = self._fixed_scale
        scale = "NoScale"
        if fixed is not None:
            scale = f"FixedScale<0x{int(fixed.view(np.uint32)):08x}u>"
        elif storage.is_scaled:
            scale = "RowScale" if storage.by_row else "ArrayScale"
        codec, number = f"autotune::{storage.cpp}", SCALAR_TYPES[self.data.fields[0].type]
        coded = f"autotune::CodesOf<{codec}::Code, {len(self.data.fields)}>"
        codes = f"autotune::Array<{', '.join([coded, *parts[1:]])}>"
        return f"autotune::Narrow<{value}, {number}, {codec}, autotune::{scale}, {codes}>"


def slack(layouts: Sequence[Layout], shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The runs of bytes (begin, end) that are no element's, where arrays of canonical ``shape`` are stored together as
    ``layouts`` say: padding, and what is left of the last run, row or block. A packed value is whole."""
    first = layouts[0]
    if first.room(shape).texels == math.prod(first.extents(shape)) * first.group[0] * first.parts:
        return ()
    line = first.line(shape)
    for layout in layouts:
        layout.mark(shape, line)
    free = np.flatnonzero(np.diff((first.plane(line) == 0).astype(np.int8), prepend=0, append=0))
    return tuple(zip(free[::2].tolist(), free[1::2].tolist(), strict=True))
