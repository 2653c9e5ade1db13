"""The suffix tree of a text made on the device it is for (index.cu), and kept there."""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from autotune.family import DeviceProgram, Room

__all__ = ["KERNELS", "SIZES", "SOURCE", "DeviceTree", "build"]

SOURCE = Path(__file__).with_name("index.cu")
KERNELS = (
    "scan_tiles", "scan_join", "last_of", "sort_count", "sort_move",
    "mark_separators", "first_keys", "first_heads", "first_ranks", "gather_left",
    "next_keys", "next_heads", "next_ranks",
    "share", "share_longer", "shared_by_rank", "least_of_runs",
    "find_forks", "find_firsts", "find_seconds", "count_leaves", "count_forks", "number_forks",
    "clear_children", "write_leaves", "write_forks",
)  # fmt: skip
SIZES: Mapping[str, int] = MappingProxyType({"block_size": 256, "items": 12})
"""Threads of a block; elements of each in a tile of a scan or a sort."""

_WORD, _KEY, _RECORD, _PAIR = 4, 8, 16, 8  # bytes
_KEY_LETTERS = 29  # suffixes.cuh: key_letters
_DIGIT_BITS = 8  # radix_sort.cuh: digit_bits
_DIGITS = 1 << _DIGIT_BITS
_RUN = 32  # nearest.cuh: run
_MOST_LEVELS = 7  # nearest.cuh: most_levels
_READ_BEHIND = 16  # prefixes.cuh: word_at

Progress = Callable[[str, float], None]


class _Leasts(ctypes.Structure):
    """nearest.cuh: Leasts."""

    _fields_ = (
        ("level", ctypes.c_uint64 * _MOST_LEVELS),
        ("size", ctypes.c_uint32 * _MOST_LEVELS),
        ("levels", ctypes.c_uint32),
    )


class _Tree(ctypes.Structure):
    """nodes.cuh: Tree."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("text", "separators", "suffixes", "ranks")),
        ("shared", _Leasts),
        ("positions", _Leasts),
        *((name, ctypes.c_uint64) for name in ("forks", "firsts", "numbers", "leaves")),
        *((name, ctypes.c_uint32) for name in ("length", "letters", "separator_count")),
    )


class _Records(ctypes.Structure):
    """nodes.cuh: Records."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("nodes", "children", "tails", "leaves", "ranges", "stride")
    )


class DeviceTree:
    """What ``build`` leaves on the device. ``nodes`` and ``children`` are one Room where they are interleaved, a node
    and its children by turns; ``leaves`` and ``ranges`` are None where they were not asked for."""

    def __init__(self, rooms: ExitStack, text: Room, length: int, letters: int, nodes: int) -> None:
        self._rooms = rooms
        self.text, self.length, self.letters, self.node_count = text, length, letters, nodes
        self.nodes: Room
        self.children: Room
        self.tails: Room
        self.leaves: Room | None = None
        self.ranges: Room | None = None

    def close(self) -> None:
        """Free it all. Safe to call twice."""
        self._rooms.close()


def build(
    program: DeviceProgram, text: NDArray[np.uint8], progress: Progress, *, merged: bool, ranges: bool
) -> DeviceTree:
    """The tree of ``text``, uint8 codes with a separator at the end, as suffix_tree.build makes it: ``merged`` has
    nodes and children by turns, ``ranges`` adds the leaves in their order. Raises LaunchError where the device's memory
    does not suffice; then nothing is left there."""
    with ExitStack() as kept:
        tree = _Building(program, kept, text).tree(progress, merged=merged, ranges=ranges)
        tree._rooms = kept.pop_all()  # noqa: SLF001  # from now on its own
        return tree


