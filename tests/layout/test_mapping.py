"""Tiles, curves, swizzles and what pads rows: addresses by hand, what a curve is, and what a value stands for."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layouts import data, record

from autotune.errors import AutotuneError
from autotune.layout import DIMENSIONS, layout_of
from autotune.layout.curve import CURVES, Curve, curve_of
from autotune.layout.dimensions import Padding, read_padding, tiles_of
from autotune.layout.layout import Layout
from autotune.layout.mapping import Mapping
from autotune.layout.swizzle import Swizzle, parse_swizzle

ROWS = ("i", "j")


def stored(layout: Layout, shape: tuple[int, ...]) -> Any:
    """Element numbers, counted from 1, as they lie in memory; 0 where none is."""
    count = int(np.prod(shape))
    made = layout.apply(np.arange(1, count + 1, dtype=np.int32).reshape(shape))
    assert made.buffer is not None
    return made.buffer.view(np.int32).tolist()


def test_tiles_lie_one_behind_the_other() -> None:
    layout = Layout(data=data(rank=2), tiles=(2, 2))
    assert stored(layout, (3, 4)) == [1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 0, 0, 11, 12, 0, 0]
    assert layout.room((3, 4)).strides == (8, 4)
    by_columns = Layout(data=data(rank=2), tiles=(2, 2), axes=(1, 0))
    assert stored(by_columns, (2, 4)) == [1, 5, 2, 6, 3, 7, 4, 8]


def test_a_tile_of_one_whole_extent_makes_runs_of_another() -> None:
    """Which is what aosoa is for records: runs of two columns, each with its three rows."""
    layout = Layout(data=data(rank=2), tiles=(3, 2), axes=(0, 1))
    assert stored(layout, (3, 4)) == [1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12]


def test_curves_by_hand() -> None:
    assert Curve("morton", (0, 1)).places(4).tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]
    assert Curve("hilbert", (0, 1)).places(2).tolist() == [[0, 1], [3, 2]]
    assert Curve("hilbert", (0, 1)).places(4).tolist() == [
        [0, 3, 4, 5],
        [1, 2, 7, 6],
        [14, 13, 8, 9],
        [15, 12, 11, 10],
    ]
    assert stored(Layout(data=data(rank=2), curve=Curve("hilbert", (0, 1))), (2, 3)) == [
        1,
        2,
        5,
        4,
        3,
        0,
        0,
        6,
    ]


def test_a_block_is_as_wide_as_the_narrowest_extent_and_no_wider() -> None:
    grid = Mapping((0, 1), curve=Curve("morton", (0, 1))).grid((5, 100))
    assert grid.side == (8, 8)
    assert grid.padded == (8, 104)
    assert Mapping((0, 1), curve=Curve("morton", (0, 1), 2)).grid((5, 100)).padded == (6, 100)
    assert Mapping((0, 1), tile=(4, 1), curve=Curve("morton", (0, 1))).grid((5, 100)).side == (2, 2)


@pytest.mark.parametrize(("rank", "side"), [(2, 32), (3, 8)])
def test_a_step_along_hilberts_curve_is_one_cell(rank: int, side: int) -> None:
    places = Curve("hilbert", tuple(range(rank))).places(side)
    cells = np.stack(np.unravel_index(np.argsort(places, axis=None), places.shape))
    assert sorted(places.reshape(-1)) == list(range(side**rank))
    assert (np.abs(np.diff(cells)).sum(axis=0) == 1).all()


@pytest.mark.parametrize(("kind", "rank"), [*itertools.product(CURVES, (2, 3))])
def test_a_curve_stays_in_a_quarter_before_it_goes_to_the_next(kind: str, rank: int) -> None:
    places = Curve(kind, tuple(range(rank))).places(8)
    for corner in itertools.product((0, 4), repeat=rank):
        part = np.sort(places[tuple(slice(first, first + 4) for first in corner)], axis=None)
        assert part.tolist() == list(range(part[0], part[0] + part.size))
        assert part[0] % part.size == 0


def test_a_swizzle_moves_columns_within_their_row() -> None:
    layout = Layout(data=data(rank=2), steps=(Swizzle(2, 2),))
    assert stored(layout, (3, 4)) == [1, 2, 3, 4, 7, 8, 5, 6, 9, 10, 11, 12]
    assert stored(layout, (2, 3)) == [1, 2, 3, 0, 6, 0, 4, 5]
    column = [Swizzle(8).column(row, 5) for row in range(8)]
    assert len(set(column)) == 8


def test_what_follows_each_row() -> None:
    assert stored(Layout(data=data(rank=2), padding=2, plus=1), (2, 3)) == [1, 2, 3, 0, 0, 4, 5, 6, 0, 0]


@pytest.mark.parametrize(
    ("value", "element_bytes", "elements"),
    [(32, 4, (32, 0)), ("128B", 4, (32, 0)), ("128B", 36, (32, 0)), ("128B", 12, (32, 0)), ("32+1", 4, (32, 1)),
     ("128B+16B", 8, (16, 2)), ("1+4B", 8, (1, 1))],
)  # fmt: skip
def test_padding_in_bytes_is_whole_elements(
    value: Any, element_bytes: int, elements: tuple[int, int]
) -> None:
    assert read_padding(value, "p").elements(element_bytes) == elements


def test_bytes_of_a_row_are_those_of_the_records_as_they_lie() -> None:
    particles = record("float32", "float32", "float32", rank=2)
    for records, multiple in (("aos", 32), ("soa", 32), ("aosoa4", 32)):
        assert layout_of(particles, {"records": records, "padding": "128B"}).padding == multiple
    assert layout_of(particles, {"padding": "48B"}).padding == 4
    assert layout_of(particles, {"records": "soa", "padding": "48B"}).padding == 12


def test_values() -> None:
    assert tiles_of("none", ROWS, "p") == tiles_of("1x1", ROWS, "p") == ()
    assert tiles_of("8x16", ROWS, "p") == tiles_of({"i": 8, "j": 16}, ROWS, "p") == (8, 16)
    assert tiles_of({"j": 16}, ROWS, "p") == (1, 16)
    assert curve_of("none", ROWS, "p") is None
    assert curve_of("hilbert", ROWS, "p") == Curve("hilbert", (0, 1))
    assert curve_of("morton", ("n", "n"), "p") == Curve("morton", (0, 1))
    assert curve_of("morton16", ROWS, "p") == Curve("morton", (0, 1), 16)
    assert curve_of({"curve": "morton", "along": ["c", "a"]}, ("a", "b", "c"), "p") == Curve("morton", (0, 2))
    assert parse_swizzle("none", ROWS, "p") is parse_swizzle("xor1", ROWS, "p") is None
    assert parse_swizzle("xor8", ROWS, "p") == Swizzle(8)
    assert parse_swizzle("xor8x4", ROWS, "p") == Swizzle(8, 4)
    assert read_padding("64B+1", "p") == Padding(64, 1, True, False)


@pytest.mark.parametrize(
    ("kind", "value", "shape", "told"),
    [
        ("tiles", "8by8", ROWS, "unknown tiles layout '8by8' in p"),
        ("tiles", "8x8x8", ROWS, "p: tiles 8x8x8 is 3 long, and there are 2 extents (i, j); give a size for each"),
        ("tiles", "8x0", ROWS, "p: tiles 8x0: a size is a whole number of at least 1"),
        ("tiles", {"k": 8}, ROWS, "unknown extents of a tile 'k' in p (allowed: i, j)"),
        ("tiles", {"i": 8}, ("i", "i"), "p: the extents i, i repeat, so write the tile as 8x8 is written"),
        ("curve", "peano", ROWS, "unknown curve layout 'peano' in p"),
        ("curve", "morton12", ROWS, "p: curve morton12: a block's side is a power of two of at least 2"),
        ("curve", "morton", ("i",), "p: a curve runs through two or three extents, and these are 1 (i)"),
        ("curve", "morton", ("i", "j", "k", "l"), "as in {curve: morton, along: [i, j]}"),
        ("curve", {"curve": "morton", "along": ["i", "k"]}, ROWS, "unknown extents of a curve \"['i', 'k']\" in p"),
        ("curve", {"curve": "morton", "along": ["i"]}, ("i", "i"), "p: the extents i, i repeat, so their names do not"),
        ("swizzle", "xor12", ROWS, "p: swizzle xor12: groups 12 is not a power of two"),
        ("swizzle", "xor4x3", ROWS, "p: swizzle xor4x3: width 3 is not a power of two"),
        ("swizzle", "xor4", ("i",), "p: swizzle xor4: an array of one extent (i) has no rows to swizzle"),
        ("swizzle", "add4", ROWS, "unknown swizzle layout 'add4' in p"),
        ("padding", "128 B", ROWS, "p; did you mean '128B'? (allowed: 32, 128B, 32+1, 128B+16B)"),
        ("padding", "0B", ROWS, "p: padding '0B' is not a whole number of at least 1"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused(kind: str, value: Any, shape: tuple[str, ...], told: str) -> None:
    with pytest.raises(AutotuneError) as caught:
        DIMENSIONS[kind].meaning(value, replace(data(), shape=shape), "p")
    assert told in str(caught.value)
