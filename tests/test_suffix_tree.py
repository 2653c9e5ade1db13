"""Suffix trees: against a tree of strings made by brute force, by their invariants, their orders and refusals."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from autotune.errors import CompilerError, WorkloadError

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "kernels" / "mummergpu" / "suffix_tree.py"


def _load() -> ModuleType:
    # A family folder is not an installed package, so its modules are loaded from their files.
    spec = importlib.util.spec_from_file_location("mummergpu_suffix_tree", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


suffix_tree = _load()
Text = NDArray[np.uint8]


def codes(letters: str) -> Text:
    return np.array(["ACGT-".index(letter) for letter in letters], np.uint8)


def suffixes(text: Text) -> dict[int, str]:
    """By position, up to the separator."""
    spelled = "".join("ACGT-"[code] for code in text)
    return {i: spelled[i:].partition("-")[0] for i in range(len(spelled)) if spelled[i] != "-"}


def internal_strings(found: dict[int, str]) -> set[str]:
    """What more than one suffix starts with and goes on from in more than one way; no end is like another."""
    ways: dict[str, set[str | int]] = {}
    for position, suffix in found.items():
        for length in range(len(suffix) + 1):
            ways.setdefault(suffix[:length], set()).add(suffix[length : length + 1] or position)
    return {""} | {prefix for prefix, after in ways.items() if len(after) > 1}


def spelled_nodes(tree: Any) -> list[str]:
    """What each node's path spells, parents first."""
    spelled, is_chained = [""] * tree.parent.size, tree.edge_length == 0
    for node in np.lexsort((is_chained, tree.depth))[1:]:
        start, length = int(tree.edge_start[node]), int(tree.edge_length[node])
        edge = "".join("ACGT-"[code] for code in tree.text[start : start + length])
        spelled[node] = spelled[tree.parent[node]] + edge
    return spelled


def names(tree: Any) -> list[int | str]:
    """The position of a leaf, what an internal node spells."""
    pairs = zip(spelled_nodes(tree), tree.leaf_position.tolist(), strict=True)
    return [spelled if position == suffix_tree.NO_POSITION else position for spelled, position in pairs]


def assert_is_the_tree(tree: Any, text: Text) -> None:
    """Every field of ``tree`` against the strings of ``text``, which ends with a separator."""
    found, spelled = suffixes(text), spelled_nodes(tree)
    np.testing.assert_array_equal(tree.text, text)
    assert tree.depth.tolist() == [len(string) for string in spelled]
    node_of = {name: node for node, name in enumerate(names(tree))}
    assert len(node_of) == len(spelled) and node_of[""] == 0
    assert node_of.keys() == found.keys() | internal_strings(found)
    for name, node in node_of.items():
        string, position = (name, None) if isinstance(name, str) else (found[name], name)
        assert spelled[node] == string
        # Read where its edge says it is, this is a suffix through the node.
        start = int(tree.edge_start[node]) + int(tree.edge_length[node]) - len(string)
        assert start == position or (position is None and found.get(start, "").startswith(string))
        if node:
            above = (string[:end] for end in range(len(string) + (position is not None)))
            assert tree.parent[node] == [node_of[prefix] for prefix in above if prefix in node_of][-1]
        if position is None:
            assert tree.suffix_link[node] == node_of[string[1:]]
            assert tree.preceding[node] == 4
            below = [child for child in range(1, len(spelled)) if tree.parent[child] == node]
            ending = [child for child in below if spelled[child] == string]
            slots = {"ACGT".index(spelled[c][len(string)]): c for c in below if c not in ending}
            assert tree.children[node, :4].tolist() == [slots.get(slot, 0) for slot in range(4)]
            chain = [node, *sorted(ending, key=lambda leaf: int(tree.leaf_position[leaf]))]
            assert tree.children[chain, 4].tolist() == [*chain[1:], 0]
            assert node == 0 or len(below) >= 2
        else:
            assert tree.suffix_link[node] == node_of.get(position + 1, 0)
            assert tree.preceding[node] == (text[position - 1] if position else 4)
            assert not tree.children[node, : 5 if tree.edge_length[node] else 4].any()


