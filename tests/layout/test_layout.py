"""Layouts by hand: addresses and bytes worked out on paper."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from layouts import data, record

from autotune.errors import UnknownName, WorkloadError
from autotune.layout import Sampling, layout_of
from autotune.layout.bit_packing import PACKINGS, packing
from autotune.layout.layout import Layout
from autotune.layout.stored import Stored


def words(stored: Stored, dtype: str = "int32") -> list[int]:
    """The buffer in address order."""
    assert stored.buffer is not None
    listed: list[int] = stored.buffer.view(dtype).tolist()
    return listed


# -- axes and padding -------------------------------------------------------------------------------------

TWO_BY_THREE = np.array([[0, 1, 2], [3, 4, 5]], np.int32)


@pytest.mark.parametrize(
    ("axes", "padding", "strides", "buffer"),
    [
        ((0, 1), 1, (3, 1), [0, 1, 2, 3, 4, 5]),
        ((1, 0), 1, (1, 2), [0, 3, 1, 4, 2, 5]),
        ((0, 1), 2, (4, 1), [0, 1, 2, 0, 3, 4, 5, 0]),
        ((0, 1), 4, (4, 1), [0, 1, 2, 0, 3, 4, 5, 0]),
        ((0, 1), 3, (3, 1), [0, 1, 2, 3, 4, 5]),
        ((1, 0), 3, (1, 3), [0, 3, 0, 1, 4, 0, 2, 5, 0]),
    ],
)
def test_axes_and_padding(
    axes: tuple[int, ...], padding: int, strides: tuple[int, ...], buffer: list[int]
) -> None:
    stored = Layout(data=data(rank=2), axes=axes, padding=padding).apply(TWO_BY_THREE)
    assert stored.strides == strides
    assert words(stored) == buffer


def test_one_axis() -> None:
    stored = Layout(data=data(), padding=4).apply(np.array([7, 8, 9, 10, 11], np.int32))
    assert (stored.extents, stored.strides) == ((5,), (1,))
    assert words(stored) == [7, 8, 9, 10, 11, 0, 0, 0]


@pytest.mark.parametrize(
    ("axes", "padding", "strides", "address"),
    [  # of the last element, (1, 2, 3), in shape (2, 3, 4)
        ((0, 1, 2), 1, (12, 4, 1), 23),
        ((0, 2, 1), 1, (12, 1, 3), 23),
        ((1, 0, 2), 1, (4, 8, 1), 23),
        ((1, 2, 0), 1, (1, 8, 2), 23),
        ((2, 0, 1), 1, (3, 1, 6), 23),
        ((2, 1, 0), 1, (1, 2, 6), 23),
        ((0, 1, 2), 5, (15, 5, 1), 28),
        ((2, 0, 1), 4, (4, 1, 8), 30),
    ],
)
def test_three_axes(axes: tuple[int, ...], padding: int, strides: tuple[int, ...], address: int) -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    stored = Layout(data=data(rank=3), axes=axes, padding=padding).apply(array)
    assert stored.strides == strides
    assert words(stored)[address] == 23
    assert words(stored)[2 * strides[1]] == array[0, 2, 0]


# -- records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "texel_bytes", "buffer"),
    [
        ("aos", 8, [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]),
        ("soa", 4, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]),
        ("aosoa4", 4, [0, 1, 2, 3, 10, 11, 12, 13, 4, 0, 0, 0, 14, 0, 0, 0]),
        ("aosoa2", 4, [0, 1, 10, 11, 2, 3, 12, 13, 4, 0, 14, 0]),
    ],
)
def test_records(records: str, texel_bytes: int, buffer: list[int]) -> None:
    declared = record("int32", "int32")
    array = np.array([(i, 10 + i) for i in range(5)], declared.dtype)
    stored = Layout(data=declared, records=records).apply(array)
    assert stored.texel_bytes == texel_bytes
    assert words(stored) == buffer


@pytest.mark.parametrize(
    ("fields", "texel_bytes", "parts"),
    [
        (["int8"] * 3, 1, 3),
        (["int16"] * 3, 2, 3),
        (["int32"] * 3, 4, 3),
        (["int32"] * 4, 16, 1),
        (["int64"] * 3, 8, 3),
        (["int64"] * 4, 16, 2),
    ],
)
def test_the_widest_access_that_divides_a_record(fields: list[str], texel_bytes: int, parts: int) -> None:
    layout = Layout(data=record(*fields))
    assert (layout.texel_bytes, layout.parts) == (texel_bytes, parts)


@pytest.mark.parametrize("records", ["oas", "aosoa", "aosoa0", "aosoa-1", "aosoax"])
def test_unknown_records(records: str) -> None:
    with pytest.raises(
        UnknownName, match=r"unknown records layout .* in data a.*\(allowed: aos, soa, aosoa<lanes>, <field>"
    ):
        layout_of(data(), {"records": records})


@pytest.mark.parametrize("choice", [{"memory": "shared"}, {"dims": "3d"}])
def test_unknown_memory_and_dims(choice: dict[str, str]) -> None:
    with pytest.raises(UnknownName, match="in data a"):
        layout_of(data(), choice)


# -- two dimensions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plane", "offset", "x", "y"),
    [
        # MUMmerGPU's tree: y = (id >> 17) * 32 + (id & 31), x = (id & 0x1FFFF) >> 5
        ((4096, 32), 0, 0, 0),
        ((4096, 32), 1, 0, 1),  # its root
        ((4096, 32), 31, 0, 31),
        ((4096, 32), 32, 1, 0),
        ((4096, 32), 33, 1, 1),
        ((4096, 32), 0x1FFFF, 4095, 31),
        ((4096, 32), 0x20000, 0, 32),
        ((4096, 32), 0x20021, 1, 33),
        ((4096, 32), 5_000_000, 602, 1216),
        # MUMmerGPU's reference: y = (pos >> 18) * 4 + (pos & 3), x = (pos & 0x3FFFF) >> 2
        ((65536, 4), 0, 0, 0),
        ((65536, 4), 3, 0, 3),
        ((65536, 4), 4, 1, 0),
        ((65536, 4), 0x3FFFF, 65535, 3),
        ((65536, 4), 0x40005, 1, 5),
        # row by row
        ((4096, 1), 4095, 4095, 0),
        ((4096, 1), 4096, 0, 1),
        ((4096, 1), 12345, 57, 3),
    ],
)
def test_plane_address(plane: tuple[int, int], offset: int, x: int, y: int) -> None:
    layout = Layout(data=data(plane=plane), dims="2d")
    assert layout.compute_address(offset, 0, 0) == y * plane[0] + x


@pytest.mark.parametrize(
    ("plane", "texels", "height"),
    [((4096, 1), 1, 1), ((4096, 1), 4096, 1), ((4096, 1), 4097, 2), ((32, 4), 128, 4), ((32, 4), 129, 8)],
)
def test_plane_holds_whole_blocks_of_rows(plane: tuple[int, int], texels: int, height: int) -> None:
    stored = Layout(data=data(plane=plane), dims="2d").room((texels,))
    assert stored.plane == (plane[0], height)
    assert stored.nbytes == plane[0] * height * 4


def test_plane_of_records() -> None:
    # part 1 of element 2, in structures of arrays of 5: offset 7, so row 3 and column 1 of a (32, 4) plane
    layout = Layout(data=record("int32", "int32", plane=(32, 4)), records="soa", dims="2d")
    assert layout.compute_address(2, 1, 5) == 3 * 32 + 1


# -- packing ----------------------------------------------------------------------------------------------

FIVE = [1, 2, 3, 0, 3]


@pytest.mark.parametrize(
    ("name", "vector", "extent", "raw"),
    [
        ("int32", 1, 5, "01000000 02000000 03000000 00000000 03000000"),
        ("int32", 2, 3, "01000000 02000000 03000000 00000000 03000000 00000000"),
        ("int32", 4, 2, "01000000 02000000 03000000 00000000 03000000 00000000 00000000 00000000"),
        ("int16", 1, 3, "0100 0200 0300 0000 0300 0000"),
        ("int16", 2, 2, "0100 0200 0300 0000 0300 0000 0000 0000"),
        ("int16", 4, 1, "0100 0200 0300 0000 0300 0000 0000 0000"),
        ("int8", 1, 2, "01 02 03 00 03 00 00 00"),
        ("int8", 2, 1, "01 02 03 00 03 00 00 00"),
        ("int8", 4, 1, "01 02 03 00 03 00 00 00 00000000 00000000"),
        ("bits2", 1, 1, "39 03 00 00"),  # 1 + 2 * 4 + 3 * 16 + 0 + 3 * 256 = 0x339
        ("bits2", 2, 1, "39 03 00 00 00000000"),
        ("bits2", 4, 1, "39 03 00 00 00000000 00000000 00000000"),
        ("planes2", 1, 1, "15000000 16000000"),  # low bits 1 0 1 0 1, high bits 0 1 1 0 1
        ("planes2", 2, 1, "15000000 16000000 00000000 00000000"),
        ("planes4", 1, 1, "15000000 16000000 00000000 00000000"),
    ],
)
def test_packing(name: str, vector: int, extent: int, raw: str) -> None:
    stored = Layout(data=data(packed="i"), packing=packing(name), vector=vector).apply(
        np.array(FIVE, np.int32)
    )
    assert stored.buffer is not None
    assert stored.extents == (extent,)
    assert stored.buffer.tobytes() == bytes.fromhex(raw)


def test_second_word_of_planes() -> None:
    values = np.zeros(34, np.int32)
    values[[0, 31, 32, 33]] = [3, 1, 2, 3]
    stored = Layout(data=data(packed="i"), packing=packing("planes2")).apply(values)
    assert words(stored, "uint32") == [0x80000001, 1, 2, 3]


def test_packing_across_the_contiguous_axis() -> None:
    # Two rows of five: a word joins four of a row, and the rows' words alternate.
    rows = np.array([FIVE, [3, 3, 3, 3, 1]], np.int32)
    stored = Layout(data=data(rank=2, packed="j"), packing=packing("int8"), axes=(1, 0)).apply(rows)
    assert stored.extents == (2, 2)
    assert words(stored, "uint32") == [0x00030201, 0x03030303, 3, 1]


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("count", [2, 32, 33])
def test_packing_along_an_axis_that_is_not_the_last(name: str, count: int) -> None:
    columns = np.array([[1, 0], [1, 1]] * 17, np.int32)[:count]
    layout = Layout(data=data(rank=2, packed="i"), packing=packing(name))
    rows = Layout(data=data(rank=2, packed="j"), packing=packing(name)).apply(np.ascontiguousarray(columns.T))
    stored = layout.apply(columns)
    assert stored.extents == rows.extents[::-1]
    np.testing.assert_array_equal(layout.restore(stored, columns.shape), columns)


@pytest.mark.parametrize(
    ("name", "bad", "top"), [("bits2", 4, 3), ("int8", 256, 255), ("planes1", 2, 1), ("int8", -1, 255)]
)
def test_packing_refuses_what_does_not_fit(name: str, bad: int, top: int) -> None:
    layout = Layout(data=data(packed="i"), packing=packing(name))
    with pytest.raises(
        WorkloadError, match=rf"^packing {name} holds 0..{top}, found {bad}; take a wider packing$"
    ):
        layout.apply(np.array([0, bad], np.int32))


def test_unknown_packing() -> None:
    with pytest.raises(UnknownName, match="unknown packing 'int9'; did you mean 'int8'"):
        packing("int9")


# -- docs/guides/choose-policies.md -----------------------------------------------------------------------


def test_an_image_is_as_the_page_says() -> None:
    """Pixel (x, y) is texel (x, y), whatever its width."""
    page = Path(__file__).parents[2] / "docs" / "guides" / "choose-policies.md"
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    declared = yaml.safe_load(block)
    shape = data(
        rank=len(declared["data"]["image"]["shape"]), sampling=Sampling(**declared["data"]["image"]["image"])
    )
    image = np.arange(5 * 301, dtype=np.int32).reshape(5, 301)
    for dims in declared["policies"]["image_dims"]["values"]:
        stored = Layout(data=shape, memory="texture", dims=dims).apply(image)
        assert (stored.raster is not None) == (dims == "image")
        if stored.raster:
            assert stored.raster.size == (301, 5)
            assert np.array_equal(np.array(words(stored)).reshape(5, 301), image)
