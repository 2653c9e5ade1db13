"""Unmodified kernels at run time, on a device that lends (lending.py): pointers into the caller's arrays, arrays
that begin as copies, symbols that are filled before each call."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lending import Array, World, loaded, make_world, ramp
from plain import SAXPY, blur, matrix, vector_add

from autotune.declaration.plain_kernel import Kernel


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield make_world(monkeypatch)


def saxpy() -> Kernel:
    return Kernel(
        SAXPY, "saxpy",
        arguments={"y": "inout float32[n]", "x": "input float32[n]", "a": np.float32(2), "n": "int64"},
        grid="ceil_div(n, bs)", block="bs", policies={"bs": [32, 64]},
    )  # fmt: skip


def test_pointers_lead_into_the_arrays_that_a_call_brings(world: World) -> None:
    with loaded(vector_add().folder) as add:
        for start in range(3):
            a, b = ramp(100, start), ramp(100)
            out = Array(np.zeros(100, np.float32))
            assert add(Array(a), Array(b), out=out) is out
            np.testing.assert_array_equal(out.get(), a + b)
            np.testing.assert_array_equal(add(a, b), a + b)
    assert "bound" in world.gpu.seen


@pytest.mark.parametrize("kind", [Array, np.asarray])
def test_an_array_begins_as_what_each_call_brings(world: World, kind: Any) -> None:
    with loaded(saxpy().folder) as kernel:
        for start in range(3):
            y, x = ramp(70, start), ramp(70)
            given = kind(y)
            got = kernel(given, kind(x))
            np.testing.assert_array_equal(got.get() if kind is Array else got, 2 * x + y)
            np.testing.assert_array_equal(given.get() if kind is Array else given, y)
        if kind is Array:  # in place for the caller, too
            assert kernel(given, kind(x), out=given) is given
            np.testing.assert_array_equal(given.get(), 2 * x + y)


@pytest.mark.parametrize("kind", [Array, np.asarray])
def test_a_symbol_has_the_content_of_each_call(world: World, kind: Any) -> None:
    with loaded(blur().folder) as kernel:
        x = ramp(50)
        for weights in ([1, 0, 0], [0, 0, 2], [0, 3, 0]):
            w = np.array(weights, np.float32)
            got = kernel(kind(x), kind(w))
            expected = np.convolve(np.pad(x, 1, "edge"), w[::-1], "valid")
            np.testing.assert_array_equal(got.get() if kind is Array else got, expected)


def test_a_configuration_is_logged_once_and_each_size_at_debug(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "autotune"), loaded(vector_add().folder) as add:
        for size in (100, 101, 102):
            add(ramp(size), ramp(size))
    runs = [
        record.levelno for record in caplog.records if "vector_add runs block_size" in record.getMessage()
    ]
    assert runs == [logging.INFO, logging.DEBUG, logging.DEBUG]


def test_an_accessor_beside_pointers(world: World) -> None:
    table, x = ramp(12).reshape(3, 4), ramp(4)
    with loaded(matrix().folder) as kernel:
        np.testing.assert_allclose(kernel(Array(table), Array(x)).get(), table @ x)
        with kernel.prepare(Array(table)) as handle:
            np.testing.assert_allclose(handle(Array(2 * x)).get(), 2 * table @ x)


def test_handles_of_one_module_fill_its_symbols_in_turn(world: World) -> None:
    """And a call that finds its own content there copies nothing."""
    x, outs = ramp(50), [Array(np.zeros(50, np.float32)) for _ in range(2)]
    by = [np.array(weights, np.float32) for weights in ([0, 1, 0], [0, 2, 0])]
    with loaded(blur().folder) as kernel:
        handles = [kernel.prepare(Array(x), w) for w in by]
        for handle, out in zip(handles, outs, strict=True):
            handle(out=out)
        world.gpu.seen.clear()
        for turn in (0, 1, 1, 0):
            handles[turn](out=outs[turn])
            np.testing.assert_array_equal(outs[turn].get(), by[turn][1] * x)
        assert sum(seen[0] == "constant" for seen in world.gpu.seen if isinstance(seen, tuple)) == 3
