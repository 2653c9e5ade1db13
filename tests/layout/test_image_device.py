"""The accessors of images as a GPU's compiler sees them, over texture units and surfaces by the programming guide's
formulas: every element from two extents before the array to two behind it, and points between them."""

import ctypes
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from layouts import data, random_array, record
from numpy.typing import NDArray
from shim_library import shim_library

from autotune.layout import Sampling
from autotune.layout.image import EDGES
from autotune.layout.layout import Layout

_PADDED = {"clamp": "edge", "mirror": "symmetric", "wrap": "wrap", "border": "constant"}


@dataclass(frozen=True)
class Case:
    layout: Layout
    shape: tuple[int, ...]

    @property
    def sampling(self) -> Sampling:
        return self.layout.data.sampling or Sampling()

    @property
    def array(self) -> NDArray[Any]:
        if self.layout.data.dtype == np.float32:
            return np.random.default_rng(1).random(self.shape, np.float32)
        return random_array(self.layout.data, self.shape, None, seed=1)

    @property
    def read(self) -> NDArray[Any]:
        """What a load gives inside."""
        return np.float32(self.array / np.float32(255)) if self.sampling.is_normalised else self.array


def _case(type_name: str, shape: tuple[int, ...], sampling: Sampling, **choice: Any) -> Case:
    declared = data(type_name, rank=len(shape), sampling=sampling)
    return Case(Layout(data=declared, **{**TEXTURE, **choice}), shape)


TEXTURE: dict[str, Any] = {"memory": "texture", "dims": "image"}
CASES = [
    *(
        _case("float32", (3, 5), Sampling(edge, filter="linear"), axes=axes)
        for edge in EDGES
        for axes in ((0, 1), (1, 0))
    ),
    *(_case("uint8", (2, 3, 4), Sampling(edge, "normalised", "linear"), axes=(1, 2, 0)) for edge in EDGES),
    *(_case("uint8", (3, 4), Sampling(edge, "normalised"), memory="readonly") for edge in EDGES),
    *(_case("int16", (4, 3), Sampling(edge), dims="image_pitched") for edge in EDGES),
    *(_case("float32", (2, 3, 4), Sampling(edge, filter="linear"), memory="global", axes=(2, 0, 1)) for edge in EDGES),
    _case("float64", (3, 2), Sampling("mirror")),
    Case(Layout(data=record("float32", "int32", rank=2, sampling=Sampling("wrap")), **TEXTURE), (3, 4)),
    Case(Layout(data=record(*["int32"] * 4, rank=2, sampling=Sampling("border")), **TEXTURE), (3, 4)),
    Case(Layout(data=record(*["int32"] * 3, rank=2, sampling=Sampling("mirror")), records="soa"), (3, 4)),
]  # fmt: skip
NUMBERS = range(len(CASES))
SAMPLED = [n for n in NUMBERS if CASES[n].sampling.is_linear or CASES[n].sampling.is_normalised]
SURFACES = [
    Case(Layout(data=replace(data("uint8", rank=2), role="output"), dims="image"), (3, 5)),
    Case(
        Layout(data=replace(data("float64", rank=3), role="output"), dims="image", axes=(1, 2, 0)), (2, 3, 4)
    ),
    Case(
        Layout(data=replace(record(*["int32"] * 4, rank=2), role="output"), dims="image", axes=(1, 0)), (3, 5)
    ),
]


def _source() -> str:
    lines = ['#include "image_shim.hpp"']
    lines += [f"struct Record{n} {{ {' '.join(f'int f{i};' for i in range(n))} }};" for n in (2, 3, 4)]
    for macro, cases in (("IMAGE", CASES), ("SURFACE", SURFACES)):
        for number, case in enumerate(cases):
            layout = case.layout
            if layout.data.record:
                layout = replace(layout, data=replace(layout.data, record=f"Record{len(layout.data.fields)}"))
            lines.append(f"{macro}({number}, {len(layout.room(case.shape).argument(0))}, {layout.cpp})")
    lines += [f"SAMPLED({number})" for number in SAMPLED]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = shim_library(_source(), tmp_path_factory.mktemp("images"), "-O0")
    loaded.misused.restype = ctypes.c_bool
    return loaded


