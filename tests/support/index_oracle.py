"""Compares the index made on a device with the one that the host makes."""

from typing import Any

import numpy as np
from mummergpu_helpers import _load
from suffix_tree_oracle import Text, suffix_tree

from autotune.compile import Cache, default_root
from autotune.device import Backend, DeviceProgram

INDEX, BUILDER, STEPS = (_load(name) for name in ("index", "index.builder", "index.steps"))
TABLES = {"coarse_table": 2, "fine_table": 4}


def program_on(backend: Backend, sizes: dict[str, int]) -> DeviceProgram:
    return DeviceProgram(backend, Cache(default_root()), STEPS.SOURCE, STEPS.KERNELS, sizes)


def assert_is_the_index(program: DeviceProgram, text: Text, merged: bool = False) -> None:
    """Every word of every array against the host's."""
    tree = suffix_tree.build(text)
    wanted = BUILDER.Wanted(merged=merged, ranges=True, leaves=True, tables=TABLES)
    made = BUILDER.build(program, tree.text, wanted, lambda *_: None)
    assert made.nodes == tree.nodes.size and made.letters == np.count_nonzero(text != 4)
    rooms = {name: room.fetch(np.uint32, room.nbytes // 4) for name, room in made.rooms.items()}
    if merged:
        both = rooms.pop("nodes").reshape(made.nodes, 2, 4)
        rooms["nodes"], rooms["children"] = both[:, 0].reshape(-1), both[:, 1].reshape(-1)
    expected = {name: getattr(tree, name).view(np.uint32) for name in ("nodes", "children", "tails")}
    expected |= {name: array.view(np.uint32) for name, array in suffix_tree.leaf_arrays(tree).items()}
    expected |= {name: words_before(tree.text, letters) for name, letters in TABLES.items()}
    for name, words in expected.items():
        np.testing.assert_array_equal(rooms[name], words, err_msg=name)
    made.close()


def words_before(text: Text, letters: int) -> Any:
    """How many suffixes come before each word; what ends within one counts as if T followed."""
    words, ended = np.zeros(text.size, np.int64), np.zeros(text.size, bool)
    padded = np.append(text, np.full(letters, 4, np.uint8))
    for behind in range(letters):
        letter = padded[behind : behind + text.size]
        ended |= letter == 4
        words = 4 * words + np.where(ended, 3, letter)
    counts = np.bincount(words[text != 4], minlength=4**letters)
    return np.append(0, np.cumsum(counts)).astype(np.uint32)


def repeats(length: int, unit: int, seed: int = 3) -> Text:
    """Random letters with copies of some of them, a few changed, and a separator at the end."""
    generator = np.random.default_rng(seed)
    text = generator.integers(0, 4, length).astype(np.uint8)
    piece = text[:unit].copy()
    for start in generator.integers(0, length - unit, max(2, length // (4 * unit))):
        copied = piece.copy()
        changed = generator.random(unit) < generator.choice([0, 0.001, 0.02])
        copied[changed] = generator.integers(0, 4, int(changed.sum()))
        text[start : start + unit] = copied
    return np.append(text, np.uint8(4))