def texts() -> st.SearchStrategy[Text]:
    """Up to 48 characters and a separator: of 1 to 4 letters, with separators inside or none, and repeats."""
    alphabets = st.sampled_from(["A", "T", "AC", "ACG", "ACGT", "A-", "AC-", "ACGT-"])
    pieces = alphabets.flatmap(lambda alphabet: st.text(alphabet, min_size=1, max_size=12))
    repeats = st.builds(lambda piece, times, end: piece * times + end, pieces, st.integers(1, 3), pieces)
    return (pieces | repeats).filter(lambda text: set(text) != {"-"}).map(lambda text: codes(text + "-"))


@settings(deadline=None, max_examples=400)
@given(texts())
def test_it_is_the_tree_of_the_text(text: Text) -> None:
    assert_is_the_tree(suffix_tree.build(text), text)


def test_two_equal_records_by_hand() -> None:
    tree = suffix_tree.build(codes("AC-AC-"))
    # Leaves 1 (AC at 3), 3 (AC at 0), 4 (C at 4) and 6 (C at 1); 2 spells AC and 5 spells C.
    assert names(tree) == ["", 3, "AC", 0, 4, "C", 1]
    assert tree.parent.tolist() == [0, 2, 0, 2, 5, 0, 5]
    assert tree.suffix_link.tolist() == [0, 4, 5, 6, 0, 0, 0]
    assert tree.edge_length.tolist() == [0, 0, 2, 0, 0, 1, 0]
    children = {(0, 0): 2, (0, 1): 5, (2, 4): 3, (3, 4): 1, (5, 4): 6, (6, 4): 4}
    assert {slot: tree.children[slot] for slot in zip(*tree.children.nonzero(), strict=True)} == children


@settings(deadline=None, max_examples=150)
@given(texts())
def test_nodes_are_numbered_and_inserted_as_said(text: Text) -> None:
    tree, found = suffix_tree.build(text), suffixes(text)
    lexicographic = sorted(found, key=lambda position: text[position:].tobytes())
    assert names(tree) == numbered(found, lexicographic)
    assert [names(tree)[node] for node in suffix_tree.insertion(tree)] == numbered(found, sorted(found))


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
    tree = suffix_tree.build(text)
    depth, parent, start = tree.depth.astype(np.int64), tree.parent, tree.edge_start.astype(np.int64)
    is_leaf = tree.leaf_position != suffix_tree.NO_POSITION
    internal, leaves = np.flatnonzero(~is_leaf)[1:], np.flatnonzero(is_leaf)
    assert sorted(tree.leaf_position[leaves].tolist()) == np.flatnonzero(text != 4).tolist()
    np.testing.assert_array_equal(depth, depth[parent] + tree.edge_length)
    assert tree.edge_length[internal].min() > 0
    assert (text[start + tree.edge_length][leaves] == 4).all()
    ending = np.bincount(parent[leaves][tree.edge_length[leaves] == 0], minlength=parent.size)
    assert (np.count_nonzero(tree.children[:, :4], axis=1) + ending)[internal].min() == 2
    above, slots = np.nonzero(tree.children[:, :4])
    np.testing.assert_array_equal(parent[tree.children[above, slots]], above)
    np.testing.assert_array_equal(text[start[tree.children[above, slots]]], slots)
    assert not is_leaf[tree.suffix_link[internal]].any()
    # Where each node can be read; then a sample of them against their parents and links.
    spelled = start + tree.edge_length - depth
    np.testing.assert_array_equal(spelled[leaves], tree.leaf_position[leaves])
    for node in np.concatenate([internal[::97], leaves[::499]]):
        assert depth[tree.suffix_link[node]] == depth[node] - 1
        for other, first in ((parent[node], spelled[node]), (tree.suffix_link[node], spelled[node] + 1)):
            expected = text[spelled[other] : spelled[other] + depth[other]]
            np.testing.assert_array_equal(text[first : first + depth[other]], expected)
    for order in ("breadth_first", "depth_first", "breadth_first_blocks", "insertion"):
        np.testing.assert_array_equal(np.sort(getattr(suffix_tree, order)(tree)), np.arange(parent.size))


