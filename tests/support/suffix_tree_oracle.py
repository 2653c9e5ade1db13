"""What a suffix tree must be, by the strings of its text: brute force for test_suffix_tree."""

import importlib.util
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from mummergpu_helpers import FOLDER, PACKAGE
from numpy.typing import NDArray

SOURCE = FOLDER / "suffix_tree.py"


def load_module() -> ModuleType:
    # A family folder is not an installed package; one is made of it, so that its modules find each other.
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.fresh_suffix_tree", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


suffix_tree = load_module()
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
    spelled, is_chained = [""] * tree.nodes.size, tree.nodes["edge_length"] == 0
    for node in np.lexsort((is_chained, tree.tails["depth"]))[1:]:
        _, start, length, parent = tree.nodes[node].tolist()
        spelled[node] = spelled[parent] + "".join("ACGT-"[code] for code in tree.text[start : start + length])
    return spelled


def names(tree: Any) -> list[int | str]:
    """The position of a leaf, what an internal node spells."""
    pairs = zip(spelled_nodes(tree), tree.tails["leaf_position"].tolist(), strict=True)
    return [spelled if position == suffix_tree.NO_POSITION else position for spelled, position in pairs]


def slots_of(tree: Any) -> NDArray[np.uint32]:
    """(nodes, 5): children by the first letter of the edge, then what ends."""
    letters: list[Any] = [tree.children[letter] for letter in "acgt"]
    return np.stack([*letters, tree.tails["end_child"]], axis=1)


def assert_is_the_tree(tree: Any, text: Text) -> None:
    """Every field of ``tree`` against the strings of ``text``, which ends with a separator."""
    found, spelled, slots = suffixes(text), spelled_nodes(tree), slots_of(tree)
    np.testing.assert_array_equal(tree.text, text)
    assert tree.tails["depth"].tolist() == [len(string) for string in spelled]
    node_of = {name: node for node, name in enumerate(names(tree))}
    assert len(node_of) == len(spelled) and node_of[""] == 0
    assert node_of.keys() == found.keys() | internal_strings(found)
    for name, node in node_of.items():
        string, position = (name, None) if isinstance(name, str) else (found[name], name)
        assert spelled[node] == string
        link, start, length, parent = tree.nodes[node].tolist()
        # Read where its edge says it is, this is the first suffix through the node.
        first = min(place for place, suffix in found.items() if suffix.startswith(string))
        if node:
            assert start + length - len(string) == (first if position is None else position)
            above = (string[:end] for end in range(len(string) + (position is not None)))
            assert parent == [node_of[prefix] for prefix in above if prefix in node_of][-1]
        else:
            assert (start, length, parent) == (0, 0, 0)
        if position is None:
            assert link == node_of[string[1:]]
            assert tree.tails["preceding"][node] == 4
            below = [child for child in range(1, len(spelled)) if tree.nodes["parent"][child] == node]
            ending = [child for child in below if spelled[child] == string]
            letters = {"ACGT".index(spelled[c][len(string)]): c for c in below if c not in ending}
            assert slots[node, :4].tolist() == [letters.get(letter, 0) for letter in range(4)]
            chain = [node, *sorted(ending, key=lambda leaf: int(tree.tails["leaf_position"][leaf]))]
            assert slots[chain, 4].tolist() == [*chain[1:], 0]
            assert node == 0 or len(below) >= 2
        else:
            # Never to a leaf that spells the same as its parent.
            following = found.get(position + 1, "")
            assert link == node_of.get(following, node_of.get(position + 1, 0))
            assert tree.tails["preceding"][node] == (text[position - 1] if position else 4)
            assert not slots[node, : 5 if length else 4].any()


def texts() -> st.SearchStrategy[Text]:
    """Up to 48 characters and a separator: of 1 to 4 letters, with separators inside or none, and repeats."""
    alphabets = st.sampled_from(["A", "T", "AC", "ACG", "ACGT", "A-", "AC-", "ACGT-"])
    pieces = alphabets.flatmap(lambda alphabet: st.text(alphabet, min_size=1, max_size=12))
    repeats = st.builds(lambda piece, times, end: piece * times + end, pieces, st.integers(1, 3), pieces)
    return (pieces | repeats).filter(lambda text: set(text) != {"-"}).map(lambda text: codes(text + "-"))
