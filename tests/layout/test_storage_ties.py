"""The device rounds as the host: every number half-way between two codes, and its neighbours on either side,
as float and as double."""

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from shim_library import shim_library

from autotune.layout.storage import STORAGES, Storage

ONE = np.ones(1, np.float32)
FLOATS = [one for one in STORAGES.values() if one.exponent]
SMALL = [one for one in FLOATS if one.name != "float32"]
SOURCE = """
#include "device_shim.hpp"
template <class Codec, class Number>
void narrow_all(const Number* numbers, int count, typename Codec::Code* codes) {
  for (int n = 0; n < count; ++n) codes[n] = Codec::narrow(Codec::single(numbers[n]), 1.0f);
}
"""
CASE = """
extern "C" void {name}_{number}(const {number}* numbers, int count, autotune::{cpp}::Code* codes) {{
  narrow_all<autotune::{cpp}>(numbers, count, codes);
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    cases = [
        CASE.format(name=one.name, cpp=one.cpp, number=number)
        for one in FLOATS
        for number in ("float", "double")
    ]
    return shim_library(SOURCE + "".join(cases), tmp_path_factory.mktemp("ties"), "-O1")


def on_the_device(library: ctypes.CDLL, storage: Storage, numbers: NDArray[Any]) -> NDArray[Any]:
    codes = np.zeros(numbers.size, storage.code)
    narrow = library[f"{storage.name}_{'float' if numbers.dtype == np.float32 else 'double'}"]
    narrow(numbers.ctypes.data_as(ctypes.c_void_p), numbers.size, codes.ctypes.data_as(ctypes.c_void_p))
    return codes


def steps(storage: Storage) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return each finite code that is not negative, but the last, and the number half-way to the next."""
    codes = np.arange(1 << 8 * storage.bytes - 1, dtype=storage.code)
    numbers = storage.widen(codes, ONE)
    numbers = numbers[np.isfinite(numbers)].astype(np.float64)  # the first of them
    last = len(numbers) - 1
    return codes[:last], (numbers[:last] + numbers[1 : last + 1]) / 2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("storage", SMALL, ids=lambda one: one.name)
def test_of_two_equally_near_codes_the_even_one(library: ctypes.CDLL, storage: Storage, sign: int) -> None:
    """And of what is a little less or more than half-way the nearer one, however little a double lets it be."""
    codes, middles = steps(storage)
    top = 0 if sign > 0 else 1 << 8 * storage.bytes - 1
    for number in (np.float32, np.float64):
        half = (sign * middles).astype(number)
        assert (half == sign * middles).all()
        away = np.copysign(np.array(np.inf, number), half)
        for numbers, expected in (
            (half, codes + (codes & 1)),
            (np.nextafter(half, number(0)), codes),
            (np.nextafter(half, away), codes + 1),
        ):
            np.testing.assert_array_equal(storage.narrow(numbers, ONE), expected + top)
            np.testing.assert_array_equal(on_the_device(library, storage, numbers), expected + top)


@pytest.mark.parametrize("storage", FLOATS, ids=lambda one: one.name)
def test_any_number_has_one_code(library: ctypes.CDLL, storage: Storage) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 64, 100_000, np.uint64)
    words = bits.view(np.float32)
    wide = np.concatenate([bits.view(np.float64), words[~np.isnan(words)].astype(np.float64)])
    edges = [0.0, -0.0, np.inf, -np.inf, 65519.999999999, 65520.0, 1e39, -1e300, 5e-324, 2.0**-150, 2.0**-149]
    wide = np.concatenate(
        [wide, edges, np.float64(3.4028234663852886e38) * np.array([1, 1 + 2**-25, 1 + 2**-24])]
    )
    wide = wide[~np.isnan(wide)]
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
        half = wide.astype(np.float16)  # numpy's own, from 64 bits to 16 at once
    for numbers in (wide, single):
        np.testing.assert_array_equal(on_the_device(library, storage, numbers), storage.narrow(numbers, ONE))
    if storage.name == "float16":
        np.testing.assert_array_equal(storage.narrow(wide, ONE), half.view(np.uint16))


@pytest.mark.parametrize("storage", FLOATS, ids=lambda one: one.name)
def test_what_is_no_number_stays_so(library: ctypes.CDLL, storage: Storage) -> None:
    for nan in (np.float32, np.float64):
        numbers = np.array([np.nan, -np.nan], nan)
        codes = on_the_device(library, storage, numbers)
        np.testing.assert_array_equal(codes, storage.narrow(numbers, ONE))
        assert np.isnan(storage.widen(codes, ONE)).all()