def shaped(children: dict[int, dict[int, int]], nodes: int) -> Any:
    """A tree of which only the children are known."""
    slots, zeros = np.zeros((nodes, 5), np.uint32), np.zeros(nodes, np.uint32)
    for node, below in children.items():
        for slot, child in below.items():
            slots[node, slot] = child
    return suffix_tree.SuffixTree(codes("-"), slots, *[zeros] * 6, zeros.astype(np.uint8))


# Levels 0 | 1 2 | 3 4 5 6 | 7 … 14, numbered along them, in slots that are not next to each other.
BINARY = shaped({node: {0: 2 * node + 1, 3: 2 * node + 2} for node in range(7)}, 15)


@pytest.mark.parametrize(
    ("node_depth", "block", "expected"),
    [
        (1, 2, [0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        (0, 2, [0, 1, 2, 3, 7, 8, 4, 9, 10, 5, 11, 12, 6, 13, 14]),
        (1, 2**40, [0, 1, 3, 7, 8, 4, 9, 10, 2, 5, 11, 12, 6, 13, 14]),
        (0, 3, [0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]),
        (0, 1, list(range(15))),
        (2**40, 5, list(range(15))),
    ],
)
def test_blocks_by_hand(node_depth: int, block: int, expected: list[int]) -> None:
    assert suffix_tree.breadth_first_blocks(BINARY, node_depth, block).tolist() == expected


def test_the_other_orders_by_hand() -> None:
    assert suffix_tree.breadth_first(BINARY).tolist() == list(range(15))
    assert suffix_tree.depth_first(BINARY).tolist() == [0, 1, 3, 7, 8, 4, 9, 10, 2, 5, 11, 12, 6, 13, 14]
    slots = shaped({0: {4: 1, 2: 2, 0: 3}, 1: {4: 4}, 3: {1: 5}}, 6)
    assert suffix_tree.breadth_first(slots).tolist() == [0, 3, 2, 1, 5, 4]
    assert suffix_tree.depth_first(slots).tolist() == [0, 3, 5, 2, 1, 4]


@settings(deadline=None, max_examples=60)
@given(texts(), st.integers(0, 4), st.integers(1, 4))
def test_orders_are_permutations_from_the_root_down(text: Text, node_depth: int, block: int) -> None:
    tree = suffix_tree.build(text)
    blocks = suffix_tree.breadth_first_blocks(tree, node_depth, block)
    for order in (suffix_tree.breadth_first(tree), suffix_tree.depth_first(tree), blocks):
        new = np.argsort(order)
        assert sorted(order.tolist()) == sorted(new.tolist()) == list(range(tree.parent.size))
        assert order[0] == 0 and (new[tree.parent[1:]] < new[1:]).all()


def test_blocks_refuse_what_they_cannot_be() -> None:
    for node_depth, block in ((-1, 5), (16, 0)):
        with pytest.raises(ValueError, match=f"node_depth {node_depth} must .* block {block} at least 1"):
            suffix_tree.breadth_first_blocks(BINARY, node_depth, block)


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
    text = codes("ACGTACCA-ACGT-")
    assert_is_the_tree(_load().build(text), text)


def test_a_compiler_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.cpp"
    broken.write_text("#error no tree today\n")
    fresh = _load()
    monkeypatch.setattr(fresh, "_SOURCE", broken)
    with pytest.raises(CompilerError, match=r"(?s)does not compile broken\.cpp: .*no tree today"):
        fresh.build(codes("ACGT-"))


def test_memory_stays_in_proportion() -> None:
    program = f"""
import re, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {str(SOURCE.parent)!r})
from suffix_tree import build
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
text = np.random.default_rng(1).integers(0, 4, 2_000_000, dtype=np.uint8)
before = peak()
build(text)
print((peak() - before) / text.size)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 50 < float(done.stdout) < 110