class _Building:
    """The kernels of index.cu in their order. Rooms that a step needs alone are freed at its end."""

    def __init__(self, program: DeviceProgram, kept: ExitStack, text: NDArray[np.uint8]) -> None:
        self._program, self._kept, self._launch = program, kept, program.launch
        self._length = text.size
        padded = np.zeros(-(-(text.size + _READ_BEHIND) // _READ_BEHIND) * _READ_BEHIND, np.uint8)
        padded[: text.size] = text
        self._text = kept.enter_context(program.room(padded.size, padded))
        self._one = self._room(kept, _WORD)
        self._block = program.constants["block_size"]
        self._tile = self._block * program.constants["items"]

    def tree(self, progress: Progress, *, merged: bool, ranges: bool) -> DeviceTree:
        with ExitStack() as made:
            self._tiles = [*self._rooms_of_tiles(made)]
            progress("suffix array", 0.0)
            self._number_letters(made)
            self._order(made)
            progress("common prefixes", 0.4)
            self._share(made)
            progress("nodes", 0.6)
            tree = self._nodes(made)
            progress("suffix links", 0.8)
            self._records(tree, merged=merged, ranges=ranges)
            self._program.synchronize()
        progress("done", 1.0)
        return tree

    # ---- steps

    def _number_letters(self, made: ExitStack) -> None:
        """Room for ``ranks``, which have the separators up to each position."""
        self._ranks = self._room(made, self._length * _WORD)
        self._launch("mark_separators", self._length, self._text, self._ranks, self._length)
        self._separator_count = self._scanned(self._ranks, self._length)
        self._letters = self._length - self._separator_count
        self._separators = self._room(made, self._separator_count * _WORD)

    def _order(self, made: ExitStack) -> None:
        """``suffixes`` and ``ranks``."""
        self._suffixes = self._room(made, self._letters * _WORD)
        with ExitStack() as rounds:
            left, places, values = self._first_order(rounds)
            if not left:
                return
            words = [self._room(rounds, left * _WORD) for _ in range(4)]
            keys = [self._room(rounds, left * _KEY) for _ in range(2)]
            counts = self._room(rounds, self._count_bytes(left))
            spare_places, heads, lefts, spare_values = words
            pairs = _Pairs(keys[0], values, keys[1], spare_values)
            depth = _KEY_LETTERS
            while left:
                left = self._double(pairs, counts, places, spare_places, heads, lefts, left, depth)
                places, spare_places = spare_places, places
                depth *= 2

    def _first_order(self, rounds: ExitStack) -> tuple[int, Room, Room]:
        """By the first letters; how many suffixes are equal to others, their places and themselves."""
        count = self._letters
        with ExitStack() as step:
            keys, spare_keys = (self._room(step, count * _KEY) for _ in range(2))
            spare_values, counts = self._room(step, count * _WORD), self._room(step, self._count_bytes(count))
            pairs = _Pairs(keys, self._suffixes, spare_keys, spare_values)
            self._launch(
                "first_keys", self._length, self._text, self._ranks, pairs.keys, pairs.values, self._separators,
                self._length, count,
            )  # fmt: skip
            self._sort(pairs, counts, count, range(0, 8 * _KEY, _DIGIT_BITS))
            assert pairs.values is self._suffixes, "an even number of passes"
            heads, lefts = pairs.spare_keys, pairs.spare_values
            self._launch("first_heads", count, pairs.keys, heads, count)
            self._scan(heads, count, is_maximum=True)
            self._launch("first_ranks", count, heads, self._suffixes, self._ranks, lefts, count)
            left = self._scanned(lefts, count)
            places, values = (self._room(rounds, left * _WORD) for _ in range(2))
            self._launch("gather_left", count, lefts, None, self._suffixes, places, values, count)
        return left, places, values

    def _double(
        self, pairs: "_Pairs", counts: Room, places: Room, left_places: Room, heads: Room, lefts: Room, count: int,
        depth: int,
    ) -> int:  # fmt: skip
        """One round on ``count`` suffixes at their ``places``; how many are left."""
        bits = (self._length - 1).bit_length()
        shifts = (*range(0, bits, _DIGIT_BITS), *range(32, 32 + bits, _DIGIT_BITS))
        self._launch("next_keys", count, pairs.values, self._ranks, pairs.keys, count, depth)
        self._sort(pairs, counts, count, shifts)
        self._launch(
            "next_heads", count, pairs.keys, pairs.values, places, self._suffixes, heads, lefts, count
        )
        self._scan(heads, count, is_maximum=True)
        self._launch("next_ranks", count, heads, pairs.values, self._ranks, count)
        left = self._scanned(lefts, count)
        self._launch(
            "gather_left", count, lefts, places, pairs.values, left_places, pairs.spare_values, count
        )
        pairs.values, pairs.spare_values = pairs.spare_values, pairs.values
        return left

    def _share(self, made: ExitStack) -> None:
        """``shared``, with one element behind the last rank."""
        self._shared = self._room(made, (self._letters + 1) * _WORD)
        with ExitStack() as step:
            reach = self._room(step, self._length * _WORD)
            self._one.fill(0)
            known = self._text, self._ranks, self._suffixes, reach
            longer = self._shared  # not known yet
            self._launch("share", self._length, *known, longer, self._one, self._length)
            if count := self._fetched():
                self._launch("share_longer", count * self._block, *known, longer, self._length)
            self._scan(reach, self._length, is_maximum=True)
            self._launch(
                "shared_by_rank", self._letters + 1, reach, self._suffixes, self._shared, self._letters
            )

    def _nodes(self, made: ExitStack) -> DeviceTree:
        """``forks``, ``firsts``, ``numbers`` of nodes and of leaves."""
        count = self._letters
        self._shared_leasts = self._leasts(made, self._shared, count + 1)
        self._position_leasts = self._leasts(made, self._suffixes, count)
        self._forks, self._firsts, self._numbers = (self._room(made, count * _WORD) for _ in range(3))
        shared, positions = bytes(self._shared_leasts), bytes(self._position_leasts)
        self._launch("find_forks", count, shared, self._forks, count)
        self._launch("find_firsts", count, shared, positions, self._forks, self._firsts, self._numbers, count)
        self._launch(
            "find_seconds", count, shared, self._suffixes, self._forks, self._firsts, self._numbers, count
        )
        self._leaves = self._room(made, self._length * _WORD)
        self._launch("count_leaves", self._length, self._text, self._leaves, self._length)
        self._launch("count_forks", count, self._forks, self._numbers, self._leaves, count)
        nodes = self._scanned(self._leaves, self._length) + 1
        self._launch("number_forks", count, self._forks, self._numbers, self._leaves, count)
        return DeviceTree(self._kept, self._text, self._length, count, nodes)

    def _records(self, tree: DeviceTree, *, merged: bool, ranges: bool) -> None:
        count, kept = tree.node_count, self._kept
        tree.nodes = self._room(kept, count * _RECORD * (2 if merged else 1))
        tree.children = tree.nodes if merged else self._room(kept, count * _RECORD)
        tree.tails = self._room(kept, count * _RECORD)
        if ranges:
            tree.leaves, tree.ranges = self._room(kept, tree.letters * _PAIR), self._room(kept, count * _PAIR)
        records = bytes(
            _Records(
                nodes=tree.nodes.address,
                children=tree.children.address + (_RECORD if merged else 0),
                tails=tree.tails.address,
                leaves=tree.leaves.address if tree.leaves else 0,
                ranges=tree.ranges.address if tree.ranges else 0,
                stride=2 if merged else 1,
            )
        )
        known = bytes(
            _Tree(
                text=self._text.address,
                separators=self._separators.address,
                suffixes=self._suffixes.address,
                ranks=self._ranks.address,
                shared=self._shared_leasts,
                positions=self._position_leasts,
                forks=self._forks.address,
                firsts=self._firsts.address,
                numbers=self._numbers.address,
                leaves=self._leaves.address,
                length=self._length,
                letters=self._letters,
                separator_count=self._separator_count,
            )
        )
        self._launch("clear_children", count, records, count)
        self._launch("write_leaves", self._length, known, records)
        self._launch("write_forks", self._letters, known, records)

    # ---- what steps are made of

    def _room(self, owner: ExitStack, nbytes: int) -> Room:
        return owner.enter_context(self._program.room(nbytes))

    def _count_bytes(self, count: int) -> int:
        """Of the digits of a sort's tiles."""
        return -(-count // self._tile) * _DIGITS * _WORD

    def _rooms_of_tiles(self, owner: ExitStack) -> Iterator[Room]:
        """What the tiles of a scan come to, of a scan of those, and so on."""
        count = max(self._length, -(-self._length // self._tile) * _DIGITS)
        while True:
            count = -(-count // self._tile)
            yield self._room(owner, count * _WORD)
            if count == 1:
                return

    def _fetched(self) -> int:
        return int(self._one.fetched(np.uint32, 1)[0])

    def _scanned(self, values: Room, count: int) -> int:
        """Running sums in their place; what all come to."""
        self._scan(values, count)
        self._launch("last_of", 1, values, count, self._one)
        return self._fetched()

    def _scan(self, values: Room, count: int, *, is_maximum: bool = False, level: int = 0) -> None:
        """Running sums or maxima in their place."""
        tiles = -(-count // self._tile)
        of_tiles, how = self._tiles[level], int(is_maximum)
        self._launch("scan_tiles", tiles * self._block, values, of_tiles, count, how)
        if tiles > 1:
            self._scan(of_tiles, tiles, is_maximum=is_maximum, level=level + 1)
            self._launch("scan_join", tiles * self._block, values, of_tiles, count, how)

    def _sort(self, pairs: "_Pairs", counts: Room, count: int, shifts: Iterable[int]) -> None:
        """By the digits at these bits of the keys, the lowest first."""
        tiles = -(-count // self._tile)
        for shift in shifts:
            self._launch("sort_count", tiles * self._block, pairs.keys, counts, count, shift)
            self._scan(counts, tiles * _DIGITS)
            self._launch(
                "sort_move", tiles * self._block, pairs.keys, pairs.values, counts, pairs.spare_keys,
                pairs.spare_values, count, shift,
            )  # fmt: skip
            pairs.swap()

    def _leasts(self, owner: ExitStack, values: Room, count: int) -> _Leasts:
        """``values`` with the least of each run, of each run of those, and so on."""
        leasts, level = _Leasts(), 0
        while True:
            leasts.level[level], leasts.size[level] = values.address, count
            level += 1
            if count <= _RUN:
                leasts.levels = level
                return leasts
            runs = -(-count // _RUN)
            above = self._room(owner, runs * _WORD)
            self._launch("least_of_runs", runs, values, above, count)
            values, count = above, runs


@dataclass
class _Pairs:
    """Keys with their values, and as much room for them to go to."""

    keys: Room
    values: Room
    spare_keys: Room
    spare_values: Room

    def swap(self) -> None:
        self.keys, self.spare_keys = self.spare_keys, self.keys
        self.values, self.spare_values = self.spare_values, self.values
