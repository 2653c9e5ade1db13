"""The exported C++ layout functions store what ``Layout.apply`` stores, byte for byte, and read it back; and they
order arrays as ``reordered`` does."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import AXES as ALL_AXES
from layouts import data, layouts, stored_layouts
from numpy.typing import NDArray

from autotune.export.orders import moves_of
from autotune.export.parts import members
from autotune.hardware import Limits
from autotune.layout.arrays import Data, Field
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout
from autotune.layout.order import Order, reorder
from autotune.layout.storage import STORAGES, Storage
from autotune.layout.stored import Stored
from autotune.layout.swizzle import Swizzle

CPP = Path(__file__).parents[2] / "autotune" / "export" / "cpp"
AXES = ALL_AXES[:3]
# What `members` of winner_parts.py says of a layout, as numbers in this order.
MEMBERS = (
    "memory", "dims", "element_bytes", "texel_bytes", "padding", "lanes", "members", "member", "plane_width",
    "plane_rows", "index_bits", "constant_bytes", "constant_offset", "packed_axis", "is_signed", "bits", "is_planar",
    "vector", "plus", "curve", "side", "span", "storage", "number_bytes", "scale", "by_row",
)  # fmt: skip
WORDS = {
    "Memory::readonly": 1, "Memory::texture": 2, "Memory::constant": 3, "Dims::plane": 1, "Dims::pitched_plane": 2,
    "true": 1, "false": 0, "Curve::morton": 1, "Curve::hilbert": 2,
    **{f"Storage::{name}": 1 + place for place, name in enumerate(n for n in STORAGES if not n.endswith("by_row"))},
}  # fmt: skip
PROGRAM = """
#include "tuned/order.h"

using namespace tuned;

static float float_of(std::int64_t bits) {
  const std::int32_t narrow = static_cast<std::int32_t>(bits);
  float number;
  std::memcpy(&number, &narrow, sizeof number);
  return number;
}

