"""Tables of words: how many leaves of the suffix tree come before each."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.declaration import family as families

MODULE: Any = families.load_family("mummergpu").module
TABLES = MODULE.tables


def module_of(name: str) -> Any:
    return TABLES.__globals__[name]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 6))
def test_an_entry_counts_the_suffixes_before_its_word(codes: list[int], minimum: int) -> None:
    text = [*codes, 4]
    made = TABLES(np.array(text, np.uint8), minimum)
    letters = module_of("table_letters")(len(text), minimum)
    for table, k in zip((made["coarse_table"], made["fine_table"]), letters, strict=True):
        # What ends within a word stands behind all words that begin with it.
        ends = [text.index(4, start) for start in range(len(text))]
        filled = [
            [*text[start : min(end, start + k)], *[3] * (start + k - end)]
            for start, end in enumerate(ends)
            if start < end
        ]
        words = [list(word) for word in itertools.product(range(4), repeat=k)]
        assert table.tolist() == [sum(f < word for f in filled) for word in words] + [len(filled)]
        assert 1 <= k <= minimum


@pytest.mark.parametrize(
    ("characters", "minimum", "letters"),
    [(1, 1, (1, 1)), (1, 9, (1, 2)), (5387, 16, (6, 8)), (2_007_492, 10, (10, 10)), (16_000_001, 14, (11, 13)),
     (3_000_000_000, 50, (13, 13))],
)  # fmt: skip
def test_words_grow_with_the_text_up_to_a_match(
    characters: int, minimum: int, letters: tuple[int, int]
) -> None:
    assert module_of("table_letters")(characters, minimum) == letters
