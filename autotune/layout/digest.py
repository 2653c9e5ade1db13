"""What the host side of the layout library does, as a hash: part of what a measurement depends on.

It is taken of what comes out and not of the source, so that a library that stores every array as before leaves
records and policy files valid, however its code changed.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.layout.arrays import Data, Field
from autotune.layout.bit_packing import PACKINGS
from autotune.layout.choices import IMAGES, MEMORIES, PLANES
from autotune.layout.curve import CURVES, Curve
from autotune.layout.image import EDGES, FILTERS, READS, Sampling
from autotune.layout.layout import Layout
from autotune.layout.order import Order, merged, reordered
from autotune.layout.storage import STORAGES
from autotune.layout.stored import Stored
from autotune.layout.stored_links import StoredLinks
from autotune.layout.swizzle import Swizzle
from autotune.layout.view import view_room

_PLANE = (8, 2)
_SHAPE = (5, 3)
_PLAIN = Data(name="plain", role="input", fields=(Field("", "uint16"),), shape=("i", "j"), plane=_PLANE)

_RECORD = Data(
    name="record", role="input", record="Record", shape=("i", "j"), plane=_PLANE,
    fields=(Field("x", "float32"), Field("y", "float32"), Field("next", "uint32", link="i")),
)  # fmt: skip

_WIDE = Data(
    name="wide", role="input", shape=("i", "j"), record="Wide", plane=_PLANE, index_bits=64,
    fields=tuple(Field(f"f{n}", "float64") for n in range(3)),
)  # fmt: skip

_VIEW = Data(
    name="view", role="view", fields=(Field("", "float64"),), shape=("i", "j"), of="plain", pitch="pitch"
)

_CHOICES: tuple[dict[str, Any], ...] = (
    {},
    *({"memory": memory} for memory in MEMORIES),
    *({"dims": dims, "records": records} for dims in ("1d", *PLANES) for records in ("aos", "soa", "aosoa2")),
    {"axes": (1, 0)},
    {"axes": (1, 0), "padding": 4, "records": "soa"},
    {"padding": 4, "dims": "2d", "group": (2, 1), "records": "aosoa4"},
)

_IMAGES: tuple[dict[str, Any], ...] = (
    *({"memory": "texture", "dims": dims} for dims in IMAGES),
    {"memory": "texture", "dims": "image", "axes": (1, 0)},
    {"memory": "readonly", "dims": "image"},
    {"memory": "global", "dims": "image"},
)


@cache
def layouts_digest() -> str:
    """sha256 over what every kind of layout choice makes of small arrays: the bytes in address order, where an
    element is, and the C++ accessor. (The device side is in a family's source digest; what came later has digests of
    its own, which a family has that declares it.)"""
    return _digest(_probes())


@cache
def mappings_digest() -> str:
    """The same of tiles, curves, swizzles and what follows each row."""
    return _digest(_mapped())


@cache
def fields_digest() -> str:
    """The same of groups of fields."""
    groups = ("x+y-next", "next+x-y", "x-y-next")
    layouts = (
        Layout(data=_RECORD, records=each, padding=2, dims=dims) for each in groups for dims in ("1d", "2d")
    )
    return _digest((layout.cpp, layout.apply(_array(_RECORD))) for layout in layouts)


@cache
def links_digest() -> str:
    """The same of links that are stored by how far they lead, or not at all."""
    data = replace(_RECORD, shape=("i",))
    array = np.zeros(_SHAPE[0], data.dtype)
    array["x"], array["next"] = np.arange(_SHAPE[0]), np.arange(1, _SHAPE[0] + 1)
    array["next"][-1] = np.iinfo(np.uint32).max
    kinds = (StoredLinks((("next", kind),)) for kind in ("relative16", "next"))
    layouts = [Layout(data=data, links=links) for links in kinds]
    return _digest((layout.cpp, layout.apply(array)) for layout in layouts)


def _digest(probes: Iterable[tuple[str, Stored]]) -> str:
    digest = hashlib.sha256()
    for cpp, stored in probes:
        buffer = b"" if stored.buffer is None else stored.buffer.tobytes()
        about = (cpp, stored.nbytes, stored.memory, stored.plane, stored.pitched, stored.constant_offset)
        digest.update(repr(about).encode() + stored.argument(1) + buffer)
    return digest.hexdigest()


@cache
def storage_digest() -> str:
    """sha256 over what every storage makes of small arrays: part of what a measurement with one of them depends on, as
    ``layouts_digest`` is of all."""
    fields = tuple(Field(name, "float32") for name in "xyz")
    record = Data(name="record", role="input", record="Record", shape=("i", "j"), plane=_PLANE, fields=fields)
    values = np.linspace(-3, 5, 3 * int(np.prod(_SHAPE)), dtype=np.float32) ** 7
    digest = hashlib.sha256()
    for data in (record, replace(record, low=-1e5, high=1e5)):
        for storage in STORAGES.values():
            for choice in (
                {"axes": (1, 0)},
                {"records": "soa", "padding": 4},
                {"records": "aosoa4", "dims": "2d"},
            ):
                layout = Layout(data=data, storage=storage, **choice)
                stored = layout.apply(values.view(data.dtype).reshape(_SHAPE))
                assert stored.buffer is not None
                digest.update(layout.cpp.encode() + stored.argument(1) + stored.buffer.tobytes())
    return digest.hexdigest()


@cache
def images_digest() -> str:
    """sha256 over what images become: part of what a measurement of a family that has some depends on."""
    digest = hashlib.sha256()
    for sampling in (
        None,
        *(Sampling(edge, read, way) for edge in EDGES for read in READS for way in FILTERS),
    ):
        for choice in _IMAGES:
            data = replace(
                _PLAIN, sampling=sampling, role="output" if choice["memory"] == "global" else "input"
            )
            layout = Layout(data=data, **choice)
            stored = layout.apply(_array(data))
            assert stored.buffer is not None
            digest.update(
                f"{layout.cpp} {stored.raster}".encode() + stored.argument(1) + stored.buffer.tobytes()
            )
    return digest.hexdigest()


def _probes() -> Iterator[tuple[str, Stored]]:
    for data in (_PLAIN, _RECORD, _WIDE):
        for choice in _CHOICES:
            layout = Layout(data=data, **choice)
            yield layout.cpp, layout.apply(_array(data))
    for packing in PACKINGS.values():
        top = min(2**packing.bits - 1, 2**31 - 1)
        packed = Data(name="packed", role="input", fields=(Field("", "int32"),), shape=("i", "j"), packed="j")
        values = (np.arange(3 * 70, dtype=np.int64) * 0x9E3779B1 % (top + 1)).astype(np.int32).reshape(3, 70)
        for vector in (1, 2):
            layout = Layout(data=packed, packing=packing, vector=vector, padding=2)
            yield layout.cpp, layout.apply(values)
    row = replace(_VIEW, shape=("i",), pitch="")
    for layout in (
        Layout(data=_VIEW),
        Layout(data=_VIEW, memory="texture"),
        Layout(data=row, memory="texture"),
    ):
        yield layout.cpp, view_room(layout, {"i": _SHAPE[0], "j": _SHAPE[1], "pitch": 7})
    order = Order.of(np.array([3, 0, 4, 1, 2]), _SHAPE[0])
    moved = reordered(_RECORD, _array(_RECORD), {"i": order})
    pair = [Layout(data=replace(_RECORD, name=name), group=(2, n)) for n, name in enumerate(("a", "b"))]
    for layout, stored in zip(pair, merged(pair, [moved, _array(_RECORD)]), strict=True):
        yield layout.cpp, stored


def _mapped() -> Iterator[tuple[str, Stored]]:
    curves = [Curve(kind, (0, 1), side) for kind in CURVES for side in (0, 2)]
    for data in (_PLAIN, _RECORD):
        for tiles in ((), (2, 3)):
            usual = Layout(data=data, axes=(1, 0), tiles=tiles, padding=2, records="soa")
            kinds = [replace(usual, plus=1), replace(usual, swizzle=Swizzle(2, 2))]
            for layout in (*kinds, *(replace(usual, curve=curve) for curve in curves)):
                yield layout.cpp, layout.apply(_array(data))


def _array(data: Data) -> NDArray[Any]:
    """Every byte another; links are small numbers, one of them outside the index space."""
    size = int(np.prod(_SHAPE)) * data.dtype.itemsize
    array = np.arange(size, dtype=np.uint32).astype(np.uint8).view(data.dtype).reshape(_SHAPE)
    for field in data.fields:
        if field.link:
            array[field.name] = np.arange(array.size, dtype=np.uint32).reshape(_SHAPE) % (_SHAPE[0] + 1)
    return array