// `axes` are the axes, the sizes of a tile (zeros: none), how many axes a curve runs along, and these; how many groups
// of fields there are, and of each how many parts it has, and these; how many swizzles there are, and of each the
// column, the row, the groups and their width.
static Layout layout_of(const std::int64_t* given, const std::int64_t* axes, int rank) {
  Layout layout;
  layout.name = "a";
  layout.axes.assign(axes, axes + rank);
  if (axes[rank]) layout.tiles.assign(axes + rank, axes + 2 * rank);
  layout.along.assign(axes + 2 * rank + 1, axes + 2 * rank + 1 + axes[2 * rank]);
  const std::int64_t* rest = axes + 2 * rank + 1 + axes[2 * rank];
  for (std::int64_t group = *rest++; group > 0; --group, rest += 1 + *rest)
    layout.fields.emplace_back(rest + 1, rest + 1 + *rest);
  for (std::int64_t step = *rest++; step > 0; --step, rest += 4)
    layout.steps.push_back([rest](Shape& at, const Shape&) { at[rest[0]] ^= at[rest[1]] %% rest[2] * rest[3]; });
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

// Three index spaces; the axes of an array are in the first ones. An extent of 0 is a space without an order.
extern "C" int reorder(const std::int64_t* extents, const std::int64_t* const* permutations, int rank,
                       const std::int64_t* shape, int element_bytes, int links, const int* link, const void* array,
                       unsigned char* into, unsigned char* back) {
  try {
    std::vector<Order> orders(3);
    for (int i = 0; i < 3; ++i)
      if (extents[i] > 0) orders[i] = order("o", permutations[i], extents[i]);
    Moves moves;
    for (int axis = 0; axis < rank; ++axis) moves.spaces.push_back(axis);
    for (; links > 0; --links, link += 4) moves.links.push_back({link[0], link[1], link[2], link[3] != 0});
    const Bytes moved = reordered(moves, orders, Shape(shape, shape + rank), element_bytes, array);
    std::memcpy(into, moved.data(), moved.size());
    std::memcpy(back, moved.data(), moved.size());
    put_back(moves, orders, Shape(shape, shape + rank), element_bytes, back);
    return is_moved(moves, orders);
  } catch (const std::invalid_argument&) {
    return -1;
  }
}
"""
Call = Callable[..., int]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("layout")
    shutil.copytree(CPP, folder / "tuned")
    kinds = {
        "memory": "Memory", "dims": "Dims", "curve": "Curve", "is_signed": "bool", "is_planar": "bool",
        "storage": "Storage", "scale": "float", "by_row": "bool",
    }  # fmt: skip
    numbers = ("plane_width", "plane_rows", "constant_bytes", "constant_offset")
    told = "\n  ".join(
        f"if (given[{i}] != -9) layout.{name} = "
        f"static_cast<{kinds.get(name, 'std::int64_t' if name in numbers else 'int')}>(given[{i}]);"
        for i, name in enumerate(MEMBERS)
    )
    told = told.replace("static_cast<float>(", "float_of(")
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

    def numbers(name: str, default: str) -> list[int]:
        return [int(number) for number in told.pop(name, default).strip("{}").split(",") if number]

    axes = numbers("axes", "{0}")
    tiles, along = numbers("tiles", "") or [0] * len(axes), numbers("along", "")
    groups = [
        [int(part) for part in group.split(",")]
        for group in told.pop("fields", "{{}}")[2:-2].split("}, {")
        if group
    ]
    lists = [*axes, *tiles, len(along), *along, len(groups)]
    lists += [number for group in groups for number in (len(group), *group)]
    steps = re.findall(r"at\[(\d)\] \^= at\[(\d)\] % (\d+) \* (\d+);", text := told.pop("steps", ""))
    assert len(steps) == text.count("[](")
    lists += [len(steps), *(int(number) for step in steps for number in step)]
    del told["name"]
    assert told.keys() <= set(MEMBERS)
    if "scale" in told:  # its bits, as a whole number
        told["scale"] = str(int(np.float32(told["scale"].removesuffix("f")).view(np.int32)))
    values = [int(WORDS.get(text, text)) for text in (told.get(name, "-9") for name in MEMBERS)]
    return [
        (ctypes.c_int64 * len(values))(*values),
        (ctypes.c_int64 * len(lists))(*lists),
        len(axes),
        (ctypes.c_int64 * len(shape))(*shape),
    ]


def pointer(array: NDArray[Any]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def stored_and_back(
    library: ctypes.CDLL, layout: Layout, array: NDArray[Any], stored: Stored
) -> NDArray[Any]:
    """What C++ reads back from what it stores, which is to be what Python has ``stored``."""
    assert stored.buffer is not None
    told = arguments(layout, array.shape)
    assert library.bytes_of(*told) == stored.nbytes
    found = np.full(stored.nbytes, 0xA5, np.uint8)
    assert library.store(*told, pointer(np.ascontiguousarray(array)), pointer(found)) == 0
    assert found.tobytes() == stored.buffer.tobytes()
    back = np.zeros_like(array)
    library.read_back(*told, pointer(found), ctypes.c_int64(found.size), pointer(back))
    return back


@settings(max_examples=60, deadline=None)
@given(drawn=stored_layouts())
def test_cpp_stores_the_same_codes(library: ctypes.CDLL, drawn: tuple[Layout, NDArray[Any]]) -> None:
    layout, array = drawn
    stored = layout.apply(array)
    back = stored_and_back(library, layout, array, stored)
    np.testing.assert_array_equal(back, layout.restore(stored, array.shape))


@pytest.mark.parametrize("storage", STORAGES.values(), ids=lambda one: one.name)
def test_cpp_rounds_a_double_as_python_does(library: ctypes.CDLL, storage: Storage) -> None:
    """Among them what a float32 on the way would make a tie of."""
    ties = [1 + 2.0**-n for n in (4, 5, 9, 10, 11, 12)]
    array = np.array(
        [*ties, *(t + 2.0**-40 for t in ties), *(t - 2.0**-40 for t in ties), -3e38, 1e39, 1e-40]
    )
    declared = Data(name="a", role="input", fields=(Field("", "float64"),), shape=("i",))
    layout = Layout(data=declared, storage=storage)
    stored_and_back(library, layout, array, layout.apply(array))


@settings(max_examples=150, deadline=None)
@given(drawn=layouts())
def test_cpp_stores_what_python_stores(library: ctypes.CDLL, drawn: tuple[Layout, NDArray[Any]]) -> None:
    layout, array = drawn
    assert stored_and_back(library, layout, array, layout.apply(array)).tobytes() == array.tobytes()


def test_the_steps_of_indices_as_they_are_written_are_cpp(tmp_path: Path) -> None:
    layout = Layout(data=data("float32", rank=2), axes=(1, 0), steps=(Swizzle(2, 2),), tiles=(1, 2))
    told = "".join(f"  layout.{name} = {value};\n" for name, value in members(layout))
    shutil.copytree(CPP, tmp_path / "tuned")
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#include <numeric>\n#include "tuned/layout.h"\nint main() {\n  tuned::Layout layout;\n'
        f"{told}  std::vector<float> x(15);\n  std::iota(x.begin(), x.end(), 0.0f);\n"
        "  const tuned::Bytes bytes = tuned::stored(layout, {3, 5}, x.data());\n"
        "  std::fwrite(bytes.data(), 1, bytes.size(), stdout);\n}\n"
    )
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I.", "-o", "main", "main.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True).stdout
    stored = layout.apply(np.arange(15, dtype=np.float32).reshape(3, 5))
    assert stored.buffer is not None and found == stored.buffer.tobytes()


Orders = dict[str, NDArray[np.int64]]  # by index space: permutation[new] = old


@st.composite
def ordered(draw: st.DrawFn) -> tuple[Data, NDArray[Any], Orders]:
    """An array, some of whose numbers are links, and orders of some index spaces."""
    sizes = dict(zip(AXES, draw(st.lists(st.integers(1, 7), min_size=3, max_size=3)), strict=True))
    rank = draw(st.integers(1, 3))
    one = st.tuples(
        st.sampled_from(["int8", "uint8", "int32", "uint32", "int64"]), st.sampled_from(("", *AXES))
    )
    drawn = draw(st.lists(one, min_size=1, max_size=4))
    is_record = len(drawn) > 1 or draw(st.booleans())
    fields = tuple(Field(f"f{i}" if is_record else "", kind, link) for i, (kind, link) in enumerate(drawn))
    declared = Data(name="a", role="input", fields=fields, shape=AXES[:rank], record="R" if is_record else "")
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = np.zeros(tuple(sizes[name] for name in declared.shape), declared.dtype)
    for member in fields:
        low = 0 if member.type.startswith("u") else -1
        array[member.name if is_record else ...] = generator.integers(
            low, 9, array.shape
        )  # some lead to nothing
    spaces = draw(st.lists(st.sampled_from(AXES), unique=True))
    return declared, array, {name: generator.permutation(sizes[name]) for name in spaces}


def reorder_by_library(
    library: ctypes.CDLL, declared: Data, array: NDArray[Any], orders: Orders
) -> tuple[int, Any, Any]:
    """Return whether C++ moves the array (-1: rejected), the array moved, and that moved back."""
    told = moves_of(declared, AXES)["links"]
    links = [int(WORDS.get(word, word)) for word in re.findall(r"\w+", told)]
    moved, back = np.zeros_like(array), np.zeros_like(array)
    places = (ctypes.c_void_p * 3)(*(orders[n].ctypes.data if n in orders else None for n in AXES))
    extents = (ctypes.c_int64 * 3)(*(orders[n].size if n in orders else 0 for n in AXES))
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    status = library.reorder(extents, places, array.ndim, shape, array.dtype.itemsize, len(links) // 4,
                             (ctypes.c_int * max(len(links), 1))(*links), pointer(array), pointer(moved),
                             pointer(back))  # fmt: skip
    return status, moved, back


@settings(max_examples=100, deadline=None)
@given(drawn=ordered())
def test_cpp_moves_and_renumbers_what_python_does(
    library: ctypes.CDLL, drawn: tuple[Data, NDArray[Any], Orders]
) -> None:
    declared, array, orders = drawn
    known = {name: Order.make(permutation, permutation.size) for name, permutation in orders.items()}
    status, moved, back = reorder_by_library(library, declared, array, orders)
    assert moved.tobytes() == reorder(declared, array, known).tobytes()
    assert back.tobytes() == array.tobytes()
    spaces = {*declared.shape, *(member.link for member in declared.fields)}
    assert status == bool(spaces & orders.keys())


@pytest.mark.parametrize("permutation", [[0, 0, 2], [0, 1, 3], [-1, 1, 2]])
def test_what_is_no_permutation_is_refused(library: ctypes.CDLL, permutation: list[int]) -> None:
    declared = data()
    orders = {"i": np.array(permutation)}
    assert reorder_by_library(library, declared, np.arange(3, dtype=np.int32), orders)[0] == -1


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
    refused = bool(layout.room((count,)).explain_refusal(layout.data, Limits()))
    assert bool(library.is_refused(*arguments(layout, (count,)))) == refused
