"""What the index is made with on a device: memory, running sums, sorts, and leasts of ranges (index.hpp)."""

import ctypes
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from autotune.family import DeviceProgram, Room

__all__ = ["KERNELS", "KERNELS_OF_WORDS", "KEY", "SIZES", "SOURCE", "WORD", "Leasts", "Pairs", "Steps"]

SOURCE = Path(__file__).with_name("index.hpp")
KERNELS_OF_WORDS = (
    "scan_tiles", "scan_join", "last_of", "sort_count", "sort_move",
    "mark_separators", "first_keys", "first_heads", "first_ranks", "gather_left",
    "next_keys", "next_heads", "next_ranks",
    "write_order", "count_words",
)  # fmt: skip
KERNELS = (
    *KERNELS_OF_WORDS,
    "share", "share_longer", "shared_by_rank", "least_of_runs",
    "find_forks", "find_firsts", "find_seconds", "count_leaves", "count_forks", "number_forks",
    "clear_children", "write_leaves", "write_forks",
)  # fmt: skip
"""All, and those that an index without a tree takes: half the time to compile."""
SIZES = MappingProxyType({"block_size": 256, "items": 12})
"""Threads of a block; elements of each in a tile of a scan or a sort."""

WORD, KEY = 4, 8  # bytes
_DIGIT_BITS = 8  # radix_sort.hpp: digit_bits
_DIGITS = 1 << _DIGIT_BITS
_RUN = 32  # nearest.hpp: run
_MOST_LEVELS = 7  # nearest.hpp: most_levels


class Leasts(ctypes.Structure):
    """nearest.hpp: Leasts."""

    _fields_ = (
        ("level", ctypes.c_uint64 * _MOST_LEVELS),
        ("size", ctypes.c_uint32 * _MOST_LEVELS),
        ("levels", ctypes.c_uint32),
    )


@dataclass
class Pairs:
    """Keys with their values, and as much room for them to go to."""

    keys: Room
    values: Room
    spare_keys: Room
    spare_values: Room

    def swap(self) -> None:
        """What was moved is where it was moved to."""
        self.keys, self.spare_keys = self.spare_keys, self.keys
        self.values, self.spare_values = self.spare_values, self.values


class Steps:
    """On arrays of at most ``most`` words; ``owner`` frees what is needed meanwhile. Every method may raise
    LaunchError, and MemoryError where it takes room."""

    def __init__(self, program: DeviceProgram, owner: ExitStack, most: int) -> None:
        self.program, self.launch = program, program.launch
        self._block = program.constants["block_size"]
        self._tile = self._block * program.constants["items"]
        self.one = self.room(owner, WORD)
        # What the tiles of a scan come to, of a scan of those, and so on.
        self._tiles: list[Room] = []
        count = max(most, self._digit_counts(most))
        while not self._tiles or count > 1:
            count = -(-count // self._tile)
            self._tiles.append(self.room(owner, count * WORD))

    def room(self, owner: ExitStack, nbytes: int) -> Room:
        """Memory that is freed with ``owner``."""
        return owner.enter_context(self.program.room(nbytes))

    def launch_blocks(self, kernel: str, blocks: int, *arguments: Room | int | bytes | None) -> None:
        """So many blocks."""
        self.launch(kernel, blocks * self._block, *arguments)

    def fetched(self) -> int:
        """What is in ``one``."""
        return int(self.one.fetch(np.uint32, 1)[0])

    # ---- scans

    def scanned(self, values: Room, count: int) -> int:
        """Running sums in their place; what all come to."""
        self.scan(values, count)
        self.launch("last_of", 1, values, count, self.one)
        return self.fetched()

    def scan(self, values: Room, count: int, *, is_maximum: bool = False, level: int = 0) -> None:
        """Running sums or maxima in their place."""
        tiles = -(-count // self._tile)
        of_tiles, how = self._tiles[level], int(is_maximum)
        self.launch_blocks("scan_tiles", tiles, values, of_tiles, count, how)
        if tiles > 1:
            self.scan(of_tiles, tiles, is_maximum=is_maximum, level=level + 1)
            self.launch_blocks("scan_join", tiles, values, of_tiles, count, how)

    # ---- sorts

    def counts(self, owner: ExitStack, count: int) -> Room:
        """What sorting so many pairs takes beside them."""
        return self.room(owner, self._digit_counts(count) * WORD)

    def sort(self, pairs: Pairs, counts: Room, count: int, bits: Iterable[range]) -> None:
        """By these bits of the keys, the lowest first; equal ones stay as they are."""
        tiles = -(-count // self._tile)
        for shift in (shift for run in bits for shift in run[::_DIGIT_BITS]):
            self.launch_blocks("sort_count", tiles, pairs.keys, counts, count, shift)
            self.scan(counts, tiles * _DIGITS)
            self.launch_blocks(
                "sort_move", tiles, pairs.keys, pairs.values, counts, pairs.spare_keys, pairs.spare_values, count,
                shift,
            )  # fmt: skip
            pairs.swap()

    def _digit_counts(self, count: int) -> int:
        return -(-count // self._tile) * _DIGITS

    # ---- leasts

    def leasts(self, owner: ExitStack, values: Room, count: int) -> Leasts:
        """``values`` with the least of each run, of each run of those, and so on."""
        leasts, level = Leasts(), 0
        while True:
            leasts.level[level], leasts.size[level] = values.address, count
            level += 1
            if count <= _RUN:
                leasts.levels = level
                return leasts
            runs = -(-count // _RUN)
            above = self.room(owner, runs * WORD)
            self.launch("least_of_runs", runs, values, above, count)
            values, count = above, runs
