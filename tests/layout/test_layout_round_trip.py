"""Every layout of every kind of data: nothing lost, nothing overlapping, all where the formula says."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import layouts, random_array, record
from numpy.typing import NDArray

from autotune.layout.bit_packing import PACKINGS
from autotune.layout.layout import Layout
from autotune.layout.order import find_gaps, merge

Case = tuple[Layout, NDArray[np.generic]]


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_restore_inverts_apply(case: Case) -> None:
    layout, array = case
    stored = layout.apply(array)
    assert stored.buffer is not None
    assert len(stored.buffer) == stored.nbytes == layout.room(array.shape).nbytes
    restored = layout.restore(stored, array.shape)
    assert restored.dtype == array.dtype
    assert restored.shape == array.shape
    assert restored.tobytes() == array.tobytes()


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_what_a_layout_leaves_as_it_is(case: Case) -> None:
    layout, array = case
    stored = layout.apply(array)
    assert stored.buffer is not None
    elements = b"".join(row.tobytes() for row in _rows(layout, stored.buffer, array.shape))
    if layout.keeps_order:
        assert elements == array.tobytes()
    if layout.is_canonical(array.shape):
        assert stored.buffer.tobytes() == array.tobytes()
    if layout.group == (1, 0):
        assert layout.is_dense(array.shape) == (find_gaps([layout], array.shape) == ())


def _rows(layout: Layout, buffer: NDArray[np.uint8], shape: tuple[int, ...]) -> list[NDArray[np.uint8]]:
    """The bytes of each run of the last extent, were the layout to do nothing but pad it."""
    size = layout.data.dtype.itemsize
    pitch = (-(-shape[-1] // layout.padding) * layout.padding + layout.plus) * size
    starts = range(0, math.prod(shape[:-1]) * pitch, pitch)
    return [buffer[start : start + shape[-1] * size] for start in starts]


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_addresses_are_distinct_and_inside(case: Case) -> None:
    layout, array = case
    room = layout.room(array.shape)
    elements = layout.grid(room.extents).elements
    addresses = [
        layout.compute_address(e, p, room.part_stride) for e in range(elements) for p in range(layout.parts)
    ]
    assert len(set(addresses)) == len(addresses)
    assert min(addresses) >= 0
    assert max(addresses) < room.texels
    vectorised = layout.compute_address(
        np.arange(elements)[:, None], np.arange(layout.parts), room.part_stride
    )
    assert vectorised.ravel().tolist() == addresses


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_values_lie_where_the_formula_says(case: Case) -> None:
    # The kernel's way: offset from indices and strides, address from offset and part, bytes from there.
    layout, array = case
    stored = layout.apply(array)
    assert stored.buffer is not None
    texels = stored.buffer.reshape(-1, stored.texel_bytes)
    for index in np.ndindex(stored.extents):
        offset = layout.mapping.element(index, stored.extents)
        if layout.mapping.is_strided:
            assert offset == sum(i * stride for i, stride in zip(index, stored.strides, strict=True))
        parts = [
            texels[layout.compute_address(offset, part, stored.part_stride)] for part in range(layout.parts)
        ]
        assert b"".join(part.tobytes() for part in parts) == _value(layout, array, index)


def _value(layout: Layout, array: NDArray[np.generic], index: tuple[int, ...]) -> bytes:
    """The bytes of the value at ``index`` as a kernel sees it, from the canonical array alone."""
    if layout.packing is None:
        return bytes(array[index].tobytes())
    axis = layout.data.shape.index(layout.data.packed)
    joined = layout.packing.elements * layout.vector
    row = np.moveaxis(array, axis, -1)[(*index[:axis], *index[axis + 1 :])]
    values = np.zeros(joined, np.int64)
    chosen = row[index[axis] * joined : (index[axis] + 1) * joined]
    values[: len(chosen)] = chosen
    return layout.packing.pack(values).tobytes()


@settings(max_examples=100, deadline=None)
@given(layouts())
def test_blocks_of_the_contiguous_axis_follow_each_other(case: Case) -> None:
    layout, array = case
    stored = layout.room(array.shape)
    grid = layout.grid(stored.extents)
    assert grid.strides[layout.axes[-1]] == math.prod(grid.tile) * math.prod(grid.side)
    assert grid.padded[layout.axes[-1]] % layout.padding == 0
    assert grid.elements >= math.prod(grid.padded) >= math.prod(stored.extents)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(PACKINGS)), st.integers(1, 5), st.integers(0, 2**32))
def test_unpack_inverts_pack(name: str, words: int, seed: int) -> None:
    packing = PACKINGS[name]
    values = np.random.default_rng(seed).integers(
        0, 2**packing.bits, (3, words * packing.elements), np.uint32
    )
    packed = packing.pack(values)
    assert packed.shape == (3, words, packing.word_bytes // 4)
    np.testing.assert_array_equal(packing.unpack(packed), values)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(1, 9),
    st.sampled_from(["aos", "soa", "aosoa4"]),
    st.sampled_from(["1d", "2d"]),
    st.integers(0, 2**32),
)
def test_merged_members_share_a_buffer_and_no_byte(
    members: int, n: int, records: str, dims: str, seed: int
) -> None:
    declared = record("int32", "float32", plane=(32, 4))
    group = [Layout(data=declared, records=records, dims=dims, group=(members, m)) for m in range(members)]
    arrays = [random_array(declared, (n,), None, seed + m) for m in range(members)]
    stored = merge(group, arrays)
    assert len({id(s.buffer) for s in stored}) == 1
    for layout, one, array in zip(group, stored, arrays, strict=True):
        assert layout.restore(one, (n,)).tobytes() == array.tobytes()
    taken = [
        layout.compute_address(np.arange(n), part, one.part_stride)
        for layout, one in zip(group, stored, strict=True)
        for part in range(layout.parts)
    ]
    assert len(np.unique(taken)) == n * group[0].parts * members
