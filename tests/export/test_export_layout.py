"""The exported C++ layout functions store what ``Layout.apply`` stores, byte for byte, and read it back."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from layouts import AXES, data, layouts
from numpy.typing import NDArray

from autotune.export.parts import members
from autotune.hardware import Limits
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout

CPP = Path(__file__).parents[2] / "autotune" / "export" / "cpp"
# What `members` of winner_parts.py says of a layout, as numbers in this order.
MEMBERS = (
    "memory", "dims", "element_bytes", "texel_bytes", "padding", "lanes", "members", "member", "plane_width",
    "plane_rows", "index_bits", "constant_bytes", "constant_offset", "packed_axis", "is_signed", "bits", "is_planar",
    "vector",
)  # fmt: skip
WORDS = {
    "Memory::readonly": 1, "Memory::texture": 2, "Memory::constant": 3, "Dims::plane": 1, "Dims::pitched_plane": 2,
    "true": 1,
}  # fmt: skip
PROGRAM = """
#include "tuned/layout.h"

using namespace tuned;

static Layout layout_of(const std::int64_t* given, const std::int64_t* axes, int rank) {
  Layout layout;
  layout.name = "a";
  layout.axes.assign(axes, axes + rank);
  %s
  return layout;
}

extern "C" std::int64_t bytes_of(const std::int64_t* given, const std::int64_t* axes, int rank,
                                 const std::int64_t* shape) {
  return room(layout_of(given, axes, rank), Shape(shape, shape + rank)).bytes;
}

extern "C" int store(const std::int64_t* given, const std::int64_t* axes, int rank, const std::int64_t* shape,
                     const void* array, unsigned char* into) {
  try {
    const Bytes bytes = stored(layout_of(given, axes, rank), Shape(shape, shape + rank), array);
    std::memcpy(into, bytes.data(), bytes.size());
    return 0;
  } catch (const std::out_of_range&) {
    return 1;
  }
}

extern "C" void read_back(const std::int64_t* given, const std::int64_t* axes, int rank, const std::int64_t* shape,
                          const unsigned char* from, std::int64_t length, void* array) {
  restore(layout_of(given, axes, rank), Shape(shape, shape + rank), Bytes(from, from + length), array);
}

extern "C" int is_refused(const std::int64_t* given, const std::int64_t* axes, int rank, const std::int64_t* shape) {
  const Layout layout = layout_of(given, axes, rank);
  return !refusal(layout, room(layout, Shape(shape, shape + rank)), Limits()).empty();
}
"""
Call = Callable[..., int]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("layout")
    shutil.copytree(CPP, folder / "tuned")
    kinds = {"memory": "Memory", "dims": "Dims", "is_signed": "bool", "is_planar": "bool"}
    numbers = ("plane_width", "plane_rows", "constant_bytes", "constant_offset")
    told = "\n  ".join(
        f"if (given[{i}] != -9) layout.{name} = "
        f"static_cast<{kinds.get(name, 'std::int64_t' if name in numbers else 'int')}>(given[{i}]);"
        for i, name in enumerate(MEMBERS)
    )
    (folder / "layout.cpp").write_text(PROGRAM % told)
    command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=undefined",
               "-fno-sanitize-recover", "-shared", "-fPIC", "-I.", "-o", "layout.so", "layout.cpp"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "layout.so"))
    found.bytes_of.restype = ctypes.c_int64
    return found


def arguments(layout: Layout, shape: tuple[int, ...]) -> list[Any]:
    """The layout and the shape as the C functions take them: from what the generator would write."""
    told = dict(members(layout))
    axes = [int(axis) for axis in told.pop("axes", "{0}").strip("{}").split(",")]
    del told["name"]
    assert told.keys() <= set(MEMBERS)
    values = [int(WORDS.get(text, text)) for text in (told.get(name, "-9") for name in MEMBERS)]
    return [
        (ctypes.c_int64 * len(values))(*values),
        (ctypes.c_int64 * len(axes))(*axes),
        len(axes),
        (ctypes.c_int64 * len(shape))(*shape),
    ]


def pointer(array: NDArray[Any]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


@settings(max_examples=150, deadline=None)
@given(drawn=layouts())
def test_cpp_stores_what_python_stores(library: ctypes.CDLL, drawn: tuple[Layout, NDArray[Any]]) -> None:
    layout, array = drawn
    expected = layout.apply(array)
    assert expected.buffer is not None
    told = arguments(layout, array.shape)
    assert library.bytes_of(*told) == expected.nbytes
    found = np.full(expected.nbytes, 0xA5, np.uint8)
    assert library.store(*told, pointer(np.ascontiguousarray(array)), pointer(found)) == 0
    assert found.tobytes() == expected.buffer.tobytes()
    back = np.zeros_like(array)
    library.read_back(*told, pointer(found), ctypes.c_int64(found.size), pointer(back))
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["bits2", "planes2", "int8", "int32"])
@pytest.mark.parametrize("number", [-1, 4, 256])
def test_a_number_that_a_packing_does_not_hold_is_refused(
    library: ctypes.CDLL, name: str, number: int
) -> None:
    layout = Layout(data=data(packed=AXES[0]), packing=packing(name))
    array = np.array([0, number, 1], np.int32)
    stored = np.zeros(layout.room(array.shape).nbytes, np.uint8)
    fits = 0 <= number < 2 ** packing(name).bits
    assert library.store(*arguments(layout, array.shape), pointer(array), pointer(stored)) == (
        0 if fits else 1
    )


@pytest.mark.parametrize("memory", ["global", "texture", "constant"])
@pytest.mark.parametrize("dims", ["1d", "2d", "2d_pitched"])
@pytest.mark.parametrize("count", [16384, 16385, 2**28, 2**28 + 1, 2**33])
def test_a_limit_is_the_same_one(library: ctypes.CDLL, memory: str, dims: str, count: int) -> None:
    layout = Layout(data=data(plane=(4096, 1)), memory=memory, dims=dims)
    refused = bool(layout.room((count,)).refusal(layout.data, Limits()))
    assert bool(library.is_refused(*arguments(layout, (count,)))) == refused
