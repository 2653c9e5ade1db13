"""The index of a text, made on the device it is for and kept there."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from autotune.family import DeviceProgram, Room

from .nodes import Forks, Records, forks_of, shared_of, write_records
from .steps import WORD, Steps
from .suffixes import Suffixes, suffixes_of

__all__ = ["DeviceIndex", "Wanted", "build"]

_RECORD, _PAIR = 16, 8  # bytes
_READ_BEHIND = 16  # prefixes.hpp: word_at

Progress = Callable[[str, float], None]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which arrays of family.yaml are made: of the ``tree`` nodes, children and tails, the first two by turns where
    they are ``merged``; ``ranges`` of its leaves; ``leaves``; ``tables`` by name, each of words of so many letters."""

    tree: bool = True
    merged: bool = False
    ranges: bool = False
    leaves: bool = False
    tables: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class DeviceIndex:
    """``rooms`` hold the arrays by their names in family.yaml, the reference one byte a character; where nodes and
    children are merged, both are in ``nodes``."""

    def __init__(self, kept: ExitStack, rooms: dict[str, Room], suffixes: Suffixes, nodes: int) -> None:
        self._kept = kept
        self.rooms, self.nodes = rooms, nodes
        self.length, self.letters = suffixes.length, suffixes.letters

    def close(self) -> None:
        """Free it all. Safe to call twice."""
        self._kept.close()


def build(program: DeviceProgram, text: NDArray[np.uint8], wanted: Wanted, progress: Progress) -> DeviceIndex:
    """The index of ``text``, uint8 codes with a separator at the end: the same arrays as suffix_tree.build and
    leaf_arrays make. Raises MemoryError where the device has too little; then nothing is left there."""
    with ExitStack() as kept:
        with ExitStack() as made:
            most = max([text.size, *(_entries(letters) for letters in wanted.tables.values())])
            steps = Steps(program, made, most)
            # With room behind it for what is read at once.
            rooms = {"reference": kept.enter_context(program.room(text.size + _READ_BEHIND, text))}
            progress("suffix array", 0.0)
            suffixes = suffixes_of(steps, made, rooms["reference"], text.size)
            nodes = 0
            if wanted.tree:
                forks = _forks(steps, made, suffixes, progress)
                nodes = forks.nodes
                rooms |= _records(steps, kept, suffixes, forks, wanted)
            rooms |= _words(steps, kept, suffixes, wanted)
            program.synchronize()
        progress("done", 1.0)
        return DeviceIndex(kept.pop_all(), rooms, suffixes, nodes)


def _forks(steps: Steps, made: ExitStack, suffixes: Suffixes, progress: Progress) -> Forks:
    progress("common prefixes", 0.4)
    shared = shared_of(steps, made, suffixes)
    progress("nodes", 0.5)
    forks = forks_of(steps, made, suffixes, shared)
    progress("suffix links", 0.7)
    return forks


def _records(
    steps: Steps, kept: ExitStack, suffixes: Suffixes, forks: Forks, wanted: Wanted
) -> dict[str, Room]:
    count, members = forks.nodes, 2 if wanted.merged else 1
    rooms = {"nodes": steps.room(kept, count * _RECORD * members), "tails": steps.room(kept, count * _RECORD)}
    children = rooms["nodes"] if wanted.merged else steps.room(kept, count * _RECORD)
    if not wanted.merged:
        rooms["children"] = children
    if wanted.ranges:
        rooms["ranges"] = steps.room(kept, count * _PAIR)
    records = Records(
        nodes=rooms["nodes"].address,
        children=children.address + (_RECORD if wanted.merged else 0),
        tails=rooms["tails"].address,
        ranges=rooms["ranges"].address if wanted.ranges else 0,
        stride=members,
    )
    write_records(steps, suffixes, forks, records)
    return rooms


def _words(steps: Steps, kept: ExitStack, suffixes: Suffixes, wanted: Wanted) -> dict[str, Room]:
    rooms = {}
    if wanted.leaves:
        rooms["leaves"] = steps.room(kept, suffixes.letters * _PAIR)
        steps.launch(
            "write_order", suffixes.letters, suffixes.text, suffixes.order, rooms["leaves"], suffixes.letters
        )
    for name, letters in wanted.tables.items():
        entries = _entries(letters)
        rooms[name] = table = steps.room(kept, entries * WORD)
        table.fill(0)
        steps.launch("count_words", suffixes.length, suffixes.text, table, suffixes.length, letters)
        steps.scan(table, entries)
    return rooms


def _entries(letters: int) -> int:
    """One for each word, and one."""
    return (1 << 2 * letters) + 1
