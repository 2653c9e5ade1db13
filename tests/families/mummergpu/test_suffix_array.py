"""The order of suffixes: by brute force, and the same with any number of threads and however little is dealt out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_oracle import repeats
from mummergpu_helpers import _load
from suffix_tree_oracle import Text, codes, texts

suffix_arrays = _load("suffix_array")


def by_brute_force(text: Text) -> list[int]:
    """A separator comes after every letter, and one after those before it; nothing behind it counts."""

    def letters(place: int) -> list[tuple[int, int]]:
        end = place + text[place:].tolist().index(4)
        return [*((code, 0) for code in text[place:end].tolist()), (4, end)]

    return sorted(range(text.size), key=letters)


@settings(deadline=None, max_examples=150)
@given(texts(), st.integers(1, 20), st.integers(1, 3))
def test_suffixes_are_in_order(text: Text, times: int, threads: int) -> None:
    repeated = np.tile(text, times)
    assert suffix_arrays.suffix_array(repeated, threads).tolist() == by_brute_force(repeated)


@pytest.mark.parametrize("word_letters", [1, 5, 9])
def test_ranges_and_words_of_any_length_give_the_same(
    word_letters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_ends = np.tile(np.append(repeats(63, 9), codes("A--CG-")), 40)
    whole = [suffix_arrays.suffix_array(text) for text in (repeats(9000, 700), many_ends)]
    monkeypatch.setattr(suffix_arrays, "_MOST_WORD_LETTERS", word_letters)
    monkeypatch.setattr(suffix_arrays, "_LEAST_POSITIONS", 64)
    monkeypatch.setattr(suffix_arrays, "_LEAST_WORDS", 1)
    for text, expected in zip((repeats(9000, 700), many_ends), whole, strict=True):
        np.testing.assert_array_equal(suffix_arrays.suffix_array(text, 3), expected)
    assert whole[1].tolist() == by_brute_force(many_ends)


def test_one_letter_takes_no_longer_than_doubling() -> None:
    text = np.append(np.zeros(20_000, np.uint8), np.uint8(4))
    np.testing.assert_array_equal(suffix_arrays.suffix_array(text), np.arange(20_001))
