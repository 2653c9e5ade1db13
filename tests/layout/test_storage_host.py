"""Numbers held in fewer bits, on the host: each code is the nearest there is, and a layout places codes as elements."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import data, stored_layouts
from numpy.typing import NDArray

from autotune.errors import UnknownName, WorkloadError
from autotune.layout.layout import Layout
from autotune.layout.order import find_gaps
from autotune.layout.storage import STORAGES, Storage, storage_of, to_numbers

ONE = np.ones(1, np.float32)
SMALL = [name for name, one in STORAGES.items() if one.exponent and name != "float32"]


def by_definition(storage: Storage, code: int) -> Fraction | None:
    """What a code of a float stands for, by IEEE 754's rules; None for what is no finite number."""
    sign = -1 if code >> (storage.exponent + storage.mantissa) else 1
    field = code >> storage.mantissa & (1 << storage.exponent) - 1
    units = code & (1 << storage.mantissa) - 1
    bias = (1 << storage.exponent - 1) - 1
    all_ones = field == (1 << storage.exponent) - 1
    # E4M3 gives its highest exponent to numbers, all but the last one (OCP OFP8, table 1).
    if all_ones and (storage.name != "float8_e4m3" or units == 7):
        return None
    whole = units + (1 << storage.mantissa if field else 0)
    return sign * whole * Fraction(2) ** (max(field, 1) - bias - storage.mantissa)


@pytest.mark.parametrize("name", SMALL)
def test_every_code_stands_for_its_number(name: str) -> None:
    storage = STORAGES[name]
    codes = np.arange(1 << 8 * storage.bytes, dtype=storage.code)
    wide = storage.widen(codes, ONE)
    for code in range(0, len(codes), 1 if storage.bytes == 1 else 37):
        number = by_definition(storage, code)
        assert math.isfinite(wide[code]) == (number is not None)
        if number is not None:
            assert Fraction(float(wide[code])) == number
    finite = np.isfinite(wide)
    np.testing.assert_array_equal(storage.narrow(wide[finite], ONE), codes[finite])  # -0.0 too


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SMALL), st.floats(width=32, allow_nan=False))
def test_the_nearest_code_is_taken_and_of_two_the_even_one(name: str, number: float) -> None:
    storage = STORAGES[name]
    (code,) = storage.narrow(np.array([number], np.float32), ONE)
    (got,) = storage.widen(np.array([code], storage.code), ONE)
    top = 1 << storage.exponent + storage.mantissa  # the sign
    most = max(c for c in range(top) if by_definition(storage, c) is not None) if storage.bytes == 1 else None
    most = most if most is not None else ((1 << storage.exponent) - 1 << storage.mantissa) - 1
    largest = by_definition(storage, most)
    assert largest is not None
    unit = largest - (by_definition(storage, most - 1) or 0)
    if math.isinf(number) or abs(Fraction(number)) >= largest + unit / 2:
        expected = float(largest) if storage.saturated else math.inf
        assert got == math.copysign(expected, number)
        return
    mine = abs(Fraction(float(got)) - Fraction(number))
    for other in (int(code) - 1, int(code) + 1):
        near = by_definition(storage, other) if other & top == int(code) & top and other >= 0 else None
        if near is not None:
            apart = abs(near - Fraction(number))
            assert mine < apart or (mine == apart and int(code) % 2 == 0)


@pytest.mark.parametrize("name", SMALL)
def test_a_nan_stays_one(name: str) -> None:
    storage = STORAGES[name]
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(storage.widen(storage.narrow(nans, ONE), ONE)).all()


