"""Every layout dimension, each in one place: what it may be, what that means, and what the rest asks of it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from autotune.errors import FamilyError, UnknownName
from autotune.layout.arrays import Data
from autotune.layout.bit_packing import PACKINGS, Packing
from autotune.layout.curve import Curve, curve_of
from autotune.layout.dimension import Dimension, always
from autotune.layout.fields import FIELDS_HEADER, check_groups, names_of
from autotune.layout.image import IMAGE_HEADER, Sampling
from autotune.layout.layout import IMAGES, PLANES, Layout
from autotune.layout.mapping import TILE_HEADER
from autotune.layout.storage import HEADER as STORAGE_HEADER
from autotune.layout.storage import STORAGES, Storage, list_storages, storage_of
from autotune.layout.swizzle import SWIZZLE

_KNOWN_TILES = ("none", "8x8 (a size for each extent)", "{extent: size}")


# -- an array's memory, and the arrays that share it ---------------------------------------------------


def _memory(value: str, data: Data, where: str) -> str:
    if value != "global" and data.role not in ("input", "view"):
        raise FamilyError(
            f"{where}: {value} memory cannot be written, and {data.name} has role {data.role}; only global can"
        )
    return value


MEMORY = Dimension(
    name="memory",
    usual="global",
    values=("global", "readonly", "texture", "constant"),
    read=_memory,
    exported=lambda layout: {"memory": f"Memory::{layout.memory}"},
    leaves_rows=always,
    is_of_views=True,
)


def _dims(value: str, data: Data, where: str) -> str:
    is_output = data.role in ("output", "scratch")
    if is_output and value == "image_pitched":
        raise FamilyError(f"{where}: {data.name} is written, and a surface is a CUDA array; take dims: image")
    layout = Layout(data=data, memory="global" if is_output else "texture", dims=value)
    if reason := layout.not_an_image:
        raise FamilyError(f"{where}: {reason}")
    return value


_EXPORTED_DIMS = {
    "1d": "line", "2d": "plane", "2d_pitched": "pitched_plane", "image": "image", "image_pitched": "pitched_image",
}  # fmt: skip


def _export_dims(layout: Layout) -> Mapping[str, Any]:
    if layout.is_plane:
        width, rows = layout.data.plane
        return {"dims": f"Dims::{_EXPORTED_DIMS[layout.dims]}", "plane_width": width, "plane_rows": rows}
    if not layout.is_image:
        return {}
    sampling, kind = layout.data.sampling or Sampling(), layout.data.dtype.kind
    number = {"f": "real", "i": "integer"}.get(kind, "unsigned_integer")
    has_numbers = sampling.is_normalised or sampling.is_linear
    return {
        "dims": f"Dims::{_EXPORTED_DIMS[layout.dims]}",
        "edge": f"Edge::{sampling.edge}",
        "texel": f"Texel::{number if has_numbers else 'bits'}",
        "is_normalised": sampling.is_normalised,
        "is_linear": sampling.is_linear,
        "is_surface": layout.is_surface,
    }


DIMS = Dimension(
    name="dims",
    usual="1d",
    values=("1d", *PLANES, *IMAGES),
    read=_dims,
    exported=_export_dims,
    header=IMAGE_HEADER,
    is_more=lambda value: value in IMAGES,
    probes=IMAGES,
    leaves_rows=always,
)


def _members(layout: Layout) -> str:
    members, member = layout.group
    return f"{member + 1} of {members}" if members > 1 else ""


GROUPING = Dimension(
    name="grouping",
    usual="split",
    values=("split", "merged"),
    put=lambda layout, _: layout,  # of several arrays: see Layout.group
    shown=_members,
    exported=lambda layout: {"members": layout.group[0], "member": layout.group[1]},
)


# -- where elements lie among each other ---------------------------------------------------------------


def _axes(value: Any, data: Data, where: str) -> tuple[int, ...]:
    if not (isinstance(value, list) and sorted(map(str, value)) == sorted(set(data.shape))):
        raise UnknownName("axes layout", value, [list(data.shape), "in any order"], where)
    if len(set(data.shape)) < len(data.shape):
        raise FamilyError(
            f"{where}: the extents of {data.name} repeat, so their names give its axes no order"
        )
    return tuple(data.shape.index(name) for name in value)


AXES = Dimension(
    name="axes",
    usual=lambda data: [*data.shape],
    read=_axes,
    shown=lambda layout: ", ".join(layout.data.shape[axis] for axis in layout.axes),
    leaves_rows=always,
    is_of_views=True,
)


@dataclass(frozen=True)
class Padding:
    """A row takes a multiple of ``multiple``, and ``plus`` more; each in elements, or in bytes."""

    multiple: int = 1
    plus: int = 0
    is_multiple_in_bytes: bool = False
    is_plus_in_bytes: bool = False

    def elements(self, element_bytes: int) -> tuple[int, int]:
        """Return both in elements: the fewest whose bytes are a multiple, and the fewest that reach ``plus``."""
        multiple = self.multiple
        if self.is_multiple_in_bytes:
            multiple //= math.gcd(multiple, element_bytes)
        return multiple, -(-self.plus // element_bytes) if self.is_plus_in_bytes else self.plus


def read_padding(value: object, where: str) -> Padding:
    """What a layout policy's value says: ``32`` (elements), ``128B``, ``32+1``, ``128B+16B``. Raises FamilyError,
    UnknownName."""
    matched = re.fullmatch(r"([0-9]+)(B?)(?:\+([0-9]+)(B?))?", str(value))
    if isinstance(value, bool) or not matched:
        raise UnknownName("padding layout", value, ("32", "128B", "32+1", "128B+16B"), where)
    multiple, plus = int(matched[1]), int(matched[3] or 0)
    if multiple < 1:
        raise FamilyError(f"{where}: padding {value!r} is not a whole number of at least 1")
    return Padding(multiple, plus, bool(matched[2]), bool(matched[4]))


def _pad(layout: Layout, padding: Padding) -> Layout:
    multiple, plus = padding.elements(layout.row_bytes)  # which the other choices decide
    return replace(layout, padding=multiple, plus=plus)


def _show_padding(layout: Layout) -> str:
    text = f"{layout.padding}+{layout.plus}".removesuffix("+0")
    return "" if text == "1" else text


PADDING = Dimension(
    name="padding",
    usual=1,
    read=lambda value, _, where: read_padding(value, where),
    put=_pad,
    shown=_show_padding,
    exported=lambda layout: {"padding": layout.padding, "plus": layout.plus},
    is_more=lambda value: isinstance(value, str),
    probes=("2+1",),
    is_of_views=True,
)


def tiles_of(value: object, shape: Sequence[str], where: str) -> tuple[int, ...]:
    """What a layout policy's value says for an array of the extents ``shape``: the elements of a tile along each, or
    nothing for ``none``. An extent that a mapping leaves out is not cut. Raises FamilyError, UnknownName."""
    if value == "none":
        return ()
    sizes: list[object]
    if isinstance(value, dict):
        if not value.keys() <= set(shape):
            raise UnknownName("extents of a tile", ", ".join(map(str, value)), shape, where)
        if len(set(shape)) < len(shape):
            raise FamilyError(
                f"{where}: the extents {', '.join(shape)} repeat, so write the tile as 8x8 is written"
            )
        sizes = [value.get(name, 1) for name in shape]
    elif re.fullmatch(r"[0-9]+(x[0-9]+)*", str(value)):
        sizes = [int(size) for size in str(value).split("x")]
    else:
        raise UnknownName("tiles layout", value, _KNOWN_TILES, where)
    if len(sizes) != len(shape):
        raise FamilyError(
            f"{where}: tiles {value} is {len(sizes)} long, and there are {len(shape)} extents ({', '.join(shape)}); "
            f"give a size for each (1: not cut), or name those that are cut in means, as in {{{shape[-1]}: 8}}"
        )
    found = tuple(size for size in sizes if isinstance(size, int) and size >= 1)
    if len(found) < len(sizes):
        raise FamilyError(f"{where}: tiles {value}: a size is a whole number of at least 1")
    return () if set(found) == {1} else found


TILES = Dimension(
    name="tiles",
    usual="none",
    together=math.prod,
    read=lambda value, data, where: tiles_of(value, data.shape, where),
    shown=lambda layout: "x".join(map(str, layout.tiles)),
    header=TILE_HEADER,
    probes=("2x3",),
    is_of_views=True,
)


def _show_curve(layout: Layout) -> str:
    if not (curve := layout.curve):
        return ""
    along = ", ".join(layout.data.shape[axis] for axis in curve.along)
    return f"{curve.kind}{curve.side or ''} along {along}"


def _export_curve(layout: Layout) -> Mapping[str, Any]:
    if not (curve := layout.curve):
        return {}
    return {"curve": f"Curve::{curve.kind}", "along": layout.mapping.along, "side": curve.side}


CURVE = Dimension(
    name="curve",
    usual="none",
    together=lambda curve: curve.side if curve else 1,  # along one axis
    read=lambda value, data, where: curve_of(value, data.shape, where),
    shown=_show_curve,
    exported=_export_curve,
    header=Curve.header,
    probes=("morton", "morton2", "hilbert", "hilbert2"),
    is_of_views=True,
)


# -- how an element is stored --------------------------------------------------------------------------


def _check_packed(data: Data, where: str) -> None:
    if not data.packed:
        raise FamilyError(f"{where}: data {data.name} names no packed extent to join elements along")
    if data.dtype.kind not in "iu":
        raise FamilyError(
            f"{where}: data {data.name} holds {data.dtype}, and only whole numbers can be packed"
        )


def _packing(value: Any, data: Data, where: str) -> Packing:
    _check_packed(data, where)
    return PACKINGS[value]


def _vector(value: Any, data: Data, where: str) -> int:
    if not (isinstance(value, int) and value >= 1):
        raise FamilyError(f"{where}: vector {value!r} is not a whole number of at least 1")
    _check_packed(data, where)
    return value


def _export_packing(layout: Layout) -> Mapping[str, Any]:
    if not (packing := layout.packing):
        return {}
    data = layout.data
    return {
        "packed_axis": data.shape.index(data.packed),
        "is_signed": np.dtype(data.fields[0].type).kind == "i",
        "bits": packing.bits,
        "is_planar": packing.planar,
    }


PACKING = Dimension(
    name="packing",
    usual=None,
    values=tuple(PACKINGS),
    read=_packing,
    shown=lambda layout: layout.packing.name if layout.packing else "",
    exported=_export_packing,
)
VECTOR = Dimension(
    name="vector",
    usual=1,
    together=lambda words: words * 128,  # bits
    read=_vector,
    shown=lambda layout: str(layout.vector) if layout.packing else "",
    leaves_rows=always,
    needs="packing",
)


def _storage(value: Any, data: Data, where: str) -> Storage | None:
    if data.sampling is not None:
        raise FamilyError(
            f"{where}: {data.name} is an image, whose numbers a texture reads as they are declared: remove image or "
            "the storage"
        )
    types = {field.type for field in data.fields}
    if len(types) > 1 or not types <= {"float32", "float64"}:
        raise FamilyError(
            f"{where}: data {data.name} holds {data.dtype}, and a storage is for float32 or float64 alone, plain or as "
            "all fields of a record"
        )
    (declared,) = types
    if value not in list_storages(declared):
        raise UnknownName(f"storage of {declared}", value, list_storages(declared), where)
    storage = storage_of(value, declared)
    if storage and storage.is_scaled and data.role != "input" and (storage.by_row or data.low is None):
        raise FamilyError(
            f"{where}: {data.name} has role {data.role}, and what a kernel writes as {value} needs a scale before it "
            "is there: declare its range: [smallest, largest], and leave out those by_row"
        )
    return storage


def _export_storage(layout: Layout) -> Mapping[str, Any]:
    if not (storage := layout.storage):
        return {}
    return {
        "storage": f"Storage::{storage.name.removesuffix('_by_row')}",
        "number_bytes": np.dtype(layout.data.fields[0].type).itemsize,
        "scale": layout.fixed_scale,
        "by_row": storage.by_row,
    }


STORAGE = Dimension(
    name="storage",
    usual=lambda data: data.fields[0].type,
    values=("declared", "float64", *STORAGES),
    read=_storage,
    shown=lambda layout: layout.storage.name if layout.storage else "",
    exported=_export_storage,
    header=STORAGE_HEADER,
    probes=tuple(STORAGES),
    is_of_views=True,
    not_with={"grouping": "may merge it with others as it is declared"},
)


def _records(value: Any, data: Data, where: str) -> str:
    records = str(value)
    if names_of(records):
        if not data.record:
            raise FamilyError(
                f"{where}: {data.name} has no fields to group: declare record and fields, or take aos"
            )
        check_groups(records, [each.name for each in data.fields], where)
    elif not re.fullmatch(r"aos|soa|aosoa[1-9][0-9]*", records):
        known = ("aos", "soa", "aosoa<lanes>", "<field>+<field>-<field>")
        raise UnknownName("records layout", value, known, where)
    return records


RECORDS = Dimension(
    name="records",
    usual="aos",
    together=lambda value: int(value.removeprefix("aosoa")) if re.fullmatch(r"aosoa\d+", value) else 1,
    read=_records,
    exported=lambda layout: {
        "lanes": layout.lanes,
        "fields": layout.field_groups.groups if layout.field_groups else (),
    },
    header=FIELDS_HEADER,
    is_more=lambda value: bool(names_of(str(value))),
    probes=("x+y-next", "next+x-y", "x-y-next"),
    leaves_rows=lambda value, data: value == "aos" or len(data.fields) == 1,
    is_of_views=True,
)


# -- all of them ---------------------------------------------------------------------------------------

# In the order in which they are chosen: the padding is in bytes of what the others make of an element.
_PLACES = (MEMORY, DIMS, AXES, TILES, CURVE, SWIZZLE)
_ELEMENTS = (PACKING, VECTOR, RECORDS, STORAGE)
DIMENSIONS: Mapping[str, Dimension] = MappingProxyType(
    {each.name: each for each in (*_PLACES, *_ELEMENTS, GROUPING, PADDING)}
)


def layout_of(data: Data, choices: Mapping[str, Any], like: Layout | None = None) -> Layout:
    """The layout of an array by what is chosen for it, by dimension; the rest is usual, or as ``like`` has it. Raises
    FamilyError, UnknownName."""
    layout = like or Layout(data=data)
    for name, dimension in DIMENSIONS.items():
        if name in choices:
            layout = dimension.apply(layout, choices[name], f"data {data.name}")
    return layout
