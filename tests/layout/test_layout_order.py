"""order and grouping: layouts that concern several arrays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layouts import record

from autotune.errors import FamilyError, WorkloadError
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.order import Order, merge, reorder, restore

NODES = Data(
    name="nodes",
    role="input",
    record="Node",
    fields=(Field("next", "int32", "n"), Field("parent", "uint32", "n"), Field("weight", "float32")),
    shape=("n",),
)
STARTS = Data(name="starts", role="input", fields=(Field("", "int32", "n"),), shape=("q",))
PAIRS = Data(name="pairs", role="input", fields=(Field("", "int32"),), shape=("n", "n"))
NULL = np.uint32(0xFFFFFFFF)


def test_order_by_hand() -> None:
    # 0 -> 1 -> 2 -> null, stored backwards: old node 2 becomes new node 0
    nodes = np.array([(1, NULL, 0.5), (2, 0, 1.5), (-1, 1, 2.5)], NODES.dtype)
    moved = reorder(NODES, nodes, {"n": Order.make([2, 1, 0], 3)})
    assert moved.tolist() == [(-1, 1, 2.5), (0, 2, 1.5), (1, int(NULL), 0.5)]
    assert nodes["next"].tolist() == [1, 2, -1]  # the caller's array stays


def test_links_into_another_space_move_their_values_only() -> None:
    starts = np.array([0, 2, -1, 1, 7], np.int32)
    moved = reorder(STARTS, starts, {"n": Order.make([2, 0, 1], 3)})
    assert moved.tolist() == [1, 0, -1, 2, 7]  # -1 and 7 are no nodes
    assert starts.tolist() == [0, 2, -1, 1, 7]


def test_every_axis_over_the_space_moves() -> None:
    moved = reorder(PAIRS, np.arange(9, dtype=np.int32).reshape(3, 3), {"n": Order.make([2, 0, 1], 3)})
    assert moved.tolist() == [[8, 6, 7], [2, 0, 1], [5, 3, 4]]


def test_other_spaces_stay() -> None:
    starts = np.array([0, 1], np.int32)
    assert reorder(STARTS, starts, {"m": Order.make([1, 0], 2)}) is starts


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_reordering_keeps_the_graph(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    nodes = np.zeros(n, NODES.dtype)
    nodes["next"] = generator.integers(-1, n, n)
    nodes["parent"] = np.where(generator.random(n) < 0.2, NULL, generator.integers(0, n, n))
    nodes["weight"] = generator.random(n)
    starts = generator.integers(-1, n, 5).astype(np.int32)
    order = generator.permutation(n)
    moved, entries = (
        reorder(d, a, {"n": Order.make(order, n)}) for d, a in ((NODES, nodes), (STARTS, starts))
    )

    def walk(graph: Any, start: int, link: str) -> list[float]:
        """The weights met on the way from ``start``, at most n of them."""
        met: list[float] = []
        while 0 <= start < n and len(met) < n:
            met.append(float(graph["weight"][start]))
            start = int(graph[link][start])
        return met

    for old, new in zip(starts.tolist(), entries.tolist(), strict=True):
        for link in ("next", "parent"):
            assert walk(moved, new, link) == walk(nodes, old, link)
    np.testing.assert_array_equal(moved["weight"], nodes["weight"][order])
    np.testing.assert_array_equal(moved["next"] == -1, nodes["next"][order] == -1)
    np.testing.assert_array_equal(moved["parent"] == NULL, nodes["parent"][order] == NULL)


@given(st.integers(1, 20), st.integers(0, 2**32))
def test_restored_inverts_reordered(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    orders = {"n": Order.make(generator.permutation(n), n)}
    nodes = np.zeros(n, NODES.dtype)
    nodes["next"] = generator.integers(-1, n + 2, n)  # -1, n and n + 1 are no nodes
    nodes["weight"] = generator.random(n)
    for data, array in (
        (NODES, nodes),
        (STARTS, generator.integers(-1, n, 5).astype(np.int32)),
        (PAIRS, generator.integers(0, 9, (n, n)).astype(np.int32)),
    ):
        before = array.tobytes()
        back = restore(data, reorder(data, array, orders), orders)
        assert back.tobytes() == array.tobytes() == before


@pytest.mark.parametrize(
    ("permutation", "said"),
    [
        ([0, 1, 1], "1 is in it 2 times and 2 is missing; an order is every number from 0 to 2 once"),
        ([0, 3, 1], "3 at place 1 is none of them"),
        ([-1, 0, 1], "-1 at place 0 is none of them"),
        ([0, 1], "3 whole numbers needed, the index that comes first"),
        ([0.0, 1.0, 2.0], "3 whole numbers needed"),
    ],
)
def test_what_is_no_permutation_is_refused(permutation: list[float], said: str) -> None:
    with pytest.raises(FamilyError, match=said):
        Order.make(permutation, 3)


# -- grouping ---------------------------------------------------------------------------------------------


def group(*declared: Data, **choice: Any) -> list[Layout]:
    return [Layout(data=d, group=(len(declared), i), **choice) for i, d in enumerate(declared)]


PAIR = record("int32", "int32")


@pytest.mark.parametrize(
    ("records", "buffer"),
    [
        # nodes 0 1 2 with children 10 11 12: at 2 * id and 2 * id + 1, as in MUMmerGPU's merged tree
        ("aos", [0, -1, 10, -10, 1, -2, 11, -11, 2, -3, 12, -12]),
        ("soa", [0, 10, 1, 11, 2, 12, -1, -10, -2, -11, -3, -12]),
        ("aosoa2", [0, 10, -1, -10, 1, 11, -2, -11, 2, 12, -3, -12]),
    ],
)
def test_merged_by_hand(records: str, buffer: list[int]) -> None:
    nodes = np.array([(0, -1), (1, -2), (2, -3)], PAIR.dtype)
    children = np.array([(10, -10), (11, -11), (12, -12)], PAIR.dtype)
    layouts = group(PAIR, PAIR, records=records)
    stored = merge(layouts, [nodes, children])
    assert stored[0].buffer is not None
    assert stored[0].buffer.view(np.int32).tolist() == buffer
    assert stored[1].buffer is stored[0].buffer
    for layout, one, array in zip(layouts, stored, (nodes, children), strict=True):
        np.testing.assert_array_equal(layout.restore(one, (3,)), array)


def test_merged_refuses_different_sizes() -> None:
    one, other = PAIR, record("int32", "int32", "int32")
    arrays = [np.zeros(3, one.dtype), np.zeros(3, other.dtype)]
    with pytest.raises(WorkloadError, match="grouping merged needs records of one size, these have"):
        merge(group(one, other), arrays)


def test_merged_refuses_different_texels() -> None:
    # Both have 16 bytes; in structures of arrays one is read by 4 and the other by 8.
    one, other = record(*["int32"] * 4), record("int64", "int64")
    arrays = [np.zeros(3, one.dtype), np.zeros(3, other.dtype)]
    with pytest.raises(WorkloadError, match="grouping merged"):
        merge(group(one, other, records="soa"), arrays)
