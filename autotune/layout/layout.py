"""How one declared array is stored: host transform, inverse, address formula, C++ type.

The steps are always in this order, each the host twin of a header in ``kernels/include/autotune``:
order -> packing, vector width, or storage -> axes, padding, tiles, curve, steps -> records, groups -> dims, memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout import fields
from autotune.layout.arrays import SCALAR_TYPES, Data
from autotune.layout.bit_packing import Packing, elements_along, words_along
from autotune.layout.curve import Curve
from autotune.layout.fields import FieldGroups
from autotune.layout.image import IMAGE_HEADER, Raster, Sampling, raster_refusal
from autotune.layout.mapping import Grid, Mapping, Step
from autotune.layout.storage import HEADER as STORAGE_HEADER
from autotune.layout.storage import STORAGES, Scales, Storage
from autotune.layout.stored import Bytes, Known, Stored

PLANES = ("2d", "2d_pitched")  # the line, folded
IMAGES = ("image", "image_pitched")  # the array's own rows
_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Every layout choice for one declared array (what each may be, and how it is declared: ``dimensions``).

    ``axes`` lists the axes of ``data.shape`` by position, from slowest to contiguous. ``records`` is ``aos``, ``soa``,
    ``aosoa<lanes>`` or groups of fields, ``x+y-z``. ``group`` is (members, member) when merged with others over the
    same index space. ``padding`` rounds the contiguous extent up to a multiple, and ``plus`` elements follow each row.
    ``tiles`` has a size for each extent, or none; ``curve`` and ``steps`` are as in ``mapping``. ``storage`` is how
    each number is held, None for as it is declared. Orders are applied to the arrays before they come here (see
    ``order.reorder``). ``sizes`` are the extents that every array of a kernel has, 0 for others: they are constants
    there, and change nothing in memory.
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
    steps: tuple[Step, ...] = ()
    constant_offset: int = 0
    storage: Storage | None = None
    sizes: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.axes:
            object.__setattr__(self, "axes", tuple(range(len(self.data.shape))))
        if not self.sizes:
            object.__setattr__(self, "sizes", (0,) * len(self.data.shape))

    @classmethod
    def make_plain(cls, data: Data) -> "Layout":
        """Elements one behind the other, each as it is declared."""
        return cls(data=data, storage=STORAGES.get(data.element))

    # -- the shape of one value -------------------------------------------------------------------------

    @cached_property
    def lanes(self) -> int:
        """1 for aos, 0 for soa and for groups of fields, the run length for aosoa."""
        if self.records == "soa" or self.field_groups:
            return 0
        return 1 if self.records == "aos" else int(self.records.removeprefix("aosoa"))

    @cached_property
    def field_groups(self) -> FieldGroups | None:
        """The groups of fields that ``records`` names."""
        if not (names := fields.names_of(self.records)):
            return None
        sizes = [self.storage.bytes if self.storage else np.dtype(f.type).itemsize for f in self.data.fields]
        return FieldGroups.make(names, [*zip(self.data.dtype.names or (), sizes, strict=True)])

    @cached_property
    def value_bytes(self) -> int:
        if self.storage:
            return self.storage.bytes * len(self.data.fields)
        return self.packing.word_bytes * self.vector if self.packing else self.data.dtype.itemsize

    @cached_property
    def texel_bytes(self) -> int:
        """The widest access that divides a value; a field's size when the fields lie apart."""
        if self.field_groups:
            return self.field_groups.texel_bytes
        if self.lanes == 1 or not self.data.record:
            return math.gcd(self.value_bytes, 16)
        return self.storage.bytes if self.storage else np.dtype(self.data.fields[0].type).itemsize

    @cached_property
    def parts(self) -> int:
        return self.value_bytes // self.texel_bytes

    def extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The extents a kernel sees for a canonical array of ``shape``: the packed axis counts values."""
        sizes = list(shape)
        if self.packing:
            axis = self.data.shape.index(self.data.packed)
            sizes[axis] = -(-sizes[axis] // (self.packing.elements * self.vector))
        return tuple(sizes)

    @property
    def row_bytes(self) -> int:
        """How far apart two values of a row lie, or, where fields lie apart, the same field of both."""
        return (self.value_bytes if self.lanes else self.texel_bytes) * self.group[0]

    @cached_property
    def mapping(self) -> Mapping:
        """Where values lie among each other."""
        return Mapping(self.axes, self.padding, self.plus, self.tiles, self.curve, self.steps)

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
            *((step.name, True) for step in self.steps),
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
            and not self.stored_scales
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
        """Return whether every byte of the buffer belongs to an element of an array of canonical ``shape``: there is no
        padding, no other array and no scales."""
        texels = math.prod(self.extents(shape)) * self.parts
        return self.group == (1, 0) and not self.stored_scales and self.room(shape).texels == texels

    # -- scales of stored numbers -----------------------------------------------------------------------

    @cached_property
    def scales(self) -> Scales | None:
        """Of numbers that are stored as scaled integers."""
        if not self.storage or not self.storage.is_scaled:
            return None
        return Scales(self.storage, self.data.low, self.data.high, self.texel_bytes)

    @property
    def stored_scales(self) -> Scales | None:
        """Those of the content, where they lie behind the elements."""
        return self.scales if self.scales and self.scales.fixed is None else None

    @property
    def fixed_scale(self) -> float:
        """The scale that is compiled in; 0 where there is none."""
        return float(self.scales.fixed) if self.scales and self.scales.fixed is not None else 0.0

    def _scales_in(self, line: NDArray[Any], shape: Sequence[int]) -> NDArray[np.float32]:
        return self.scales.get(line, self._texels(shape), shape) if self.scales else np.ones(1, np.float32)

    # -- addresses --------------------------------------------------------------------------------------

    def compute_address(self, element: Any, part: Any, part_stride: int) -> Any:
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
        """Return the texels of one part of ``elements`` elements of each member of the group, if parts are apart."""
        total = elements * self.group[0]
        return self.field_groups.part_stride(total) if self.field_groups else total

    # -- host transform and inverse ---------------------------------------------------------------------

    def room(self, shape: Sequence[int]) -> Stored:
        """Where an array of canonical ``shape`` goes, without content."""
        extents = self.extents(shape)
        grid = self.grid(extents)
        texels, plane = self._texels(shape), None
        if scales := self.stored_scales:
            begin, count, unit = scales.tail(texels, shape)
            texels = begin + count * unit
        if self.is_plane:
            width, rows = self.data.plane
            plane = width, -(-texels // (width * rows)) * rows
            texels = math.prod(plane)
        return Stored(
            buffer=None,
            nbytes=texels * self.texel_bytes,
            texel_bytes=self.texel_bytes,
            memory=self.memory,
            extents=extents,
            strides=grid.strides,
            part_stride=self._part_stride(grid.elements),
            index_bits=self.data.index_bits,
            plane=plane,
            pitched=self.dims == "2d_pitched",
            constant_offset=self.constant_offset,
            raster=self.raster(extents),
            not_an_image=self.not_an_image,
            known=self.known,
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
        if scales := self.stored_scales:
            room = scales.room(line, self._texels(array.shape), array.shape)
            room[...] = scales.storage.scales_of(self.data.name, self.data.numbers(array))
        values = self._values(array, self._scales_in(line, array.shape))
        self._move(values, line, self.room(array.shape).part_stride, out=True)

    def check_numbers(self, array: NDArray[Any]) -> None:
        """Raise LayoutRefusal where the storage chosen cannot hold what is in the canonical ``array``."""
        if self.storage and not self.data.element and not self.fixed_scale:
            self.storage.check(self.data.name, self.data.numbers(array))

    def mark(self, shape: Sequence[int], line: NDArray[Any]) -> None:
        """Set every byte in ``line`` that belongs to an element of an array of canonical ``shape``, or to a scale."""
        if scales := self.stored_scales:
            line[scales.tail(self._texels(shape), shape)[0] :].view(np.uint8)[...] = 0xFF
        marked = np.full((*self.extents(shape), self.value_bytes), 0xFF, np.uint8)
        self._move(self._arrange(marked), line, self.room(shape).part_stride, out=True)

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
        """Texels between ``values`` (elements, parts) and their places in ``line``, by ``compute_address`` for 1d:
        slices where the places of a part are evenly spaced, one by one in runs (aosoa)."""
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
            raw = words_along(self.packing, array, axis, extents[axis], self.vector)
        elif self.storage:
            codes = np.ascontiguousarray(self.storage.narrow(self.data.numbers(array), scales))
            raw = codes.view(np.uint8).reshape(*array.shape, self.value_bytes)
        else:
            plain = np.ascontiguousarray(array, self.data.dtype)
            raw = plain.view(np.uint8).reshape(*array.shape, self.value_bytes)
        return self._arrange(raw)

    def _arrange(self, raw: Bytes) -> NDArray[Any]:
        """Bytes (extents as a kernel sees them, value bytes) -> texels (elements as they are stored, parts)."""
        whole = np.ascontiguousarray(raw).view(self._value)[..., 0]
        stored: NDArray[Any] = np.ascontiguousarray(self.mapping.arrange(whole)).view(self._texel)
        return stored.reshape(-1, self.parts)

    def _array(
        self,
        values: NDArray[Any],
        extents: Sequence[int],
        shape: Sequence[int],
        scales: NDArray[np.float32],
    ) -> NDArray[Any]:
        taken = self.mapping.restore(values.view(self._value)[..., 0], extents)
        raw = np.ascontiguousarray(taken).view(np.uint8).reshape(*extents, self.value_bytes)
        if self.storage:
            codes = np.ascontiguousarray(raw).view(self.storage.code)
            numbers = self.storage.widen(codes, scales).astype(self.data.fields[0].type, copy=False)
            return np.ascontiguousarray(numbers).view(self.data.dtype).reshape(tuple(shape))
        if not self.packing:
            return np.ascontiguousarray(raw).view(self.data.dtype).reshape(tuple(shape))
        axis = self.data.shape.index(self.data.packed)
        return elements_along(self.packing, raw, axis, shape[axis]).astype(self.data.dtype)

    # -- what the compiler and the device need to know ---------------------------------------------------

    @property
    def is_by_rows(self) -> bool:
        """Whether it is a view whose texture has the view's own rows and columns (see ``views``)."""
        return self.data.is_view and self.memory == "texture" and len(self.data.shape) == 2

    @cached_property
    def known(self) -> Known:
        """What the accessor's type says."""
        extents = self.extents(self.sizes)
        if self.is_image or self.is_by_rows:
            return Known(extents, (1,) * len(extents))
        strides = self.mapping.compute_known_strides(extents)
        if self.data.pitch:
            strides = (*(0 for _ in extents[1:]), 1)
        has_runs = self.stored_scales or self.field_groups or (self.lanes == 0 and self.parts > 1)
        return Known(extents, strides, 0 if has_runs else 1)

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
        axes = ", ".join(map(str, self.axes))
        if self.is_surface:
            return f"autotune::SurfaceImage<{self._element}, {self._extents}, {axes}>"
        sampling = self.data.sampling or Sampling()
        return f"autotune::TextureImage<{self._element}, {self._extents}, {sampling.cpp}, {axes}>"

    @property
    def _extents(self) -> str:
        return f"autotune::Extents<{', '.join(map(str, self.known.extents))}>"

    @property
    def _element(self) -> str:
        return self.data.record or SCALAR_TYPES[self.data.fields[0].type]

    @property
    def _array_cpp(self) -> str:
        texel = f"autotune::Texel<{self.texel_bytes}>"
        signed = "unsigned" if self.mapping.curve else "int"  # a curve counts bits
        index = {31: signed, 32: "unsigned", 64: "unsigned long long"}[self.data.index_bits]
        strides = f"autotune::Strides<{index}, {', '.join(map(str, self.known.strides))}>"
        value = f"autotune::Packed<{self.packing.cpp}, {self.vector}>" if self.packing else self._element
        width, rows = (n.bit_length() - 1 for n in self.data.plane)
        plane = f"Dims2D<{width}, {rows}>" if self.is_plane else "Dims1D"
        records = {0: "Soa", 1: "Aos"}.get(self.lanes, f"Aosoa<{self.lanes}>")
        records = f"autotune::{self.field_groups.cpp if self.field_groups else records}"
        memory = {
            "global": f"Global<{'const ' if self.data.role in ('input', 'view') else ''}{texel}>",
            "readonly": f"ReadOnly<{texel}>",
            "texture": f"Texture{'2D' if self.is_plane or self.is_by_rows else '1D'}<{texel}>",
            "constant": f"Constant<{texel}, {self.constant_offset}>",
        }[self.memory]
        parts = [
            value,
            f"autotune::{memory}",
            f"autotune::Coordinates<{self._extents}>"
            if self.is_by_rows
            else self.mapping.cpp(self._extents, strides),
            f"autotune::{'DimsRows' if self.is_by_rows else plane}",
            f"autotune::Followed<{records}>" if self.stored_scales else records,
            f"autotune::Merged<{self.group[0]}, {self.group[1]}>",
        ]
        if self.storage:
            scale = self.scales.cpp if self.scales else "NoScale"
            codec, number = f"autotune::{self.storage.cpp}", SCALAR_TYPES[self.data.fields[0].type]
            coded = f"autotune::CodesOf<{codec}::Code, {len(self.data.fields)}>"
            codes = f"autotune::Array<{', '.join([coded, *parts[1:]])}>"
            return f"autotune::Narrow<{value}, {number}, {codec}, autotune::{scale}, {codes}>"
        return f"autotune::Array<{', '.join(parts)}>"

    @property
    def headers(self) -> tuple[str, ...]:
        """Those of the layout library that the type needs beyond ``array.cuh``."""
        image = self.is_image or self.data.sampling
        more = (
            (STORAGE_HEADER, self.storage), (fields.FIELDS_HEADER, self.field_groups),
            (IMAGE_HEADER, image),
        )  # fmt: skip
        return (*self.mapping.headers, *(header for header, needed in more if needed))
