"""Code is written with the field's words: messages, help, docstrings, comments, templates, ``doc:``."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from io import StringIO
from itertools import count, takewhile
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from typing import Any

import pytest
import yaml
from word_list import WORDS, find_words

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "autotune"
_HOLE = re.compile(r"\{[^{}]*\}")  # what an f-string or a format fills in
SHOWN = ("doc", "title", "description", "hint", "reason")  # keys of YAML whose text is shown


def read_code(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string in a module (messages, help, captions, docstrings) and of each comment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value
    comments = [token for token in generate_tokens(StringIO(source).readline) if token.type == COMMENT]
    lines = {token.start[0]: token.string.lstrip("#") for token in comments}
    for first in (
        line for line in lines if line - 1 not in lines
    ):  # comments on consecutive lines are one text
        yield first, "\n".join(takewhile(bool, (lines.get(line, "") for line in count(first))))


def remove_markup(text: str) -> str:
    """Return what a template shows: without placeholders, statements, HTML tags and ids."""
    return re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^<>]*>", " ", text, flags=re.DOTALL)


def read_shown(node: Any, key: str = "") -> Iterator[str]:
    """Yield the texts of a YAML document that autotune shows to a user."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from read_shown(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from read_shown(value, key)
    elif isinstance(node, str) and key in SHOWN:
        yield node


@cache
def read_texts() -> tuple[tuple[str, str], ...]:
    """Return (place, text) of all that a user reads, and of the package's docstrings and comments."""
    texts = [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in read_code(path.read_text(encoding="utf-8"))
    ]
    for path in [*PACKAGE.rglob("*.j2"), *PACKAGE.rglob("*.jinja")]:
        texts.append((str(path.relative_to(ROOT)), remove_markup(path.read_text(encoding="utf-8"))))
    declared = [
        path for folder in ("kernels", "examples", "workloads") for path in (ROOT / folder).rglob("*.yaml")
    ]
    for path in [*declared, *PACKAGE.rglob("*.yaml"), *(PACKAGE / "schemas").glob("*.json")]:
        shown = read_shown(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))
        texts += [(str(path.relative_to(ROOT)), text) for text in shown]
    return tuple(texts)


@cache
def find_hits() -> list[str]:
    """Return ``PLACE: line N: WORD -> REPLACEMENT`` for each listed word."""
    return [f"{place}: {hit}" for place, text in read_texts() for hit in find_words(_HOLE.sub(" ", text))]


@pytest.mark.parametrize("word", WORDS)
def test_no_text_has_a_word_of_the_list(word: str) -> None:
    assert not [hit for hit in find_hits() if f": {word} -> " in hit]


def test_texts_of_every_kind_are_read() -> None:
    for place, part in (
        ("autotune/engine/request.py:", "cannot read --clocks "),
        ("autotune/api/sweeps.py:", "Args:"),
        ("autotune/search/surrogate.py:", ", until the model is fitted again"),
        ("page.html.j2", ""),
        ("eri/family.yaml", ""),
        ("family.json", ""),
    ):
        assert any(place in at and part in text for at, text in read_texts()), place


def test_strings_docstrings_and_comments_are_read() -> None:
    source = '''"""A doc\nstring."""\nX = f"one of {3} and " "more"  # one\n# comment\n\n# and # another\n'''
    assert sorted(read_code(source)) == [
        (1, "A doc\nstring."), (3, " and more"), (3, " one\n comment"), (3, "one of "), (6, " and # another"),
    ]  # fmt: skip


def test_the_style_page_has_the_list() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    style = page.partition("## How it is written\n")[2].partition("\n## ")[0]
    assert len(style.splitlines()) <= 60
    assert all(f"`{word}`: {replacement}" in " ".join(style.split()) for word, replacement in WORDS.items())