def test_scaled_integers_by_hand() -> None:
    eight = STORAGES["scaled_int8"]
    stored = Layout(data=data("float32"), storage=eight).apply(np.array([0.5, -1.27, 0.004, 1.0], np.float32))
    assert stored.buffer is not None
    assert stored.buffer[:4].view(np.int8).tolist() == [50, -127, 0, 100]
    assert stored.buffer[4:].view(np.float32).tolist() == [np.float32(0.01)]
    rows = np.array([[1.27, 0.1], [0, 0], [-127, 63.5]], np.float32)
    layout = Layout(data=data("float32", rank=2), storage=STORAGES["scaled_int8_by_row"], axes=(1, 0))
    stored = layout.apply(rows)
    assert stored.buffer is not None
    assert stored.buffer[:6].view(np.int8).tolist() == [127, 0, -127, 10, 0, 64]  # 63.5 is a tie, and 64 even
    np.testing.assert_allclose(stored.buffer[8:].view(np.float32), [0.01, 1, 1])  # a row of zeros has scale 1
    fixed = Layout(data=data("float32", low=-1, high=254), storage=eight)
    stored = fixed.apply(np.array([254, 1, 3, 600], np.float32))
    assert stored.buffer is not None
    assert stored.buffer.view(np.int8).tolist() == [127, 0, 2, 127]
    assert "FixedScale<0x40000000u>" in fixed.cpp


def test_what_has_no_scale_is_refused() -> None:
    layout = Layout(data=data("float32"), storage=STORAGES["scaled_int16"])
    with pytest.raises(WorkloadError, match="a: storage scaled_int16 holds finite numbers"):
        layout.apply(np.array([1, np.nan], np.float32))
    with pytest.raises(UnknownName, match="storage 'half'"):
        storage_of("half", "float32")
    assert storage_of("float32", "float32") is None
    assert storage_of("declared", "float32") is storage_of("declared", "float64") is None


@settings(max_examples=80, deadline=None)
@given(stored_layouts())
def test_a_layout_stores_codes_as_it_would_store_small_elements(made: tuple[Layout, NDArray[Any]]) -> None:
    layout, array = made
    stored = layout.apply(array)
    assert stored.buffer is not None and layout.storage is not None
    assert len(stored.buffer) == stored.nbytes == layout.room(array.shape).nbytes
    got = layout.restore(stored, array.shape)
    assert got.dtype == array.dtype
    plain = Layout(data=layout.data, storage=layout.storage)
    np.testing.assert_array_equal(got, plain.restore(plain.apply(array), array.shape))
    # Each number is off by its own rounding alone.
    kind = layout.data.fields[0].type
    wide, right = (np.ascontiguousarray(a).view(kind).reshape(*a.shape, -1) for a in (got, array))
    if layout.storage.is_scaled:
        by_row = layout.storage.by_row
        most = np.abs(right).max(axis=tuple(range(1, right.ndim)) if by_row else None, keepdims=True)
        if layout.fixed_scale:
            most = np.array(layout.fixed_scale * layout.storage.largest)
        held = np.clip(right, -most, most)
        assert (np.abs(wide - held) <= most / layout.storage.largest * 0.501 + 1e-30).all()
    elif layout.storage.name in ("float32", "float16", "bfloat16"):
        share = 2.0 ** -(layout.storage.mantissa + 1)
        assert (np.abs(wide - right) <= np.abs(right) * share + 2.0**-25).all()


@settings(max_examples=40, deadline=None)
@given(stored_layouts())
def test_scales_are_no_slack_and_lie_behind_the_elements(made: tuple[Layout, NDArray[Any]]) -> None:
    layout, array = made
    stored = layout.apply(array)
    assert stored.buffer is not None
    content = layout.restore(stored, array.shape)
    sealed = stored.buffer.copy()
    for begin, end in find_gaps([layout], array.shape):
        sealed[begin:end] = 0xFF
    again = layout.restore(type(stored)(**{**stored.__dict__, "buffer": sealed}), array.shape)
    np.testing.assert_array_equal(again, content)
    elements = layout.grid(stored.extents).elements
    addresses = [
        layout.compute_address(e, p, stored.part_stride) for e in range(elements) for p in range(layout.parts)
    ]
    assert len(set(addresses)) == len(addresses) and max(addresses) < stored.texels


def test_arrays_of_ml_dtypes_are_taken_by_their_names() -> None:
    class Named(np.ndarray):
        """An array of bfloat16 as numpy shows it after ml_dtypes has registered the type."""

        @property
        def dtype(self) -> Any:
            return type("dtype", (), {"name": "bfloat16"})

        def astype(self, kind: Any) -> Any:  # type: ignore[override]
            return np.full(self.shape, 2.5, kind)

    assert to_numbers(np.zeros(3, np.int16).view(Named)).tolist() == [2.5, 2.5, 2.5]
    kept = np.zeros(3, np.float16)
    assert to_numbers(kept) is kept
