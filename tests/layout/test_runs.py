"""``autotune/runs.cuh`` compiled by the host's C++ compiler: a number's place in a triangle, and chunks of rows."""

import ctypes
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shim_library import shim_library

SOURCE = """
#include "device_shim.hpp"
#include "autotune/runs.cuh"
using namespace autotune;
extern "C" {
void place(unsigned first_row, unsigned first_column, unsigned columns, unsigned long long n, unsigned* to) {
  const Place found = Run{first_row, first_column, columns}[n];
  to[0] = found.row, to[1] = found.column;
}
unsigned row(unsigned n) { return row_in_triangle(n); }
void chunk_of(unsigned first_row, unsigned first_column, unsigned columns, unsigned n, unsigned width, unsigned* to) {
  const Chunk found = chunk(Run{first_row, first_column, columns}, n, width);
  to[0] = found.row, to[1] = found.column, to[2] = found.end;
}
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = shim_library(SOURCE, tmp_path_factory.mktemp("runs"), "-O1")
    loaded.row.restype = ctypes.c_uint
    return loaded


def place(made: ctypes.CDLL, run: tuple[int, int, int], number: int) -> tuple[int, int]:
    found = (ctypes.c_uint * 2)()
    made.place(*run, ctypes.c_ulonglong(number), found)
    return found[0], found[1]


def row_of(number: int) -> int:
    return (math.isqrt(8 * number + 1) - 1) // 2


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**31), st.sampled_from((-1, 0, 1)))
def test_a_number_lies_where_its_root_says(made: ctypes.CDLL, row: int, beside: int) -> None:
    """Around where a row begins, which is where a root may be off."""
    number = row * (row + 1) // 2 + beside
    expected = row_of(number)
    assert place(made, (7, 0, 0), number) == (7 + expected, 7 + number - expected * (expected + 1) // 2)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 46339), st.sampled_from((-1, 0, 1)))
def test_single_precision_finds_the_row_of_a_number_below_2_to_the_30(
    made: ctypes.CDLL, row: int, beside: int
) -> None:
    number = row * (row + 1) // 2 + beside
    assert number < 2**30
    assert made.row(number) == row_of(number)


def test_a_rectangle_is_counted_row_by_row(made: ctypes.CDLL) -> None:
    found = [place(made, (3, 10, 4), number) for number in range(8)]
    assert found == [(row, column) for row in (3, 4) for column in range(10, 14)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 20), st.integers(1, 16), st.integers(0, 5))
def test_chunks_have_every_place_once(
    made: ctypes.CDLL, rows: int, columns: int, width: int, first: int
) -> None:
    each = [columns or row + 1 for row in range(rows)]
    chunks = sum(-(-(columns or (row // width + 1) * width) // width) for row in range(rows))
    begin = first if not columns else first + 100  # of the columns; those of a triangle are the rows' own
    seen = []
    for number in range(chunks):
        found = (ctypes.c_uint * 3)()
        made.chunk_of(first, begin, columns, number, width, found)
        row, column, end = found
        assert end == begin + each[row - first]
        seen += [(row, place) for place in range(column, min(column + width, end))]
    assert sorted(seen) == [(first + row, begin + n) for row in range(rows) for n in range(each[row])]