class Unit(ctypes.Structure):
    """As in image_shim.hpp."""

    _fields_ = (
        ("base", ctypes.c_void_p), ("size", ctypes.c_int * 3), ("edge", ctypes.c_int), ("is_linear", ctypes.c_int),
        ("format", ctypes.c_int),
    )  # fmt: skip


def place(case: Case, buffer: NDArray[np.uint8]) -> tuple[bytes, Any]:
    """The accessor onto ``buffer``, and what has to be kept for it."""
    stored = case.layout.room(case.shape)
    if stored.raster is None:
        return stored.argument(buffer.ctypes.data), buffer
    sampling, size = stored.raster.sampling, (*stored.raster.size, 1)[:3]
    unit = Unit(
        buffer.ctypes.data, (ctypes.c_int * 3)(*size), EDGES.index(sampling.edge), sampling.is_linear,
        255 if sampling.is_normalised else 0,
    )  # fmt: skip
    return stored.argument(ctypes.addressof(unit)), unit


def aligned(content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    spare = np.zeros(content.size + 16, np.uint8)
    start = -spare.ctypes.data % 16
    spare[start : start + content.size] = content
    return spare[start : start + content.size]


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize("number", NUMBERS)
def test_load_beyond_the_edge(number: int, library: ctypes.CDLL) -> None:
    case = CASES[number]
    stored = case.layout.apply(case.array)
    assert stored.buffer is not None
    argument, _kept = place(case, buffer := aligned(stored.buffer))
    beyond = [(2 * n, 2 * n) for n in case.shape]
    # Of records numpy pads no zeros: their places are padded instead.
    places = np.pad(np.arange(1, case.read.size + 1).reshape(case.shape), beyond, _PADDED[case.sampling.edge])
    expected = np.concatenate([np.zeros(1, case.read.dtype), case.read.reshape(-1)])[places]
    read = np.zeros_like(expected)
    getattr(library, f"load_{number}")(argument, pointer(read))
    assert buffer.size and not library.misused()
    if case.sampling.is_normalised:
        np.testing.assert_allclose(read, expected, atol=1e-6)
    else:
        assert read.tobytes() == expected.tobytes()


def interpolated(case: Case, at: NDArray[np.float32]) -> NDArray[np.float64]:
    """By numpy: weights of 8 bits; the nearest where it is not linear."""
    below = np.floor(at.astype(np.float64) + (0 if case.sampling.is_linear else 0.5)).astype(int)
    share = np.floor((at - below) * 256 + 0.5) / 256 if case.sampling.is_linear else np.zeros_like(at)
    far = np.pad(
        case.read.astype(np.float64), [(3 * n, 3 * n) for n in case.shape], _PADDED[case.sampling.edge]
    )
    total = np.zeros(len(at))
    for corner in np.ndindex(*[2] * at.shape[1]):
        index = tuple(below[:, axis] + corner[axis] + 3 * case.shape[axis] for axis in range(at.shape[1]))
        total += np.where(corner, share, 1 - share).prod(axis=1) * far[index]
    return total


@pytest.mark.parametrize("number", SAMPLED)
def test_sample_between_elements(number: int, library: ctypes.CDLL) -> None:
    case = CASES[number]
    stored = case.layout.apply(case.array)
    assert stored.buffer is not None
    argument, _kept = place(case, buffer := aligned(stored.buffer))
    shape = np.array(case.shape)
    at = (np.random.default_rng(2).random((400, len(shape))) * 4 * shape - 1.5 * shape).astype(np.float32)
    read = np.zeros(len(at), np.float32)
    getattr(library, f"sample_{number}")(argument, pointer(at), len(at), pointer(read))
    assert buffer.size and not library.misused()
    # A rounding of the coordinate may move a weight by its last bit.
    np.testing.assert_allclose(read, interpolated(case, at), atol=1e-5 + 1.01 / 256)


@pytest.mark.parametrize("number", range(len(SURFACES)))
def test_what_is_stored_by_a_surface_is_restored(number: int, library: ctypes.CDLL) -> None:
    case = SURFACES[number]
    room, array = case.layout.room(case.shape), case.array
    argument, _kept = place(case, buffer := aligned(np.zeros(room.nbytes, np.uint8)))
    getattr(library, f"turn_{number}")(argument, array.tobytes())
    assert not library.misused()
    assert case.layout.restore(replace(room, buffer=buffer), case.shape).tobytes() == array.tobytes()
