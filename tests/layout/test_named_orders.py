"""Orders made from keys, counts and links: permutations by hand and by what each promises, on generated graphs."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from autotune.layout.named_orders import (
    b_tree,
    breadth_first,
    breadth_first_blocks,
    depth_first,
    hot_first,
    random_order,
    reverse_cuthill_mckee,
    sort_by,
    van_emde_boas,
)
from autotune.layout.order import Order
from autotune.layout.trees import Links

# 0 leads to 1 and 2, 1 to 3 and 4, 2 to 5 and 6: a tree in the order of its levels.
COMPLETE = Links.from_pairs(np.repeat(np.arange(3), 2), np.arange(1, 7), 7)


def tree_of(parents: list[int], shuffled: NDArray[Any]) -> Links:
    """Node i + 1 below parents[i], all of them by other names."""
    return Links.from_pairs(
        shuffled[np.array(parents, int)], shuffled[np.arange(1, len(parents) + 1)], len(shuffled)
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Links, int]:
    extent = draw(st.integers(1, 24))
    pairs = draw(st.lists(st.tuples(st.integers(0, extent - 1), st.integers(-2, extent + 1)), max_size=40))
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return Links.from_pairs(ends[:, 0], ends[:, 1], extent), extent


@st.composite
def trees(draw: st.DrawFn) -> tuple[Links, int]:
    """With its root."""
    parents = [draw(st.integers(max(0, i - 4), i)) for i in range(draw(st.integers(0, 30)))]
    shuffled = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(parents) + 1)
    return tree_of(parents, shuffled), int(shuffled[0])


def test_by_hand() -> None:
    assert breadth_first(COMPLETE).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert depth_first(COMPLETE).tolist() == [0, 1, 3, 4, 2, 5, 6]
    assert hot_first(COMPLETE, np.array([9, 1, 5, 1, 1, 0, 4], np.uint8)).tolist() == [
        0,
        2,
        6,
        5,
        1,
        3,
        4,
    ]
    assert van_emde_boas(COMPLETE).tolist() == [0, 1, 3, 4, 2, 5, 6]
    assert van_emde_boas(COMPLETE, together=True).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert breadth_first(COMPLETE, [2, 1]).tolist() == [2, 5, 6, 1, 3, 4, 0]
    assert sort_by(np.array([2, 1, 2, 0], np.uint8)).tolist() == [3, 1, 0, 2]
    assert sort_by(np.array([2, 1, 2, 0], np.uint8), descending=True).tolist() == [0, 2, 1, 3]


def test_four_levels_after_van_emde_boas() -> None:
    """Two above, then each of the four trees of two levels: Frigo et al., figure 1."""
    complete = Links.from_pairs(np.repeat(np.arange(7), 2), np.arange(1, 15), 15)
    assert van_emde_boas(complete).tolist() == [0, 1, 2, 3, 7, 8, 4, 9, 10, 5, 11, 12, 6, 13, 14]


@pytest.mark.parametrize(
    ("levels", "block", "expected"),
    [
        (1, 2, [0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        (0, 2, [0, 1, 2, 3, 7, 8, 4, 9, 10, 5, 11, 12, 6, 13, 14]),
        (1, 2**40, [0, 1, 3, 7, 8, 4, 9, 10, 2, 5, 11, 12, 6, 13, 14]),
        (0, 3, [0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        (0, 1, list(range(15))),
        (2**40, 5, list(range(15))),
    ],
)
def test_blocks_by_hand(levels: int, block: int, expected: list[int]) -> None:
    complete = Links.from_pairs(np.repeat(np.arange(7), 2), np.arange(1, 15), 15)
    assert breadth_first_blocks(complete, levels, block).tolist() == expected


def in_order(node: int, extent: int, width: int) -> Iterator[int]:
    """The places of the tree below ``node`` as a reader of ``b_tree`` would walk it."""
    if node * width >= extent:
        return
    for i in range(width):
        yield from in_order(node * (width + 1) + i + 1, extent, width)
        if node * width + i < extent:
            yield node * width + i
    yield from in_order(node * (width + 1) + width + 1, extent, width)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 700), st.sampled_from([1, 2, 4, 8, 16]))
def test_walking_a_b_tree_in_order_meets_ascending_elements(extent: int, width: int) -> None:
    order = b_tree(extent, width)
    assert [order[place] for place in in_order(0, extent, width)] == list(range(extent))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([[], [7], [3, 0, 250]]))
def test_wide_levels_are_walked_as_narrow_ones_are(seed: int, roots: list[int]) -> None:
    draw, extent = np.random.default_rng(seed), 300
    parents = [int(draw.integers(max(0, i - int(draw.integers(1, 250))), i + 1)) for i in range(extent - 1)]
    links = (
        tree_of(parents, draw.permutation(extent))
        if seed % 2
        else Links.from_pairs(draw.integers(0, extent, 700), draw.integers(-1, extent + 1, 700), extent)
    )
    walks = (breadth_first, depth_first, van_emde_boas, partial(breadth_first_blocks, levels=3, block=2))
    made = [walk(links, roots=roots).tolist() for walk in walks]
    with pytest.MonkeyPatch.context() as patch:
        for few in (0, 10**6):
            patch.setattr("autotune.layout.trees._FEW", few)
            assert [walk(links, roots=roots).tolist() for walk in walks] == made


def test_rows_of_links_are_pairs_of_them() -> None:
    rows = np.array([[1, -1, 2], [1, 0, 3], [-5, 4, 2]])
    found, pairs = Links.from_rows(rows), Links.from_pairs(np.repeat(np.arange(3), 3), rows.reshape(-1), 3)
    assert found.begins.tolist() == pairs.begins.tolist() == [0, 2, 3, 3]
    assert found.targets.tolist() == pairs.targets.tolist() == [1, 2, 0]


def test_a_long_chain_takes_no_recursion() -> None:
    extent = 5000
    chain = Links.from_pairs(np.arange(extent - 1), np.arange(1, extent), extent)
    for made in (breadth_first(chain), depth_first(chain), van_emde_boas(chain)):
        assert (made == np.arange(extent)).all()


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 2**31))
def test_each_is_a_permutation_whatever_the_links(graph: tuple[Links, int], seed: int) -> None:
    links, extent = graph
    counts = np.random.default_rng(seed).integers(0, 3, extent)
    for made in (
        random_order(extent, seed), sort_by(counts), sort_by(counts, descending=True), breadth_first(links),
        depth_first(links), depth_first(links, [extent // 2]), hot_first(links, counts), van_emde_boas(links),
        van_emde_boas(links, together=True), reverse_cuthill_mckee(links), breadth_first_blocks(links, 1, 2),
        b_tree(extent, 3),
    ):  # fmt: skip
        order = Order.make(made, extent)
        assert (order.old[order.new] == np.arange(extent)).all()


@settings(max_examples=60, deadline=None)
@given(trees())
def test_on_a_tree_each_lies_after_its_parent_and_where_it_should(tree: tuple[Links, int]) -> None:
    links, root = tree
    extent = links.extent
    parent = np.full(extent, -1)
    parent[links.targets] = links.sources
    depth = np.zeros(extent, int)
    for node in breadth_first(links):
        depth[node] = depth[parent[node]] + 1 if node != root else 0
    assert (np.diff(depth[breadth_first(links)]) >= 0).all()
    for made in (
        breadth_first(links),
        depth_first(links),
        van_emde_boas(links),
        van_emde_boas(links, together=True),
    ):
        place = Order.make(made, extent).new
        assert made[0] == root
        assert all(place[parent[node]] < place[node] for node in range(extent) if node != root)
    place = Order.make(depth_first(links), extent).new
    first = links.targets[links.begins[:-1][np.diff(links.begins) > 0]]
    assert (place[first] == place[parent[first]] + 1).all()  # the first child follows


@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(0, 99))
def test_the_hottest_child_follows_its_parent(tree: tuple[Links, int], seed: int) -> None:
    links, _ = tree
    counts = np.random.default_rng(seed).integers(0, 5, links.extent)
    order = Order.make(hot_first(links, counts), links.extent)
    for node in range(links.extent):
        children = links.targets[links.begins[node] : links.begins[node + 1]]
        if len(children):
            assert counts[order.old[order.new[node] + 1]] == counts[children].max()


@pytest.mark.parametrize("seed", range(3))
def test_a_path_and_a_grid_have_a_small_bandwidth_again(seed: int) -> None:
    def bandwidth(links: Links) -> int:
        place = Order.make(reverse_cuthill_mckee(links), links.extent).new.astype(int)
        return int(np.abs(place[links.sources] - place[links.targets]).max())

    names = np.random.default_rng(seed).permutation(144)
    assert bandwidth(Links.from_pairs(names[:-1], names[1:], 144)) == 1
    grid = names.reshape(12, 12)
    across, down = (grid[:, :-1].ravel(), grid[:, 1:].ravel()), (grid[:-1].ravel(), grid[1:].ravel())
    ends = np.concatenate([across, down], axis=1)
    assert bandwidth(Links.from_pairs(ends[0], ends[1], 144)) <= 14
