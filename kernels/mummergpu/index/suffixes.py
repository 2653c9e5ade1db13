"""The order of a text's suffixes (suffixes.hpp), on the device."""

from contextlib import ExitStack
from dataclasses import dataclass

from autotune.family import Room

from .steps import KEY, WORD, Pairs, Steps

__all__ = ["Suffixes", "suffixes_of"]

_KEY_LETTERS = 29  # suffixes.hpp: key_letters


@dataclass(frozen=True)
class Suffixes:
    """``order`` are the suffixes' positions, ``ranks`` their places in it by position, and behind them those of the
    ``separators``, by their positions."""

    text: Room
    length: int
    letters: int
    separators: Room
    order: Room
    ranks: Room

    @property
    def separator_count(self) -> int:
        return self.length - self.letters


def suffixes_of(steps: Steps, owner: ExitStack, text: Room, length: int) -> Suffixes:
    """Of ``text``, codes that end with a separator."""
    ranks = steps.room(owner, length * WORD)
    steps.launch("mark_separators", length, text, ranks, length)
    count = steps.scanned(ranks, length)
    separators, order = steps.room(owner, count * WORD), steps.room(owner, (length - count) * WORD)
    suffixes = Suffixes(text, length, length - count, separators, order, ranks)
    with ExitStack() as rounds:
        left, places, values = _first_order(steps, rounds, suffixes)
        if left:
            _double(steps, rounds, suffixes, left, places, values)
    return suffixes


def _first_order(steps: Steps, rounds: ExitStack, suffixes: Suffixes) -> tuple[int, Room, Room]:
    """By the first letters; how many suffixes are equal to others, their places and themselves."""
    length, count = suffixes.length, suffixes.letters
    with ExitStack() as step:
        keys, spare_keys = (steps.room(step, count * KEY) for _ in range(2))
        pairs = Pairs(keys, suffixes.order, spare_keys, steps.room(step, count * WORD))
        steps.launch(
            "first_keys", length, suffixes.text, suffixes.ranks, pairs.keys, pairs.values, suffixes.separators, length,
            count,
        )  # fmt: skip
        steps.sort(pairs, steps.counts(step, count), count, [range(8 * KEY)])
        assert pairs.values is suffixes.order, "an even number of passes"
        heads, lefts = pairs.spare_keys, pairs.spare_values
        steps.launch("first_heads", count, pairs.keys, heads, count)
        steps.scan(heads, count, is_maximum=True)
        steps.launch("first_ranks", count, heads, suffixes.order, suffixes.ranks, lefts, count)
        left = steps.scanned(lefts, count)
        places, values = (steps.room(rounds, left * WORD) for _ in range(2))
        steps.launch("gather_left", count, lefts, None, suffixes.order, places, values, count)
    return left, places, values


def _double(
    steps: Steps, rounds: ExitStack, suffixes: Suffixes, left: int, places: Room, values: Room
) -> None:
    """The ``left`` suffixes in ``values``, which belong to ``places``, by twice as many letters in each round."""
    spare_places, heads, lefts, spare_values = (steps.room(rounds, left * WORD) for _ in range(4))
    keys, spare_keys = (steps.room(rounds, left * KEY) for _ in range(2))
    pairs, counts = Pairs(keys, values, spare_keys, spare_values), steps.counts(rounds, left)
    bits = (suffixes.length - 1).bit_length()
    depth = _KEY_LETTERS
    while left:
        steps.launch("next_keys", left, pairs.values, suffixes.ranks, pairs.keys, left, depth)
        steps.sort(pairs, counts, left, [range(bits), range(32, 32 + bits)])
        steps.launch("next_heads", left, pairs.keys, pairs.values, places, suffixes.order, heads, lefts, left)
        steps.scan(heads, left, is_maximum=True)
        steps.launch("next_ranks", left, heads, pairs.values, suffixes.ranks, left)
        now = steps.scanned(lefts, left)
        steps.launch("gather_left", left, lefts, places, pairs.values, spare_places, pairs.spare_values, left)
        pairs.values, pairs.spare_values = pairs.spare_values, pairs.values
        places, spare_places = spare_places, places
        left, depth = now, 2 * depth
