"""What the host side of the layout library does, as a hash: part of what a measurement depends on.

It is taken of what comes out and not of the source, so that a library that stores every array as before leaves
records and policy files valid, however its code changed.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.errors import AutotuneError
from autotune.layout.arrays import Data, Field
from autotune.layout.bit_packing import PACKINGS
from autotune.layout.dimensions import DIMENSIONS, layout_of
from autotune.layout.image import EDGES, FILTERS, READS, Sampling
from autotune.layout.layout import PLANES, Layout
from autotune.layout.order import Order, merge, reorder
from autotune.layout.stored import Stored
from autotune.layout.views import view_room

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

_NUMBERS = Data(
    name="numbers", role="input", record="Numbers", shape=("i", "j"), plane=_PLANE,
    fields=tuple(Field(name, "float32") for name in "xyz"),
)  # fmt: skip

_CHOICES: tuple[dict[str, Any], ...] = (
    {},
    *({"memory": memory} for memory in DIMENSIONS["memory"].values),
    *({"dims": dims, "records": records} for dims in ("1d", *PLANES) for records in ("aos", "soa", "aosoa2")),
    {"axes": (1, 0)},
    {"axes": (1, 0), "padding": 4, "records": "soa"},
    {"padding": 4, "dims": "2d", "group": (2, 1), "records": "aosoa4"},
)

# The other values in a layout whose digest is taken: none, orders and gaps, a plane, a texture.
_BESIDE: tuple[Mapping[str, Any], ...] = (
    {},
    {"axes": ["j", "i"], "padding": 2},
    {"axes": ["j", "i"], "records": "soa", "padding": 4},
    {"records": "aosoa4", "dims": "2d"},
    {"memory": "texture"},
)


@cache
def layouts_digest() -> str:
    """sha256 over what every kind of layout choice makes of small arrays: the bytes in address order, where an
    element is, and the C++ accessor. (The device side is in a family's source digest; what not every family has is in
    ``dimension_digest``.)"""
    return _digest(_probes())


@cache
def dimension_digest(name: str) -> str:
    """The same of the values of one dimension that go beyond these, for families that have some: each with other
    choices next to it, on all arrays that can take it."""
    return _digest(_sample_outside(name))


def _digest(probes: Iterable[tuple[str, Stored]]) -> str:
    digest = hashlib.sha256()
    for cpp, stored in probes:
        buffer = b"" if stored.buffer is None else stored.buffer.tobytes()
        about = (cpp, stored.nbytes, stored.memory, stored.plane, stored.pitched, stored.constant_offset)
        digest.update(repr(about).encode() + stored.argument(1) + buffer)
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
    order = Order.make(np.array([3, 0, 4, 1, 2]), _SHAPE[0])
    moved = reorder(_RECORD, _array(_RECORD), {"i": order})
    pair = [Layout(data=replace(_RECORD, name=name), group=(2, n)) for n, name in enumerate(("a", "b"))]
    for layout, stored in zip(pair, merge(pair, [moved, _array(_RECORD)]), strict=True):
        yield layout.cpp, stored


def _sample_outside(name: str) -> Iterator[tuple[str, Stored]]:
    samplings = (Sampling(*each) for each in product(EDGES, READS, FILTERS))
    numbers = np.linspace(-3, 5, 3 * int(np.prod(_SHAPE)), dtype=np.float32) ** 7
    arrays = [
        *((data, _array(data)) for data in (_PLAIN, _RECORD)),
        *((replace(_PLAIN, sampling=each), _array(_PLAIN)) for each in samplings if name == "dims"),
        *(
            (data, numbers.view(data.dtype).reshape(_SHAPE))
            for data in (_NUMBERS, replace(_NUMBERS, low=-1e5, high=1e5))
        ),
    ]
    for (data, array), value, beside in product(arrays, DIMENSIONS[name].probes, _BESIDE):
        try:
            layout = layout_of(data, {**beside, name: value})
            if not layout.not_an_image:
                yield f"{layout.cpp} {layout.raster(_SHAPE)}", layout.apply(array)
        except AutotuneError:  # it is not for this array
            continue


def _array(data: Data) -> NDArray[Any]:
    """Every byte another; links are small numbers, one of them outside the index space."""
    size = int(np.prod(_SHAPE)) * data.dtype.itemsize
    array = np.arange(size, dtype=np.uint32).astype(np.uint8).view(data.dtype).reshape(_SHAPE)
    for field in data.fields:
        if field.link:
            array[field.name] = np.arange(array.size, dtype=np.uint32).reshape(_SHAPE) % (_SHAPE[0] + 1)
    return array
