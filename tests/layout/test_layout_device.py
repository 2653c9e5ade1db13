"""The accessor a kernel receives finds every element where the host put it: compiled by the host's C++
compiler, all cases in one translation unit, and called on the buffers that ``Layout.apply`` made."""

import ctypes
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from layouts import data, random_array, record
from numpy.typing import NDArray
from shim_library import shim_library

from autotune.layout.arrays import SCALAR_TYPES, Data
from autotune.layout.bit_packing import PACKINGS, Packing, packing
from autotune.layout.curve import CURVES, Curve
from autotune.layout.layout import Layout
from autotune.layout.storage import STORAGES
from autotune.layout.stored import Stored
from autotune.layout.swizzle import Swizzle


@dataclass(frozen=True)
class Case:
    """A layout with the canonical shape it is tried on."""

    layout: Layout
    shape: tuple[int, ...]

    @property
    def array(self) -> NDArray[Any]:
        if self.layout.storage:  # numbers that it has a code for
            fields = len(self.layout.data.fields)
            numbers = np.random.default_rng(1).normal(0, 30, (*self.shape, fields))
            numbers = numbers.astype(self.layout.data.fields[0].type)
            made = numbers.view(self.layout.data.dtype).reshape(self.shape)
            return self.layout.restore(self.layout.apply(made), self.shape)
        top = 2 ** min(self.layout.packing.bits, 31) - 1 if self.layout.packing else None
        return random_array(self.layout.data, self.shape, top, seed=1)

    @property
    def values(self) -> bytes:
        """What the kernel reads, index by index: packed values are joined from the canonical array."""
        if self.layout.packing is None:
            return self.array.tobytes()
        axis = self.layout.data.shape.index(self.layout.data.packed)
        joined = self.layout.packing.elements * self.layout.vector
        short = -self.shape[axis] % joined
        rows = np.pad(np.moveaxis(self.array, axis, -1), [(0, 0)] * (len(self.shape) - 1) + [(0, short)])
        words = np.ascontiguousarray(self.layout.packing.pack(rows))
        return np.moveaxis(words.reshape(*rows.shape[:-1], rows.shape[-1] // joined, -1), -2, axis).tobytes()


def _structs() -> list[Case]:
    """Three numbers of two kinds, in every axes x records x dims x grouping x index width."""
    cases = []
    choices = itertools.product(
        [(0, 1), (1, 0)], ["aos", "soa", "aosoa4"], ["1d", "2d"], [(1, 0), (3, 2)], [32, 64]
    )
    for axes, records, dims, group, bits in choices:
        declared = record("int32", "float32", "int32", rank=2, plane=(32, 4), index_bits=bits)
        layout = Layout(data=declared, axes=axes, records=records, dims=dims, group=group, padding=3)
        cases.append(Case(layout, (5, 7)))
    return cases


def _mapped() -> list[Case]:
    """Tiles, curves and swizzles, alone and together."""
    cases = []
    choices = itertools.product(
        [(), (2, 3), (4, 1)],
        [None, Curve("morton", (0, 1)), Curve("hilbert", (0, 1)), Curve("hilbert", (0, 1), 4)],
        [(), (Swizzle(4, 2),)],
        [((0, 1), 32), ((1, 0), 64)],
    )
    for tiles, curve, steps, (axes, bits) in list(choices)[::5]:
        declared = record("int32", "float32", rank=2, index_bits=bits)
        more: dict[str, Any] = {"tiles": tiles, "curve": curve, "steps": steps, "padding": 3, "plus": 1}
        cases.append(Case(Layout(data=declared, axes=axes, records="aosoa3", **more), (11, 19)))
    spaces = itertools.product([(0, 1, 2), (0, 2)], [0, 8], [32, 64], CURVES)
    for along, side, bits, kind in list(spaces)[::3]:
        declared = data("int32", rank=3, index_bits=bits)
        layout = Layout(data=declared, axes=(2, 0, 1), curve=Curve(kind, along, side), tiles=(1, 2, 1))
        cases.append(Case(layout, (5, 7, 9)))
    return cases


def _grouped() -> list[Case]:
    """Return fields in groups, narrow and wide ones, combined with the other choices."""
    wide, mixed = ("float32",) * 5, ("float64", "float32", "int16", "int16", "float64")
    choices: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
        (wide, "f0+f1+f2+f3-f4", {}),
        (wide, "f4+f0-f1+f2+f3", {"axes": (1, 0), "padding": 4, "group": (2, 1)}),
        (wide, "f0+f1-f2+f3-f4", {"memory": "texture", "dims": "2d"}),
        (wide, "f3-f0+f1+f2+f4", {"memory": "texture", "tiles": (2, 3)}),
        (wide, "f0+f1+f2+f3-f4", {"memory": "constant", "constant_offset": 512}),
        (wide, "f0+f1+f2+f3-f4", {"memory": "readonly", "curve": Curve("hilbert", (0, 1))}),
        (mixed, "f0+f4-f1+f2+f3", {"steps": (Swizzle(4, 2),)}),
        (mixed, "f1-f0+f2+f3+f4", {"dims": "2d"}),
        (mixed, "f0-f1-f2-f3-f4", {"memory": "readonly"}),
        (mixed, "aos", {"memory": "texture"}),
        (mixed, "aosoa4", {"memory": "readonly", "dims": "2d"}),
        (wide[:4], "aos", {"memory": "texture"}),
        (wide[:4], "aos", {}),
        (wide, "soa", {"group": (3, 2)}),
    ]  # fmt: skip
    cases = []
    for number, (types, records, more) in enumerate(choices):
        declared = record(*types, rank=2, plane=(32, 4), index_bits=64 if number % 2 else 32)
        cases.append(Case(Layout(data=declared, records=records, **more), (5, 7)))
    return cases


def _stored(name: str, **choice: Any) -> Case:
    """Two numbers a record, in one of the storages."""
    declared = record("float32", "float32", rank=2, plane=(32, 4))
    return Case(Layout(data=declared, storage=STORAGES[name], padding=3, **choice), (5, 7))


def _packed(name: str, vector: int, **choice: Any) -> Case:
    declared = data("int32", rank=2, packed="j", plane=(32, 4))
    return Case(Layout(data=declared, packing=packing(name), vector=vector, **choice), (5, 150))


GROUPED = _grouped()
CASES = [
    *_structs(),
    *_mapped(),
    *GROUPED,
    Case(Layout(data=data("int8")), (5,)),
    Case(Layout(data=data("uint16")), (5,)),
    Case(Layout(data=data("float64", rank=3), axes=(1, 2, 0), padding=4), (2, 3, 5)),
    Case(Layout(data=data("int32", rank=3, index_bits=64), axes=(2, 0, 1)), (2, 3, 5)),
    Case(Layout(data=record("int8", "int8", "int8"), records="soa"), (9,)),
    Case(Layout(data=record(*["int64"] * 4)), (9,)),
    Case(Layout(data=record(*["int32"] * 4, plane=(32, 4)), dims="2d", memory="texture"), (200,)),
    Case(
        Layout(data=record("float32", "float32", plane=(32, 1)), dims="2d_pitched", memory="texture"), (200,)
    ),
    Case(Layout(data=record("int16", "int16", "int16"), records="aosoa4", memory="texture"), (9,)),
    Case(Layout(data=record("int64", "float64"), memory="readonly", group=(2, 1)), (9,)),
    Case(Layout(data=record("int32", "int32"), memory="constant", constant_offset=4096, records="soa"), (9,)),
    *[_packed(name, vector) for name in PACKINGS for vector in (1, 4)],
    _packed("int8", 2, axes=(1, 0), memory="readonly"),
    _packed("int16", 2, axes=(1, 0), memory="constant", records="soa"),
    _packed("bits2", 2, memory="texture", padding=5),
    _packed("planes2", 2, axes=(1, 0), memory="texture", dims="2d"),
    _packed("planes4", 4, axes=(1, 0), records="aosoa4", dims="2d", group=(2, 1)),
]
FIRST_PLAIN = len(CASES)
CASES += [
    *[Case(Layout(data=data("float32", low=-60, high=200), storage=one), (9,)) for one in STORAGES.values()],
    Case(Layout(data=data("float64", rank=2), storage=STORAGES["float32"]), (5, 7)),
    Case(Layout(data=data("float64", rank=2), storage=STORAGES["bfloat16"], axes=(1, 0)), (5, 7)),
    Case(Layout(data=record(*["float32"] * 8), storage=STORAGES["float16"]), (9,)),
    Case(Layout(data=record(*["float32"] * 16), storage=STORAGES["scaled_int8"], memory="readonly"), (9,)),
    *[
        _stored(name, records=records, **choice)
        for name in STORAGES
        for records in ("aos", "soa", "aosoa4", "f1-f0")
        for choice in ({"memory": "readonly"}, {"memory": "texture", "dims": "2d", "axes": (1, 0)})
    ],
    _stored("float16", records="soa", dims="2d"),
    _stored("float16", records="f1-f0"),
    _stored("scaled_int16", records="f1-f0", memory="readonly", tiles=(2, 4)),
    _stored("scaled_int8_by_row", memory="texture", tiles=(3, 2)),
    Case(Layout(data=record(*["float32"] * 4), storage=STORAGES["bfloat16"], records="f0+f2-f1+f3"), (9,)),
    _stored("scaled_int8_by_row", memory="constant", constant_offset=512),
    _stored("scaled_int16", memory="constant", records="aosoa4"),
]
NUMBERS = range(len(CASES))
FIELDS = [number for number in NUMBERS if CASES[number] in GROUPED]
WRITABLE = [n for n in NUMBERS if CASES[n].layout.memory == "global" and not CASES[n].layout.stored_scales]
ADDED = next(n for n in NUMBERS if CASES[n].layout.data.dtype == np.int32 and CASES[n].layout.packing is None)


def _source() -> str:
    """One translation unit with every case: a loader, and a writer where the memory can be written."""
    lines = ['#include "device_shim.hpp"']
    structs: dict[str, str] = {}
    for number, case in enumerate(CASES):
        layout = case.layout
        if layout.data.record:
            members = " ".join(f"{SCALAR_TYPES[field.type]} {field.name};" for field in layout.data.fields)
            if members not in structs:
                structs[members] = f"Record{len(structs)}"
                lines.append(f"struct {structs[members]} {{ {members} }};")
            layout = replace(layout, data=replace(layout.data, record=structs[members]))
        if number in WRITABLE or number == ADDED:  # an input would be const
            layout = replace(layout, data=replace(layout.data, role="scratch"))
        lines.append(f"CASE({number}, {len(layout.room(case.shape).argument(0))}, {layout.cpp})")
    lines += [f"WRITABLE({number})" for number in WRITABLE]
    lines.append(f"ADDABLE({ADDED})")
    for number in FIELDS:
        kinds = ("FIELD", "WRITABLE_FIELD") if number in WRITABLE else ("FIELD",)
        lines += [f"{kind}({number}, {f.name})" for f in CASES[number].layout.data.fields for kind in kinds]
    lines += [f"PACKING({name}, {one.cpp})" for name, one in PACKINGS.items()]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = shim_library(_source(), tmp_path_factory.mktemp("device"), "-O0")
    loaded.window.restype = ctypes.POINTER(ctypes.c_ubyte)
    loaded.misused.restype = ctypes.c_bool
    return loaded


class Texture(ctypes.Structure):
    """As in device_shim.hpp."""

    _fields_ = (("base", ctypes.c_void_p), ("width", ctypes.c_uint64), ("texels", ctypes.c_uint64))


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def aligned(count: int) -> NDArray[np.uint8]:
    """Zeroed bytes at a multiple of 16, as a device allocates them."""
    spare = np.zeros(count + 16, np.uint8)
    start = -spare.ctypes.data % 16
    return spare[start : start + count]


@dataclass
class Placed:
    """A stored array where the compiled code finds it. ``texture`` is held here because only its address is known
    to the accessor."""

    argument: bytes
    buffer: NDArray[np.uint8]
    texture: Texture | None = None


def place(stored: Stored, library: ctypes.CDLL) -> Placed:
    assert stored.buffer is not None
    buffer = aligned(stored.nbytes)
    buffer[:] = stored.buffer
    if stored.memory == "constant":
        assert stored.constant_offset + stored.nbytes <= 65536
        window = ctypes.addressof(library.window().contents)
        ctypes.memset(window, 0xEE, 65536)
        ctypes.memmove(window + stored.constant_offset, buffer.tobytes(), stored.nbytes)
        return Placed(stored.argument(0), buffer)
    if stored.memory == "texture":
        texture = Texture(buffer.ctypes.data, stored.plane[0] if stored.plane else 0, stored.texels)
        return Placed(stored.argument(ctypes.addressof(texture)), buffer, texture)
    return Placed(stored.argument(buffer.ctypes.data), buffer)


@pytest.mark.parametrize("number", NUMBERS)
def test_load(number: int, library: ctypes.CDLL) -> None:
    case = CASES[number]
    expected = case.values
    placed = place(case.layout.apply(case.array), library)
    read = np.zeros(len(expected), np.uint8)
    getattr(library, f"load_{number}")(placed.argument, pointer(read))
    assert not library.misused()
    assert read.tobytes() == expected


@pytest.mark.parametrize("number", WRITABLE)
def test_store(number: int, library: ctypes.CDLL) -> None:
    case = CASES[number]
    room = case.layout.room(case.shape)
    buffer = aligned(room.nbytes)
    getattr(library, f"store_{number}")(room.argument(buffer.ctypes.data), case.values)
    restored = case.layout.restore(replace(room, buffer=buffer), case.shape)
    assert restored.tobytes() == case.array.tobytes()


@pytest.mark.parametrize("number", sorted({*WRITABLE} & {*range(FIRST_PLAIN, FIRST_PLAIN + len(STORAGES))}))
def test_a_store_rounds_as_the_host_does(number: int, library: ctypes.CDLL) -> None:
    layout = CASES[number].layout
    edges = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        448,
        463.9,
        464,
        57344,
        65504,
        65519.9,
        65520,
        6e-8,
        2.98e-8,
        3e-5,
    ]
    random = np.random.default_rng(2)
    bits = random.integers(0, 2**32, 20_000, np.uint32).view(np.float32)
    near = np.exp2(random.uniform(-30, 18, 20_000)).astype(np.float32)
    ties = np.arange(1 << 12, dtype=np.uint32) << 19 | random.integers(0, 2, 1 << 12).astype(np.uint32)
    numbers = np.concatenate([np.array(edges, np.float32), bits, near, -near, ties.view(np.float32)])
    room = layout.room(numbers.shape)
    buffer = aligned(room.nbytes)
    getattr(library, f"store_{number}")(room.argument(buffer.ctypes.data), numbers.tobytes())
    made = layout.restore(replace(room, buffer=buffer), numbers.shape)
    expected = layout.restore(layout.apply(numbers), numbers.shape)
    np.testing.assert_array_equal(made, expected)
    read = np.zeros(len(numbers), np.float32)
    getattr(library, f"load_{number}")(room.argument(buffer.ctypes.data), pointer(read))
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("number", FIELDS)
def test_one_field_alone(number: int, library: ctypes.CDLL) -> None:
    case = CASES[number]
    placed = place(case.layout.apply(case.array), library)
    room = case.layout.room(case.shape)
    buffer = aligned(room.nbytes)
    for field in case.layout.data.fields:
        expected = case.array[field.name].tobytes()
        read = np.zeros(len(expected), np.uint8)
        getattr(library, f"load_{number}_{field.name}")(placed.argument, pointer(read))
        assert read.tobytes() == expected, field.name
        if number in WRITABLE:
            getattr(library, f"store_{number}_{field.name}")(room.argument(buffer.ctypes.data), expected)
    assert not library.misused()
    if number in WRITABLE:
        restored = case.layout.restore(replace(room, buffer=buffer), case.shape)
        assert restored.tobytes() == case.array.tobytes()


