"""The site: what is generated is complete, every page is reached, nothing is loaded from elsewhere.

The gate builds it with --strict before the tests and names the folder in AUTOTUNE_SITE; elsewhere it is built here.
"""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from import_path import import_path

from autotune.cli.commands import app

pytestmark = pytest.mark.mkdocs

ROOT = Path(__file__).parents[2]
GROUP: Any = {
    name: app.get_command(click.Context(app), name) for name in app.list_commands(click.Context(app))
}
INCLUDE = ROOT / "kernels" / "include" / "autotune"


class Text(HTMLParser):
    """A page's text, the ids of its elements, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: set[str] = set()
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        if tag in ("script", "img", "link", "iframe"):
            self.loads.append(given.get("src") or given.get("href", ""))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if made := os.environ.get("AUTOTUNE_SITE"):
        return Path(made)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": import_path(), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    assert "autotune" in Text(site / "index.html").text  # README.md
    assert "Keep a Changelog" in Text(site / "changelog.html").text


@pytest.mark.parametrize("name", ["cli", "headers", "python", "yaml"])
def test_a_page_that_is_generated_says_what_to_read_in_a_checkout(name: str) -> None:
    path = ROOT / "docs" / "reference" / f"{name}.md"
    head, _, rest = path.read_text(encoding="utf-8").partition("In a checkout ")
    assert "<!-- generated" in rest or "\n::: " in rest
    assert not re.search(r"<!-- generated|^::: ", head, re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+\.\w+)", rest)
    assert all((path.parent / link).is_file() for link in links)
    assert links or "`python3 -m pydoc autotune.dispatch.load`" in rest


def test_every_command_has_its_help(site: Path) -> None:
    page = Text(site / "reference" / "cli.html")
    for name, command in GROUP.items():
        assert name in page.ids
        assert f"Usage: autotune {name} [OPTIONS]" in page.text
        for parameter in command.params:
            assert max(parameter.opts, key=len) in page.text or parameter.param_type_name == "argument"


@pytest.mark.parametrize(
    "declared",
    [
        "Value load(Indices... indices) const;",
        "void store(const Value& value, Indices... indices) const;",
        "unsigned extent(int axis) const;",
        "auto sample(Coordinates... coordinates) const;",
        "auto load_field(const Array<",
        "T* dynamic_shared();",
        "struct SharedArray {",
        "template <int LANES = 32, class Number> Number sum(Number value);",
        "Accessor from_mdspan(const Mdspan& span);",
        "void wait(unsigned parity) const;",
    ],
)
def test_what_the_headers_declare_is_listed(site: Path, declared: str) -> None:
    assert declared in Text(site / "reference" / "headers.html").text


def test_what_is_in_detail_is_not_listed(site: Path) -> None:
    text = Text(site / "reference" / "headers.html").text
    assert "StridedOf" not in text and "MultiIndex" not in text
    assert "SPDX" not in text


def properties(node: Any) -> set[str]:
    """The names of all keys that a schema declares."""
    if isinstance(node, list):
        return {name for part in node for name in properties(part)}
    if not isinstance(node, dict):
        return set()
    own = set(node["properties"]) if isinstance(node.get("properties"), dict) else set()
    return own | {name for part in node.values() for name in properties(part)}


@pytest.mark.parametrize("name", ["family", "workload", "policy"])
def test_every_key_of_a_schema_is_listed(site: Path, name: str) -> None:
    html = (site / "reference" / "yaml.html").read_text(encoding="utf-8")
    part = html.partition(f'<h2 id="{name}">')[2].partition("<h2")[0]
    listed = {key.rpartition(".")[2] for key in re.findall(r"<tr>\s*<td[^>]*><code>([^<]+)</code>", part)}
    schema = json.loads((ROOT / "autotune" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    assert properties(schema) <= listed


def test_every_header_has_its_comment(site: Path) -> None:
    page = Text(site / "reference" / "headers.html").text
    stand_ins = INCLUDE / "cpu" / "toolkit", INCLUDE / "cpu" / "usual"  # whose interface is the toolkit's
    files = [path for path in INCLUDE.rglob("*") if path.is_file() and not {*stand_ins} & {*path.parents}]
    assert len(files) > 10
    for path in files:
        assert path.relative_to(INCLUDE.parent).as_posix() in page
        licence, first, *_ = path.read_text(encoding="utf-8").splitlines()
        assert "SPDX" in licence
        first = first.removeprefix("//").replace("`", "")
        assert " ".join(first.split()) in page


def test_the_python_reference_has_signatures_and_docstrings(site: Path) -> None:
    page = Text(site / "reference" / "python.html")
    import autotune
    from autotune.spread.spread import Spread

    for name in (
        "dispatch.load",
        "dispatch.TunedKernel.explain",
        "spread.Spread.run",
        "errors.UnknownName",
    ):
        assert f"autotune.{name}" in page.ids
    for thing in (autotune.load, autotune.TunedKernel, Spread):
        assert " ".join((thing.__doc__ or "").split()[:4]).replace("``", "") in page.text


def test_a_file_that_is_linked_to_is_in_the_site(site: Path) -> None:
    page = (site / "reference" / "policy-files.html").read_text(encoding="utf-8")
    assert 'href="../source/autotune/schemas/policy.json.html"' in page
    assert "The tuned configurations" in Text(site / "source/autotune/schemas/policy.json.html").text
    results = site / "source" / "benchmarks" / "results" / "allpairs-h200-crossover.csv"
    assert results.read_bytes() == (ROOT / "benchmarks" / "results" / results.name).read_bytes()


def test_pages_ask_no_other_server(site: Path) -> None:
    for path in site.rglob("*.html"):
        if path.name == "404.html" or "source" in path.relative_to(site).parts:
            continue
        assert not [place for place in Text(path).loads if re.match(r"(https?:)?//", place)], path
