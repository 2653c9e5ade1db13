"""What a user reads of the code is written with the field's words: messages, help, docstrings, templates, ``doc:``."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from word_list import WORDS, find_words

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "autotune"
_HOLE = re.compile(r"\{[^{}]*\}")  # what an f-string or a format fills in
SHOWN = ("doc", "title", "description", "hint", "reason")  # keys of YAML whose text is shown


def read_literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string in a module that is no docstring: messages, help, captions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value if " " in node.value.strip() else ""


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


def find_public_docstrings() -> Iterator[tuple[str, str]]:
    """Yield name and docstring of what ``autotune`` exports and what docs/reference/python.md lists."""
    listed = re.findall(
        r"^::: (autotune[\w.]*)", (ROOT / "docs/reference/python.md").read_text(), re.MULTILINE
    )
    public = {name.rpartition(".")[2] for name in listed}
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    public |= {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in public:
                inner = [node, *(node.body if isinstance(node, ast.ClassDef) else [])]
                for item in inner:
                    if isinstance(item, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(item)):
                        yield f"{path.relative_to(ROOT)}: {node.name}.{item.name}", text


def read_texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of all that is shown."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in read_literals(path):
            yield f"{path.relative_to(ROOT)}:{line}", text
    yield from find_public_docstrings()
    for path in [*PACKAGE.rglob("*.j2"), *PACKAGE.rglob("*.jinja")]:
        yield str(path.relative_to(ROOT)), remove_markup(path.read_text(encoding="utf-8"))
    declared = [
        path for folder in ("kernels", "examples", "workloads") for path in (ROOT / folder).rglob("*.yaml")
    ]
    for path in [*declared, *PACKAGE.rglob("*.yaml"), *(PACKAGE / "schemas").glob("*.json")]:
        for text in read_shown(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)):
            yield str(path.relative_to(ROOT)), text


@cache
def find_hits() -> list[str]:
    """Return ``PLACE: line N: WORD -> REPLACEMENT`` for each listed word that is shown."""
    return [f"{place}: {hit}" for place, text in read_texts() for hit in find_words(_HOLE.sub(" ", text))]


@pytest.mark.parametrize("word", WORDS)
def test_no_text_that_is_shown_has_a_word_of_the_list(word: str) -> None:
    assert not [hit for hit in find_hits() if f": {word} -> " in hit]


def test_texts_of_every_kind_are_read() -> None:
    places = [place for place, text in read_texts() if text]
    for part in (
        "autotune/engine/request.py:",
        "autotune/api/sweeps.py: sweep",
        "page.html.j2",
        "eri/family.yaml",
        "family.json",
    ):
        assert any(part in place for place in places), part


def test_the_style_page_has_the_list() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    style = page.partition("## How it is written\n")[2].partition("\n## ")[0]
    assert len(style.splitlines()) <= 60
    assert all(f"`{word}`: {replacement}" in " ".join(style.split()) for word, replacement in WORDS.items())
