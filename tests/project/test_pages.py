"""The figures and tables of README and docs/ are what their queries and scripts give."""

import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace

import layout_pictures
import pages
import pytest
import queries
from headlines import HEADLINES, Headline

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
KEPT = {path.name for path in RESULTS.iterdir() if path.suffix in (".csv", ".xz")}
PAGES = {path.name: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_its_queries_give(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert pages.main(["--check", str(PAGES[name])]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_section_names_has_a_query_there(name: str) -> None:
    text = re.sub(
        r"^```.*?^```$", "", PAGES[name].read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for section in re.split(r"^#+ .*$", text, flags=re.MULTILINE):
        queries = "".join(pages.QUERY.findall(section))
        named = {file for file in re.findall(r"[\w.-]+\.csv(?:\.xz)?\b", section) if file in KEPT}
        named |= {"limits.json"} if "results/limits.json" in section else set()
        asked = {file for file in named if f'"{file}"' in queries}
        assert named == asked or pages.TABLE.search(section), (
            f"mark with a query what {name} says of {', '.join(sorted(named - asked))}"
        )


@pytest.mark.parametrize(
    ("number", "value", "told"),
    [
        ("1,203", 1203.4, "1,203"), ("1,203", 1204.4, "1,204"), ("0.0", 0.04, "0.0"), ("7.6", 12.34, "12.3"),
        ("4.22·10¹¹", 4.218e11, "4.22·10¹¹"), ("4.22·10¹¹", 4.31e9, "4.31·10⁹"), ("4.5·10⁻⁷", 4.54e-7, "4.5·10⁻⁷"),
        ("4.5·10⁻⁷", 9.96e-6, "1.0·10⁻⁵"), ("1.18e14", 1.2e14, "1.20e14"), ("1.8e-14", 1.86e-15, "1.9e-15"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_the_page_has_it(number: str, value: float, told: str) -> None:
    assert pages.printed(number, value) == told


def test_a_query_gives_the_numbers_up_to_the_next() -> None:
    page = "<!-- figures\nn = 2\nn, [1e3 * n]\n-->\n\n1<!--=--> of 2,000<!--=-->.\n"
    page += "<!-- figures: 3.26 -->\n9.5<!--=-->\n"
    assert pages.rewritten(page) == page.replace("1<!--=-->", "2<!--=-->").replace("9.5", "3.3")


@pytest.mark.parametrize(
    "page", ["<!-- figures\n1, 2\n-->\n1<!--=-->\n", "1<!--=-->\n", "<!-- figures\n1\n-->\nx<!--=-->\n"]
)
def test_marks_and_numbers_must_agree(page: str) -> None:
    with pytest.raises(ValueError, match=r"values for|without a number"):
        pages.rewritten(page)


def test_every_table_that_a_script_makes_is_in_one_place() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PAGES.values()]
    placed = sorted(place for text in texts for place in pages.TABLE.findall(text))
    scripts = {script for script, _ in placed}
    assert placed == sorted((s, name) for s in scripts for name in pages._tables(s))


def test_only_what_is_between_the_marks_of_a_table_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(tables=lambda: {"a": "| A |", "b": "| B |"})
    monkeypatch.setitem(sys.modules, "made", made)
    text = (
        "prose\n<!-- table: made a -->\nold\n<!-- /table -->\nmore\n<!-- table: made b -->\n<!-- /table -->\n"
    )
    page = pages.rewritten(text)
    assert page == (
        "prose\n<!-- table: made a -->\n\n| A |\n\n<!-- /table -->\n"
        "more\n<!-- table: made b -->\n\n| B |\n\n<!-- /table -->\n"
    )
    assert pages.rewritten(page) == page


def test_readme_shows_the_sweep_that_was_recorded() -> None:
    shown = PAGES["README.md"].read_text(encoding="utf-8").partition("<!-- sweep-output -->")[2]
    sweep = queries.rows(queries.table("allpairs-h200-short.csv.xz"), workload="wide")
    measured, excluded = queries.count(sweep, state="measured"), queries.count(sweep, state="excluded")
    assert (
        f"{measured} of 1,304 tried, {excluded} excluded ({len(sweep)} selected): {measured} measured;"
        in shown
    )
    best = queries.value(sweep, "time_ms", rank=1)
    for name, preset in (("control", "control naive"), ("coalesced", "coalesced"), ("shared", "shared")):
        time = queries.value(sweep, "time_ms", preset=preset)
        told = f"{time / 1e3:.2f} s" if time > 1e3 else f"{time:.0f} ms"
        assert re.search(rf"^{name} +{told} +{time / best:,.0f} x the winner", shown, re.MULTILINE)


BETWEEN_RUNS = 0.02  # a time of one run and that of another


def headlines() -> Iterator[tuple[str, Headline, list[float]]]:
    """Each row of README's table with the entry behind it and its figures."""
    section = (
        PAGES["README.md"].read_text(encoding="utf-8").partition("\n## How fast\n")[2].partition("\n## ")[0]
    )
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return zip(rows, HEADLINES, queries.first_page(), strict=True)


def test_each_row_of_the_first_page_names_the_entry_that_gives_it() -> None:
    for row, headline, _ in headlines():
        named = re.findall(r"`([^`]+)`", row.split("|")[2])
        assert named == [headline.entry], row
    families = [re.findall(r"^\| \[(\w+)\]", row) for row, _, _ in headlines()]
    assert all(found in ([], [h.family]) for found, h in zip(families, HEADLINES, strict=True))


def test_entries_agree_with_the_rows_that_name_them() -> None:
    for row, headline, figures in headlines():
        entry = headline.recorded
        if headline.whole:
            assert headline.ran == {name: str(value) for name, value in entry["configuration"].items()}, row
            assert entry["median_ms"] < 1e3 * figures[0], row
        else:
            assert headline.ms(figures) == pytest.approx(entry["median_ms"], rel=BETWEEN_RUNS), row


def test_every_layout_has_a_picture() -> None:
    rows = PAGES["layouts.md"].read_text(encoding="utf-8").partition("| layout | values |")[2].splitlines()
    titles = " ".join(picture.title for picture in layout_pictures.pictures())
    layouts = [line.split("`")[1] for line in takewhile(lambda line: line.startswith("|"), rows[2:])]
    assert layouts and not [layout for layout in layouts if layout not in titles]
