"""The pages and README are written with the field's words: none has a word of the list."""

from pathlib import Path

import pytest
from word_list import WORDS, find_words

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_word_of_the_list(name: str) -> None:
    assert not find_words(PAGES[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_found_in_prose_and_not_in_code(word: str) -> None:
    assert find_words(f"First line.\nThe {word.capitalize()} here.")[0].startswith(f"line 2: {word}")
    assert not find_words(f"`{word}` and ``{word}``\n```text\n{word}\n```\n<!-- {word} -->x{word}x")
