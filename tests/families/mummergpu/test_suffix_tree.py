"""Suffix trees: against a tree of strings made by brute force, by their invariants, their orders and refusals."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mummergpu_helpers import FOLDER
from suffix_tree_oracle import (
    Text,
    assert_is_the_tree,
    codes,
    load_module,
    names,
    slots_of,
    suffix_tree,
    suffixes,
    texts,
)

from autotune.compile.host_library import library
from autotune.declaration import load_family
from autotune.errors import WorkloadError

ORDER: Any = load_family(FOLDER).orders["tree_order", "reordered"]


def reordered(tree: Any) -> np.ndarray:
    found: np.ndarray = ORDER.permutation(
        {"children": tree.children, "tails": tree.tails}, "node", len(tree.nodes)
    )
    return found


@settings(deadline=None, max_examples=400)
@given(texts())
def test_it_is_the_tree_of_the_text(text: Text) -> None:
    assert_is_the_tree(suffix_tree.build(text), text)


@settings(deadline=None, max_examples=200)
@given(texts(), st.integers(1, 30), st.integers(1, 6), st.integers(1, 3))
def test_ranges_and_threads_make_the_same_tree(text: Text, size: int, letters: int, threads: int) -> None:
    whole, cut = suffix_tree.build(text), load_module()
    cut._LEAST_RANGE, cut._SUBTREE_LETTERS = size, letters
    tree = cut.build(text, threads=threads)
    for name in ("nodes", "children", "tails"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(whole, name))


def test_two_equal_records_by_hand() -> None:
    tree = suffix_tree.build(codes("AC-AC-"))
    # Leaves 1 (AC at 0), 2 (C at 1), 4 (AC at 3) and 6 (C at 4); 3 spells AC and 5 spells C.
    assert names(tree) == ["", 0, 1, "AC", 3, "C", 4]
    assert tree.nodes["parent"].tolist() == [0, 3, 5, 0, 3, 0, 5]
    assert tree.nodes["suffix_link"].tolist() == [0, 5, 0, 5, 5, 0, 0]
    assert tree.nodes["edge_length"].tolist() == [0, 0, 0, 2, 0, 1, 0]
    slots = slots_of(tree)
    children = {(0, 0): 3, (0, 1): 5, (3, 4): 1, (1, 4): 4, (5, 4): 2, (2, 4): 6}
    assert {slot: slots[slot] for slot in zip(*slots.nonzero(), strict=True)} == children


@settings(deadline=None, max_examples=150)
@given(texts())
def test_nodes_are_numbered_as_suffixes_are_inserted(text: Text) -> None:
    tree, found = suffix_tree.build(text), suffixes(text)
    assert names(tree) == numbered(found, sorted(found))


def numbered(found: dict[int, str], order: list[int]) -> list[int | str]:
    """``names`` of a tree that suffixes enter one by one."""
    made: list[int | str] = [""]
    for count, position in enumerate(order):
        earlier = [found[other] for other in order[:count]]
        prefixes = (found[position][:length] for length in range(len(found[position]) + 1))
        head = [prefix for prefix in prefixes if not prefix or any(e.startswith(prefix) for e in earlier)][-1]
        made += [position] if head in made else [head, position]
    return made


def test_a_large_tree_holds_together() -> None:
    # Random, a long repeat, runs of one letter and of separators, many equal records.
    generator = np.random.default_rng(5)
    text = generator.integers(0, 4, 300_000).astype(np.uint8)
    text[100_000:150_000] = text[20_000:70_000]
    text[generator.integers(0, text.size, 300)] = 4
    text[120_000:120_400], text[200_000:203_000], text[-1] = 4, 2, 4
    text[250_000:260_000] = np.resize(codes("ACGTTGCA-"), 10_000)
    tree, slots = suffix_tree.build(text), slots_of(suffix_tree.build(text))
    parent, length, link = (tree.nodes[name] for name in ("parent", "edge_length", "suffix_link"))
    depth, start = tree.tails["depth"].astype(np.int64), tree.nodes["edge_start"].astype(np.int64)
    is_leaf = tree.tails["leaf_position"] != suffix_tree.NO_POSITION
    internal, leaves = np.flatnonzero(~is_leaf)[1:], np.flatnonzero(is_leaf)
    assert tree.tails["leaf_position"][leaves].tolist() == np.flatnonzero(text != 4).tolist()
    np.testing.assert_array_equal(depth, depth[parent] + length)
    assert length[internal].min() > 0
    assert (text[start + length][leaves] == 4).all()
    ending = np.bincount(parent[leaves][length[leaves] == 0], minlength=parent.size)
    assert (np.count_nonzero(slots[:, :4], axis=1) + ending)[internal].min() == 2
    above, letters = np.nonzero(slots[:, :4])
    np.testing.assert_array_equal(parent[slots[above, letters]], above)
    np.testing.assert_array_equal(text[start[slots[above, letters]]], letters)
    assert not is_leaf[link[internal]].any() and (length[link[link > 0]] > 0).all()
    # Where each node can be read; then a sample of them against their parents and links.
    spelled = start + length - depth
    np.testing.assert_array_equal(spelled[leaves], tree.tails["leaf_position"][leaves])
    for node in np.concatenate([internal[::97], leaves[::499]]):
        assert depth[link[node]] == depth[node] - 1
        for other, first in ((parent[node], spelled[node]), (link[node], spelled[node] + 1)):
            expected = text[spelled[other] : spelled[other] + depth[other]]
            np.testing.assert_array_equal(text[first : first + depth[other]], expected)
    np.testing.assert_array_equal(np.sort(reordered(tree)), np.arange(parent.size))


def shaped(children: dict[int, dict[int, int]], nodes: int) -> Any:
    """A tree of which only the children are known."""
    records = {name: np.zeros(nodes, dtype) for name, dtype in suffix_tree._TREE.items()}
    for node, below in children.items():
        for slot, child in below.items():
            name, field = ("tails", "end_child") if slot == 4 else ("children", "acgt"[slot])
            records[name][field][node] = child
    return suffix_tree.SuffixTree(codes("-"), **records)


def test_an_order_follows_the_children_as_their_letters_go_and_then_what_ends_there() -> None:
    slots = shaped({0: {4: 1, 2: 2, 0: 3}, 1: {4: 4}, 3: {1: 5}}, 6)
    assert reordered(slots).tolist() == [0, 3, 2, 1, 5, 4]


@settings(deadline=None, max_examples=60)
@given(texts())
def test_the_order_is_a_permutation_from_the_root_down(text: Text) -> None:
    tree = suffix_tree.build(text)
    order = reordered(tree)
    new = np.argsort(order)
    assert sorted(order.tolist()) == list(range(tree.nodes.size))
    assert order[0] == 0 and (new[tree.nodes["parent"][1:]] < new[1:]).all()


@settings(deadline=None, max_examples=60)
@given(texts())
def test_leaves_lie_in_the_order_of_the_walk(text: Text) -> None:
    tree, found = suffix_tree.build(text), suffixes(text)
    leaves, ranges = suffix_tree.leaf_arrays(tree).values()
    # An end is behind every letter, and of equal ends the first is the first.
    spelled = {
        place: suffix.translate(str.maketrans("ACGT", "0123")) + "4" for place, suffix in found.items()
    }
    assert leaves["position"].tolist() == sorted(found, key=lambda place: (spelled[place], place))
    assert leaves["preceding"].tolist() == [int(text[p - 1]) if p else 4 for p in leaves["position"]]
    for name, (first, count) in zip(names(tree), ranges.tolist(), strict=True):
        is_below = (
            (lambda place, name=name: place == name)
            if isinstance(name, int)
            else (lambda place, name=name: found[place].startswith(name))
        )
        expected = [place for place in leaves["position"].tolist() if is_below(place)]
        assert leaves["position"][first : first + count].tolist() == expected


def test_edge_cases_and_texts_that_are_copied_first() -> None:
    for letters in ("A-", "-A-", "A-A-A-A-", "AAAAAAAA-", "ACGTACGT--ACGT-"):
        assert_is_the_tree(suffix_tree.build(codes(letters)), codes(letters))
    for given_text in (codes("ACGA"), np.repeat(codes("ACGA-"), 2)[::2], codes("ACGA-")):
        given_text.setflags(write=False)
        assert_is_the_tree(suffix_tree.build(given_text), codes("ACGA-"))


def test_progress_is_told_in_order() -> None:
    told: list[tuple[str, float]] = []
    suffix_tree.build(codes("ACGT-"), lambda stage, fraction: told.append((stage, fraction)))
    stages, fractions = zip(*told, strict=True)
    assert stages == ("suffix array", "common prefixes", "nodes", "suffix links", "done")
    assert list(fractions) == sorted(fractions) and fractions[0] == 0 and fractions[-1] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (codes(""), "none of the reference's 0 characters is A, C, G or T"),
        (codes("---"), "none of the reference's 3 characters is A, C, G or T"),
        (np.zeros((2, 2), np.uint8), r"a row of uint8, found uint8 of shape \(2, 2\)"),
        (np.array([0, 3, 5, 9, 4], np.uint8), "code 5 at position 2 of the reference"),
        (np.broadcast_to(np.uint8(4), 2**31 - 1), "2,147,483,647 characters: .* at most 2,147,483,646"),
        (np.broadcast_to(np.uint8(0), 2**31 - 2), "2,147,483,646 characters: .* at most 2,147,483,646"),
    ],
)
def test_texts_without_a_tree_are_refused(text: Text, message: str) -> None:
    with pytest.raises(TypeError if text.ndim > 1 else WorkloadError, match=message):
        suffix_tree.build(text)


@pytest.mark.zig
def test_zig_compiles_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang c++")
    library.cache_clear()
    text = codes("ACGTACCA-ACGT-")
    assert_is_the_tree(load_module().build(text), text)
    library.cache_clear()


def test_memory_stays_in_proportion() -> None:
    program = f"""
import re, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
from mummergpu_helpers import _load
build = _load('suffix_tree').build
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
text = np.random.default_rng(1).integers(0, 4, 2_000_000, dtype=np.uint8)
before = peak()
build(text)
print((peak() - before) / text.size)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parents[1], capture_output=True, text=True, check=True
    )
    assert 80 < float(done.stdout) < 125
