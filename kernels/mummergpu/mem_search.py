"""Maximal exact matches without a tree and without the kernels: by equal words of the least length, in numpy."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydivsufsort import divsufsort  # type: ignore[import-untyped]

from .fastx import OTHER
from .mums import Mems

__all__ = ["count_mems", "find_mems"]

Codes = NDArray[np.uint8]
Positions = NDArray[np.int64]

# So many bases of reads at a time: repeats give many words for each.
_BASES_TO_COUNT = 1 << 22
_BASES_TO_FIND = 1 << 17

# Up to so many letters a word is its own number, and a longer one has a polynomial of them for a number.
_EXACT_LETTERS = 32
_HASH_BASE = 0x9E3779B97F4A7C15


def count_mems(reference: Codes, queries: Codes, offsets: Positions, minimum: int) -> int:
    """How many matches of at least ``minimum`` bases there are. A match of n bases has n - minimum + 1 pairs of
    equal words of ``minimum`` letters, and one pair less of words that are a letter longer."""
    found = 0
    for length, sign in ((minimum, 1), (minimum + 1, -1)):
        words, times = np.unique(_words(reference, length)[1], return_counts=True)
        for block in _blocks(queries, offsets, _BASES_TO_COUNT):
            found += sign * int(times[_look_up(words, _words(block.text, length)[1])[0]].sum())
    return found


def find_mems(reference: Codes, queries: Codes, offsets: Positions, minimum: int) -> Mems:
    """The matches: by read, start in the read, and what follows in the reference (A, C, G, T, a separator; those
    that are equal up to a separator by position)."""
    positions, words = _words(reference, minimum)
    order = np.lexsort((_ranks(reference)[positions], words))
    positions = positions[order]
    words, firsts, counts = np.unique(words[order], return_index=True, return_counts=True)
    before = np.concatenate(([np.uint8(OTHER)], reference[:-1]))
    parts = []
    for block in _blocks(queries, offsets, _BASES_TO_FIND):
        places, wanted = _words(block.text, minimum)
        word, is_known = _look_up(words, wanted)
        places, first, times = places[is_known], firsts[word], counts[word]
        inside = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        place, position = np.repeat(places, times), positions[np.repeat(first, times) + inside]
        preceding = block.text[place - 1]  # the text begins with a separator
        is_maximal = (preceding == OTHER) | (preceding != before[position])
        place, position = place[is_maximal], position[is_maximal]
        length = _common(block.text, place, reference, position)
        long = length >= minimum  # two words may have one number
        place, position, length = place[long], position[long], length[long]
        read = np.searchsorted(block.starts, place, side="right") - 1
        parts.append((block.first + read, position, place - block.starts[read], length))
    reads, found, starts, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Mems(reads=reads, positions=found, starts=starts, lengths=lengths)


@dataclass(frozen=True, eq=False)
class _Block:
    """Reads from number ``first`` on with a separator before each and one at the end; they begin at ``starts``."""

    first: int
    text: Codes
    starts: Positions


def _blocks(queries: Codes, offsets: Positions, bases: int) -> Iterator[_Block]:
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + bases, side="right")) - 1)
        bounds = offsets[first : last + 1] - offsets[first]
        text = np.insert(queries[offsets[first] : offsets[last]], bounds, np.uint8(OTHER))
        yield _Block(first, text, bounds[:-1] + 1 + np.arange(last - first))
        first = last


def _words(text: Codes, length: int) -> tuple[Positions, NDArray[np.uint64]]:
    """Positions of all words of ``length`` letters, and their numbers."""
    if text.size < length:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    separators = np.concatenate(([0], np.cumsum(text == OTHER)))
    positions = np.flatnonzero(separators[length:] == separators[:-length])
    base = 4 if length <= _EXACT_LETTERS else _HASH_BASE
    letters = text.astype(np.uint64)
    words, done = letters, 1
    for digit in f"{length:b}"[1:]:  # twice as long, and one more where the binary digit is 1
        room = text.size - 2 * done + 1
        words = words[:room] * np.uint64(pow(base, done, 1 << 64)) + words[done : done + room]
        done *= 2
        if digit == "1":
            words = words[: room - 1] * np.uint64(base) + letters[done : done + room - 1]
            done += 1
    return positions, words[positions]


def _look_up(words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> tuple[Positions, NDArray[np.bool_]]:
    """Where in ``words``, which ascend, those of ``wanted`` are that are there, and which these are."""
    if not words.size:
        return np.empty(0, np.int64), np.zeros(wanted.size, np.bool_)
    order = np.argsort(wanted)  # in order, the searches stay near each other
    place = np.empty(wanted.size, np.int64)
    place[order] = np.minimum(np.searchsorted(words, wanted[order]), words.size - 1)
    is_known = words[place] == wanted
    return place[is_known], is_known


def _common(a: Codes, a_places: Positions, b: Codes, b_places: Positions) -> Positions:
    """How many letters are equal from each pair of places on; both texts end with a separator."""
    lengths = np.zeros(a_places.size, np.int64)
    left = np.arange(a_places.size)
    while left.size:
        letters = a[a_places[left] + lengths[left]]
        left = left[(letters == b[b_places[left] + lengths[left]]) & (letters != OTHER)]
        lengths[left] += 1
    return lengths


def _ranks(reference: Codes) -> Positions:
    """The place of every position's suffix in the order of the tree."""
    suffixes = divsufsort(np.require(reference, requirements=["C", "W"])).astype(np.int64)
    suffixes = suffixes[reference[suffixes] != OTHER]
    separators = np.flatnonzero(reference == OTHER)
    letters = separators[np.searchsorted(separators, suffixes)] - suffixes
    # What follows a separator has no say: among suffixes that are equal up to it, the position decides.
    is_alike = letters[1:] == letters[:-1]
    alike = np.flatnonzero(is_alike)
    common = _common(reference, suffixes[alike], reference, suffixes[alike + 1])
    is_alike[alike] = common == letters[alike]
    groups = np.concatenate(([0], np.cumsum(~is_alike)))
    ranks = np.zeros(reference.size, np.int64)
    ranks[suffixes[np.lexsort((suffixes, groups))]] = np.arange(suffixes.size)
    return ranks
