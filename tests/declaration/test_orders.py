"""Orders that a family declares in ``means``: what they are made from, what is rejected, and that the links follow."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compile import Variant
from autotune.declaration import DeclaredOrder, Family, bind, load_family
from autotune.device import Ordering
from autotune.errors import AutotuneError
from autotune.layout import Order, reorder, restore

FAMILY = """\
schema: 1
family: walker
title: the sum of a tree
source: walker.cu
default_workload: small
data:
  nodes:
    role: input
    record: Node
    shape: [node]
    fields: {left: {type: int32, link: node}, right: {type: int32, link: node}, visits: uint32}
  more: {role: input, type: uint16, link: node, none: 0, shape: [node]}
  edges:
    role: input
    record: Edge
    shape: [edge]
    fields: {a: {type: int32, link: node}, b: {type: int32, link: node}}
  trace: {role: input, type: int32, link: node, shape: [step]}
  start: {role: input, type: int32, link: node, shape: [one]}
  key: {role: input, type: float32, shape: [node]}
  sums: {role: output, type: float32, shape: [node]}
extents: {one: {value: 1}}
kernels:
  walker: {arguments: [nodes, more, edges, trace, start, key, sums], grid: [1], block: [32]}
policies:
  p: {layout: order, data: [node], values: [plain, other], default: plain, means: {other: MEANING}}