def test_add(library: ctypes.CDLL) -> None:
    layout, shape = CASES[ADDED].layout, CASES[ADDED].shape
    stored = layout.apply(np.full(shape, 1000, np.int32))
    placed = place(stored, library)
    counts = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    for _ in range(2):
        getattr(library, f"add_{ADDED}")(placed.argument, counts.tobytes())
    summed = layout.restore(replace(stored, buffer=placed.buffer), shape)
    np.testing.assert_array_equal(summed, 1000 + 2 * counts)


# -- packing.cuh ------------------------------------------------------------------------------------------


def _some(one: Packing, like: NDArray[np.uint32] | None, seed: int) -> NDArray[np.uint32]:
    """64 words of random elements, half of them as in ``like``."""
    generator = np.random.default_rng(seed)
    made = generator.integers(0, 2**one.bits, (64, one.elements), np.uint32)
    return made if like is None else np.where(generator.random(made.shape) < 0.5, like, made)


@pytest.mark.parametrize("name", PACKINGS)
def test_comparison(name: str, library: ctypes.CDLL) -> None:
    one = PACKINGS[name]
    a = _some(one, None, 1)
    b, c = _some(one, a, 2), _some(one, a, 3)
    a[0] = c[0] = 0
    b[0] = 2**one.bits - 1  # every element differs, in every bit
    out = np.zeros((64, one.elements + 2), np.uint32)
    packed = [np.ascontiguousarray(one.pack(values)) for values in (a, b, c)]
    getattr(library, f"compare_{name}")(*map(pointer, packed), 64, pointer(out))
    np.testing.assert_array_equal(out[:, :-2], a)
    np.testing.assert_array_equal(out[:, -2], (a != b).sum(axis=1))
    np.testing.assert_array_equal(out[:, -1], ((a != b) & (a != c)).sum(axis=1))


@pytest.mark.parametrize("name", PACKINGS)
def test_filled(name: str, library: ctypes.CDLL) -> None:
    one = PACKINGS[name]
    for value in {0, 1, 2**one.bits - 1, (2**one.bits - 1) // 3}:
        out = np.zeros(one.elements, np.uint32)
        getattr(library, f"fill_{name}")(value, pointer(out))
        assert set(out.tolist()) == {value}


def test_every_kind_is_tried() -> None:
    tried: list[Data] = [case.layout.data for case in CASES]
    assert {case.layout.memory for case in CASES} == {"global", "readonly", "texture", "constant"}
    assert {case.layout.dims for case in CASES} == {"1d", "2d", "2d_pitched"}
    assert {case.layout.texel_bytes for case in CASES} == {1, 2, 4, 8, 16}
    assert {len(declared.shape) for declared in tried} == {1, 2, 3}
    assert max(case.layout.parts for case in CASES) == 12
