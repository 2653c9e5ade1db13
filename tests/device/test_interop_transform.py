"""Layouts applied on the device give the bytes that the host gives: the kernel runs here on the cpu device."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import data, layouts, random_array, record
from numpy.typing import NDArray

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Compiled
from autotune.device.backend import Launch
from autotune.device.cpu.backend import CpuBackend, CpuPlaced
from autotune.device.foreign import View
from autotune.device.transform import (
    CODECS,
    MOVE,
    LayoutTransform,
    batch,
    explain_refusal,
    is_as_stored,
    lie_merged,
)
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout
from autotune.layout.storage import STORAGES


def view_of(array: NDArray[Any]) -> View:
    """A GPU's array whose memory is in fact the host's: the cpu device runs the kernel."""
    return View(array, array.ctypes.data, array.shape, array.strides, array.dtype)


class Device:
    """The cpu device with the kernel loaded."""

    def __init__(self) -> None:
        self.backend = CpuBackend(1)
        self.layout_transform = LayoutTransform(self.backend, Cache(default_root()))

    def run(self, launch: Launch) -> None:
        self.backend.launch(launch.module, launch.kernel, launch.geometry, launch.arguments)

    def store(self, layout: Layout, array: NDArray[Any]) -> CpuPlaced:
        room = layout.room(array.shape)
        placed = self.backend.place(room)
        self.run(
            self.layout_transform.launch(
                layout, view_of(array), placed, placed.buffer.ctypes.data, True, ("from", "to")
            )
        )
        return placed


@pytest.fixture(scope="module")
def device(compile_cache: str) -> Iterator[Device]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", compile_cache)
        made = Device()
        yield made
        made.backend.close()


@settings(max_examples=150, deadline=None)
@given(layouts(), st.booleans())
def test_what_is_stored_and_restored_is_what_the_host_makes(
    device: Device, made: tuple[Layout, NDArray[Any]], strided: bool
) -> None:
    layout, array = made[0], made[1]
    layout = replace(layout, group=(1, 0))
    given = array
    if strided:  # every second element of something larger, the axes the other way round
        wide = np.zeros(tuple(2 * n for n in reversed(array.shape)), array.dtype)
        given = wide.T[tuple(slice(None, None, 2) for _ in array.shape)]
        given[...] = array
    view = view_of(given)
    if reason := explain_refusal(layout, view):
        assert "multiples of" in reason
        return
    expected = layout.apply(array)
    placed = device.store(layout, given)
    np.testing.assert_array_equal(placed.buffer, expected.buffer)
    if layout.packing is None:
        assert explain_refusal(layout, view, inward=False) == ""
        back = (
            np.zeros_like(given)
            if not strided
            else np.zeros_like(wide).T[tuple(slice(None, None, 2) for _ in array.shape)]
        )
        names = ("to", "from")
        device.run(
            device.layout_transform.launch(
                layout, view_of(back), placed, placed.buffer.ctypes.data, False, names
            )
        )
        assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", CODECS[1:])
@pytest.mark.parametrize("records", ["aos", "soa", "aosoa4"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_numbers_are_narrowed_and_widened(device: Device, name: str, records: str, kind: str) -> None:
    declared = record(kind, kind, kind, rank=2, plane=(32, 4))
    layout = Layout(data=declared, storage=STORAGES[name], records=records, axes=(1, 0), padding=3, dims="2d")
    array = np.random.default_rng(3).normal(0, 100, (5, 21)).astype(kind).view(declared.dtype)
    placed = device.store(layout, array)
    expected = layout.apply(array)
    np.testing.assert_array_equal(placed.buffer, expected.buffer)
    back = np.zeros_like(array)
    assert explain_refusal(layout, view_of(back), inward=False) == ""
    device.run(
        device.layout_transform.launch(
            layout, view_of(back), placed, placed.buffer.ctypes.data, False, ("to", "from")
        )
    )
    assert back.tobytes() == layout.restore(expected, array.shape).tobytes()


def test_an_array_of_half_precision_is_moved_as_it_is(device: Device) -> None:
    layout = Layout(data=data("float32", rank=2), storage=STORAGES["float16"], axes=(1, 0))
    array = np.arange(15, dtype=np.float16).reshape(3, 5)
    placed = device.store(layout, array)
    np.testing.assert_array_equal(placed.buffer.view(np.float16), array.T.reshape(-1))
    assert is_as_stored(replace(layout, axes=(0, 1)), view_of(array))
    assert not is_as_stored(replace(layout, axes=(0, 1)), view_of(array.astype(np.float32)))
    assert not is_as_stored(Layout(data=data("float32", rank=2)), view_of(array))


def test_scaled_integers_are_made_on_the_host() -> None:
    layout = Layout(data=data("float32"), storage=STORAGES["scaled_int8"])
    assert "made on the host" in explain_refusal(layout, view_of(np.zeros(3, np.float32)))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64"])
@pytest.mark.parametrize("name", ["int32", "int8", "bits2", "planes2"])
def test_packing_takes_whole_numbers_of_every_width(device: Device, kind: str, name: str) -> None:
    declared = data("int32", rank=2, packed="j")
    layout = Layout(data=declared, packing=packing(name), vector=2, axes=(1, 0))
    array = random_array(declared, (5, 77), 3, seed=2)
    placed = device.store(layout, array.astype(kind))
    np.testing.assert_array_equal(placed.buffer, layout.apply(array).buffer)


def test_a_member_of_a_group_goes_between_the_others(device: Device) -> None:
    layout = Layout(data=data("int32"), group=(3, 1))
    array = np.arange(1, 6, dtype=np.int32)
    placed = device.store(layout, array)
    assert placed.buffer.view(np.int32).tolist() == [0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 0]
    assert "merged" in explain_refusal(layout, view_of(array))


def test_what_cannot_be_moved_says_why() -> None:
    array = np.zeros((2, 3), np.int32)
    plain = data("int32", rank=2)
    cases = {
        "texture memory in 2d": (Layout(data=plain, memory="texture", dims="2d"), array),
        "int32 is declared": (Layout(data=plain), array.astype(np.float32)),
        "whole numbers are needed": (
            Layout(data=data("int32", rank=2, packed="j"), packing=packing("int8")), array.astype(np.float32),
        ),
        "7 axes": (Layout(data=plain), array.reshape(1, 1, 1, 1, 1, 2, 3)),
        "no multiples of 4": (Layout(data=plain), np.zeros(25, np.uint8)[1:].view(np.int32).reshape(2, 3)),
    }  # fmt: skip
    for reason, (layout, refused) in cases.items():
        assert reason in explain_refusal(layout, view_of(refused))
    packed = Layout(data=data("int32", rank=2, packed="j"), packing=packing("int8"))
    assert "unpacked on the host" in explain_refusal(packed, view_of(array), inward=False)


def test_an_array_is_used_in_place_only_where_its_bytes_are_the_layouts() -> None:
    array = np.zeros((4, 6), np.int32)
    plain = data("int32", rank=2)
    assert is_as_stored(Layout(data=plain), view_of(array))
    assert is_as_stored(Layout(data=plain, memory="readonly", padding=3, records="soa"), view_of(array))
    assert is_as_stored(Layout(data=plain, memory="constant"), view_of(array))
    texture = Layout(data=plain, memory="texture")
    for address, is_aligned in ((512, True), (768, False), (516, False)):
        assert is_as_stored(texture, replace(view_of(array), address=address)) == is_aligned
    assert not is_as_stored(replace(texture, dims="2d"), replace(view_of(array), address=512))
    assert not is_as_stored(Layout(data=plain, axes=(1, 0)), view_of(array))
    assert not is_as_stored(Layout(data=plain, padding=4), view_of(array))
    assert not is_as_stored(Layout(data=plain), view_of(array[:, ::2]))
    assert not is_as_stored(Layout(data=plain), view_of(array.astype(np.float32)))


def test_arrays_by_turns_are_used_in_place_only_where_their_layouts_would_store_them_so() -> None:
    declared, both = record("int32", "int32"), np.zeros((2 * 9 + 64, 2), np.int32)
    begin = -both.ctypes.data % 512 // 8
    views = [
        replace(
            view_of(both[:9].view(declared.dtype)[:, 0]),
            address=both.ctypes.data + 8 * (begin + m),
            strides=(16,),
        )
        for m in (0, 1)
    ]
    merged = [Layout(data=declared, group=(2, member)) for member in (0, 1)]

    def lie(change: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> bool:
        return lie_merged(
            [replace(layout, **(change or {})) for layout in merged],
            [views[0], replace(views[1], **(other or {}))],
        )

    assert lie() and lie({"memory": "readonly"}) and lie({"memory": "texture"})
    assert not lie_merged(merged[::-1], views) and not lie_merged(merged, views[::-1])
    for change in ({"dims": "2d"}, {"memory": "constant"}, {"records": "soa"}, {"padding": 2}):
        assert not lie(change)
    for other in ({"strides": (8,)}, {"address": views[1].address + 8}, {"dtype": np.dtype("int64")}):
        assert not lie(None, other)
    stored = [
        merged[m].apply(np.full(9, m + 1, np.int32).repeat(2).view(declared.dtype)).buffer for m in (0, 1)
    ]
    assert (stored[0] | stored[1]).view(np.int32).tolist() == [1, 1, 2, 2] * 9


@pytest.mark.nvrtc
def test_the_kernel_compiles_for_a_gpu_with_the_hosts_argument(tmp_path: Any) -> None:
    (built,) = compile_batch(batch(), Nvrtc("sm_90"), Cache(tmp_path))
    assert isinstance(built, Compiled)
    assert MOVE.itemsize == 8 * 22 + 4 * 30 + 3 * 32