reference: control
"""
TREE = "links: [nodes.left, nodes.right]"


def family_of(folder: Path, meaning: str, text: str = FAMILY) -> Family:
    folder.mkdir(exist_ok=True)
    (folder / "family.yaml").write_text(text.replace("MEANING", meaning))
    (folder / "walker.cu").write_text("template <class Policy> __global__ void walker() {}\n")
    return load_family(folder)


def arrays_of(family: Family, **given: Any) -> dict[str, Any]:
    """A tree of seven: 3 above 5 and 0, 5 above 6 and 1, 0 above 2 and 4."""
    nodes = np.zeros(7, family.data["nodes"].dtype)
    nodes["left"] = nodes["right"] = -1
    for above, left, right in ((3, 5, 0), (5, 6, 1), (0, 2, 4)):
        nodes["left"][above], nodes["right"][above] = left, right
    nodes["visits"] = [5, 1, 1, 9, 4, 3, 2]
    arrays = {
        "nodes": nodes, "more": np.zeros(7, np.uint16), "edges": np.zeros(0, family.data["edges"].dtype),
        "trace": np.array([3, 0, 2, 3, 5, -1, 3, 0, 4, 3, 0, 2], np.int32),
        "start": np.array([3], np.int32), "key": np.array([3, 1, 2, 1, 9, 0, 5], np.float32),
    }  # fmt: skip
    return arrays | given


def made(family: Family, arrays: dict[str, Any]) -> list[int]:
    order = family.orders["p", "other"]
    assert isinstance(order, DeclaredOrder)
    return order.permutation(arrays, "node", 7).tolist()


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        ("breadth_first", [3, 5, 0, 6, 1, 2, 4]),
        ("{order: breadth_first, root: start}", [3, 5, 0, 6, 1, 2, 4]),
        ("{order: breadth_first, root: 5}", [5, 6, 1, 0, 2, 4, 3]),
        (f"{{order: depth_first, {TREE}}}", [3, 5, 6, 1, 0, 2, 4]),
        ("{order: depth_first, links: [nodes.right]}", [2, 3, 0, 4, 5, 1, 6]),
        ("van_emde_boas", [3, 5, 6, 1, 0, 2, 4]),
        ("{order: van_emde_boas, together: true}", [3, 5, 0, 6, 1, 2, 4]),
        ("{order: hot_first, counts: nodes.visits}", [3, 0, 4, 2, 5, 6, 1]),
        ("{order: sorted, key: key}", [5, 1, 3, 2, 0, 6, 4]),
        ("{order: sorted, key: nodes.visits, descending: true}", [3, 0, 4, 5, 6, 1, 2]),
        (
            "{order: hot_first, counts: trace}",
            [3, 0, 2, 4, 5, 6, 1],
        ),
        ("{order: breadth_first_blocks, levels: 1, block: 2, root: 3}", [3, 5, 6, 1, 0, 2, 4]),
        ("{order: b_tree, width: 2}", [2, 5, 0, 1, 3, 4, 6]),
        ("{order: b_tree, width: 1, key: key}", [2, 1, 6, 5, 3, 0, 4]),
    ],
)
def test_by_hand(meaning: str, expected: list[int], tmp_path: Path) -> None:
    family = family_of(tmp_path, meaning)
    assert made(family, arrays_of(family)) == expected
    chosen = family.space.configuration("p=other")
    assert family.find_reordering(chosen) and not family.find_reordering(family.space.control)


def test_random_is_of_its_seed(tmp_path: Path) -> None:
    found = [made(f := family_of(tmp_path, f"{{order: random, seed: {s}}}"), arrays_of(f)) for s in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_an_edge_joins_its_ends_and_a_number_that_is_no_link_leads_nowhere(tmp_path: Path) -> None:
    family = family_of(tmp_path, "{order: reverse_cuthill_mckee, links: [edges.a, edges.b]}")
    edges = np.array(
        list(zip([4, 0, 6, 2, 5, 3], [0, 6, 2, 5, 3, 1], strict=True)), family.data["edges"].dtype
    )
    assert made(family, arrays_of(family, edges=edges)) in ([4, 0, 6, 2, 5, 3, 1], [1, 3, 5, 2, 6, 0, 4])
    family = family_of(tmp_path, "{order: breadth_first, root: 1, links: [more]}")
    more = np.array([1, 4, 0, 0, 2, 0, 6], np.uint16)  # 2 would lead to 0, were it not none
    assert made(family, arrays_of(family, more=more))[:4] == [1, 4, 2, 0]


@pytest.mark.parametrize(
    ("meaning", "said"),
    [
        ("breadthfirst", r"unknown order 'breadthfirst'.*means: other; did you mean 'breadth_first'"),
        ("{order: sortd, key: key}", r"did you mean 'sorted'"),
        ("{order: sorted}", "means: other: sorted needs key: an input, or INPUT.FIELD"),
        ("{order: sorted, key: kye}", r"unknown input 'kye'.*did you mean 'key'"),
        ("{order: sorted, key: sums}", "unknown input 'sums'"),
        ("{order: sorted, key: nodes}", "unknown input 'nodes'"),
        ("{order: sorted, key: edges.a}", r"key: edges.a has shape \[edge\]; a number for each node is needed"),
        ("{order: sorted, key: key, descending: 1}", "descending has to be true or false, found 1"),
        ("{order: random, sed: 1}", r"unknown key 'sed'.*did you mean 'seed'"),
        ("{order: random, seed: -1}", "seed has to be a whole number of at least 0, found -1"),
        ("{order: hot_first}", "hot_first needs counts"),
        ("{order: b_tree}", "b_tree needs width: a whole number of at least 1, the elements of a node"),
        ("{order: breadth_first_blocks, levels: 2, block: 0}", "block has to be a whole number of at least 1"),
        ("{order: breadth_first, root: key}", "root: key is no link to node; declare link: node there"),
        ("{order: breadth_first, root: -1}", "root is an index, or an input that links to node; found -1"),
        ("{order: breadth_first, links: [key]}", "follows links, and none of these links is to node"),
        ("{order: breadth_first, links: [edges.a]}", "none of these links is to node"),
        ("{seed: 1}", r"an order is \{order: NAME, \.\.\.\}"),
    ],
)  # fmt: skip
def test_what_is_no_order_is_refused(meaning: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AutotuneError, match=said):
        family_of(tmp_path, meaning)


def test_a_root_outside_of_the_data_is_refused_when_they_are_there(tmp_path: Path) -> None:
    family = family_of(tmp_path, "{order: depth_first, root: 7}")
    with pytest.raises(AutotuneError, match="root 7 is not among the 7 elements"):
        made(family, arrays_of(family))


def test_a_value_that_means_nothing_is_refused_and_told_of_the_orders(tmp_path: Path) -> None:
    text = FAMILY.replace("[plain, other]", "[plain, other, breadth_first]")
    with pytest.raises(
        AutotuneError, match=r"unknown order 'breadth_first'.* say in means which it is of random, "
    ):
        family_of(tmp_path, "random", text).orders  # noqa: B018


def test_a_value_has_one_meaning(tmp_path: Path) -> None:
    family = family_of(tmp_path / "family", "random")
    (tmp_path / "family" / "family.py").write_text("orders = {'other': lambda arrays: [0]}\n")
    with pytest.raises(
        AutotuneError, match=r"other is in means and in orders of family\.py; delete one of them"
    ):
        family.orders  # noqa: B018


def test_what_an_order_makes_is_host_code_whoever_writes_it(tmp_path: Path, monkeypatch: Any) -> None:
    """A record is of it, so that another one is another study; a policy file is not, as of an order in family.py."""
    plain = FAMILY.replace(", means: {other: MEANING}", "")
    families = [family_of(tmp_path, *of) for of in (("random",), ("{order: random, seed: 2}",), ("x", plain))]
    assert len({family.space_digest for family in families}) == 1
    digests = [family.host_digest for family in families]
    assert len(set(digests)) == 3
    monkeypatch.setattr("autotune.declaration.family_folder.orders_digest", lambda: "of another version")
    changed = [family_of(tmp_path, *of).host_digest for of in (("random",), ("x", plain))]
    assert changed[0] != digests[0] and changed[1] == digests[2]


MEANINGS = ["breadth_first", "depth_first", "van_emde_boas", "reverse_cuthill_mckee", "random",
            "{order: hot_first, counts: nodes.visits}", "{order: sorted, key: key}"]  # fmt: skip


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> list[Family]:
    return [family_of(tmp_path_factory.mktemp("family"), meaning) for meaning in MEANINGS]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_the_links_follow_and_the_inverse_gives_the_arrays_back(ordered: list[Family], seed: int) -> None:
    draw = np.random.default_rng(seed)
    for family in ordered:
        nodes = np.zeros(7, family.data["nodes"].dtype)
        for name in ("left", "right"):
            nodes[name] = draw.integers(-1, 7, 7)
        nodes["visits"] = draw.integers(0, 3, 7)
        edges = np.zeros(5, family.data["edges"].dtype)
        edges["a"], edges["b"] = draw.integers(0, 7, 5), draw.integers(-1, 7, 5)
        arrays = arrays_of(family, nodes=nodes, edges=edges)
        order = {"node": Order.make(made(family, arrays), 7)}
        moved = reorder(family.data["nodes"], nodes, order)
        old = order["node"].old
        for name in ("left", "right"):
            linked = moved[name] >= 0
            assert (linked == (nodes[name][old] >= 0)).all()
            assert (old[moved[name][linked]] == nodes[name][old][linked]).all()
        assert (restore(family.data["nodes"], moved, order) == nodes).all()


def test_an_order_is_of_the_arrays_of_a_call_and_what_it_takes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = family_of(tmp_path, "{order: sorted, key: key}")
    seconds = itertools.count()
    monkeypatch.setattr("autotune.device.orders.time.perf_counter", lambda: float(next(seconds)))
    variant = Variant(family, family.space.configuration("p=other"))
    for key in ([3, 1, 2, 1, 9, 0, 5], [0, 1, 2, 3, 6, 5, 4]):
        edges = np.zeros(1, family.data["edges"].dtype)
        arrays = arrays_of(family, key=np.array(key, np.float32), edges=edges)
        inputs = bind(family, arrays, {}, {})
        ordering = Ordering()
        assert not ordering.has_orders_of(variant)
        assert (
            ordering.orders_of(variant, inputs)["node"].old.tolist()
            == np.argsort(key, kind="stable").tolist()
        )
        assert ordering.ordering_ms(variant) == 1000  # of a clock that a second passes on at each look
        assert ordering.ordering_ms(Variant(family, family.space.control)) == 0
        moved = ordering.move(variant, inputs, "key", ordering.orders_of(variant, inputs))
        assert moved.tolist() == sorted(key)
        assert ordering.saved_ms(variant, "key") == 1000
