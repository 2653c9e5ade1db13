"""The figures in docs/ are those of the files in benchmarks/results that the pages name."""

import re
from pathlib import Path

import pytest
from figures import FIGURES, RESULTS, Figure, printed, quoted

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = {
    "docs/mummergpu-policy-analysis.md"
}  # tests/families/mummergpu/test_policy_analysis.py makes its tables anew
PAGES = {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
PAGES["README.md"] = (DOCS.parent / "README.md").read_text(encoding="utf-8")
KEPT = {path.name for path in RESULTS.iterdir() if path.suffix in (".csv", ".xz")}


def flat(text: str) -> str:
    return " ".join(text.split())


def sections(page: str) -> list[str]:
    """The parts of a page between headings, without commands."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    return re.split(r"^#+ .*$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("figure", FIGURES, ids=[f"{f.page}: {f.text}" for f in FIGURES])
def test_a_figure_is_what_its_file_gives(figure: Figure) -> None:
    text, numbers = quoted(figure.text)
    assert flat(text) in flat(PAGES[figure.page]), "the page does not say that"
    computed = figure.computed()
    assert len(computed) == len(numbers)
    for number, value in zip(numbers, computed, strict=True):
        told, off = printed(number)
        assert abs(value - told) <= off, f"{number} is {value:.6g} by {', '.join(figure.files)}"


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_section_names_has_a_figure_there(page: str) -> None:
    if page in GENERATED:
        return
    for section in sections(page):
        named = {name for name in re.findall(r"[\w.-]+\.csv(?:\.xz)?\b", section) if name in KEPT}
        named |= {"limits.json"} if "results/limits.json" in section else set()
        told = {
            file
            for f in FIGURES
            if f.page == page and flat(quoted(f.text)[0]) in flat(section)
            for file in f.files
        }
        assert named <= told, (
            f"declare in tests/support/figures.py what {page} says of {', '.join(sorted(named - told))}"
        )


@pytest.mark.parametrize(
    ("number", "value", "off"),
    [("1,203", 1203, 0.5), ("4.22·10¹¹", 4.22e11, 5e8), ("4.5·10⁻⁷", 4.5e-7, 5e-9), ("1.18e14", 1.18e14, 5e11),
     ("0.0", 0, 0.05), ("2,000~1", 2000, 500)],
)  # fmt: skip
def test_how_a_printed_number_is_read(number: str, value: float, off: float) -> None:
    told, found = printed(number)
    assert told == pytest.approx(value)
    assert found == pytest.approx(off, rel=0.01)
