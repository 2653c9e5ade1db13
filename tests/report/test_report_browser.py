"""Reports of what was recorded on the H200, opened in headless Chromium: what is seen, pressed, typed and downloaded.

With ``AUTOTUNE_SCREENSHOTS`` naming a folder, pictures of the pages are left there.
"""

import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_pages import HOSTILE, RESULTS, fake_study
from result_files import read_frame
from waiting import PATIENCE_S

from autotune.record.results_csv import read_results
from autotune.report.files import make_generator
from autotune.report.page import write_report

pytestmark = pytest.mark.chromium

CONTRAST = (Path(__file__).parents[1] / "support" / "contrast.js").read_text(encoding="utf-8")
SECTIONS = ("result", "effects", "why", "choice", "search", "trials")
TABLES = {"allpairs": RESULTS / "allpairs-h200.csv.xz", "mummergpu": RESULTS / "mummergpu-h200.csv.xz"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    code = make_generator({})
    made = {
        name: write_report(read_results([table]), folder / f"{name}.html", code=code)
        for name, table in TABLES.items()
    }
    hostile = [fake_study("primer", 1), fake_study(f"hapmap {HOSTILE}", 2)]
    return made | {"hostile": write_report(hostile, folder / "hostile.html")}


class Opened:
    """A page with what went wrong while it was looked at."""

    def __init__(self, browser: Any, path: Path, hash_: str = "", **context: Any) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **context})
        self.page = self.context.new_page()
        self.page.on(
            "console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.as_uri()
        self.page.set_default_timeout(PATIENCE_S * 1e3)
        self.page.goto(self.address + hash_)

    def draw_all(self) -> None:
        """Scroll from end to end until every chart that can be seen is drawn: a browser that is busy sees only where
        one stays."""
        self.until(
            """async () => {
              const frame = () => new Promise((done) => setTimeout(done, 20));
              for (let y = 0; y < document.documentElement.scrollHeight; y += 700) {
                scrollTo({ top: y, behavior: "instant" });
                await frame();
              }
              scrollTo({ top: 0, behavior: "instant" });
              return [...document.querySelectorAll(".chart")]
                .every((chart) => !chart.checkVisibility() || chart.querySelector(".main-svg"));
            }"""
        )

    def until(self, condition: str) -> None:
        """Asked from here again and again: the page's policy forbids text that is evaluated in the page, as
        ``wait_for_function`` does from its second try on."""
        until = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(condition):
            assert time.monotonic() < until, condition
            self.page.wait_for_timeout(50)

    def quiet(self) -> None:
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture
def opened(browser: Any, reports: dict[str, Path]) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_(name: str, hash_: str = "", **context: Any) -> Opened:
        pages.append(Opened(browser, reports[name], hash_, **context))
        return pages[-1]

    yield open_
    for one in pages:
        one.context.close()
        one.quiet()


@pytest.fixture(scope="module")
def shared(browser: Any, reports: dict[str, Path]) -> Iterator[Opened]:
    """One window, which is loaded once: each test has a part of the report that no other changes."""
    one = Opened(browser, reports["mummergpu"], color_scheme="light")
    yield one
    one.context.close()
    one.quiet()


def at(one: Opened, part: str) -> Opened:
    """Show a part of the report in the window: tests run in any order."""
    one.page.goto(one.address + part)
    one.page.locator(part).wait_for(state="visible")
    return one


def rows(page: Any, study: str) -> list[list[str]]:
    """What the table of trials shows, without the buttons' column."""
    found: list[list[str]] = page.eval_on_selector_all(
        f"#{study}-trials .trials tbody tr:not(.remark)",
        "rows => rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))",
    )
    return found


def heads(page: Any, study: str) -> list[str]:
    texts = page.locator(f"#{study}-trials .trials thead th button").all_text_contents()
    return [text.split(" ▲")[0].split(" ▼")[0] for text in texts]


# ---- what is there


@pytest.mark.parametrize("name", TABLES)
def test_every_section_and_chart_is_drawn_without_a_word_on_the_console(opened: Any, name: str) -> None:
    one = opened(name)
    assert one.page.locator("article:visible h1").text_content() == f"{name} across workloads"
    one.draw_all()
    studies = one.page.locator("nav.studies a").count() - 1
    assert studies == read_frame(TABLES[name])["workload"].nunique()
    for study in (f"study-{i + 1}" for i in range(studies)):
        one.page.locator(f"nav.studies a[href='#{study}']").click()
        for section in SECTIONS:  # the page changes a moment after the click
            one.page.locator(f"#{study}-{section}").wait_for(state="visible")
    one.page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    one.draw_all()
    drawn = one.page.locator("article:visible .chart .main-svg").count()
    assert drawn > 15
    assert one.page.locator("article:visible .chart text.xtick text, article:visible .xtick").count() > 50


SEEN = {  # in one window of each report: its parts, the window's width, its colours
    "mummergpu": [("", 1440, "light"), ("#study-1", 1440, "light"), ("", 1024, "dark")],
    "allpairs": [("#study-3", 1024, "dark")],
    "hostile": [("#study-2", 390, "dark")],
}


@pytest.mark.parametrize("name", SEEN)
def test_a_page_is_readable(opened: Any, name: str, tmp_path: Path) -> None:
    """Nothing is wider than the window, and every text has a contrast of 4.5 to what is behind it. Leaves pictures."""
    folder = Path(os.environ.get("AUTOTUNE_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    first, width, scheme = SEEN[name][0]
    one = opened(name, first, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for part, width, scheme in SEEN[name]:
        one.page.emulate_media(color_scheme=scheme)
        one.page.set_viewport_size({"width": width, "height": 900})
        one.page.goto(one.address + part)
        if part:  # the page changes a moment after its address
            one.page.locator(part).wait_for(state="visible")
        one.draw_all()
        assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        path = folder / f"{name}{part.replace('#', '-') or '-all'}-{width}-{scheme}.png"
        one.page.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 50_000
        one.page.locator("article:visible details").evaluate_all(
            "all => all.forEach((one) => (one.open = true))"
        )
        texts = one.page.evaluate(CONTRAST)
        assert len(texts) > 100
        assert [text for text in texts if text["ratio"] < 4.5] == []
        assert [text for text in texts if text["size"] < 10] == []


def test_the_switch_turns_light_to_dark_and_back(shared: Opened) -> None:
    one = at(shared, "#study-3")
    one.draw_all()
    colour = "getComputedStyle(document.body).backgroundColor"
    tick = "getComputedStyle(document.querySelector('article:not([hidden]) .xtick text')).fill"
    light = [one.page.evaluate(colour), one.page.evaluate(tick)]
    switch = one.page.locator("#theme")
    switch.focus()
    one.page.keyboard.press("Space")
    one.until(f"{tick} !== {light[1]!r}")
    assert one.page.evaluate(colour) != light[0]
    assert switch.inner_text() == "Light"
    switch.click()
    one.until(f"{tick} === {light[1]!r}")
    assert one.page.evaluate(colour) == light[0]
    assert switch.inner_text() == "Dark"


# ---- the table of trials, the charts, downloads


def downloaded(page: Any, button: Any) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        button.click()
    with Path(waiting.value.path()).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_side_by_side(shared: Opened) -> None:
    one = at(shared, "#study-1-trials")
    frame = read_frame(TABLES["mummergpu"])
    times = frame[frame["workload"] == "hsill"].sort_values(["time_ms", "configuration"])["time_ms"].to_list()
    trials = one.page.locator("#study-1-trials .trials tbody tr")
    trials.nth(2).get_by_role("button", name="compare as A").click()
    trials.nth(20).get_by_role("button", name="compare as B").press("Enter")
    compare = one.page.locator("#study-1-trials .compare")
    shown = dict(compare.locator("tbody tr").evaluate_all(
        "rows => rows.map((row) => [row.cells[0].textContent, [...row.cells].slice(1).map((cell) => cell.textContent)])"
    ))  # fmt: skip
    assert shown["rank"] == ["3", "21", "differs"]
    assert shown["time"][2] == f"{times[20] / times[2]:.2f}×"
    assert shown["tree_memory"] == ["global", "texture", "differs"]
    assert shown["tree_order"] == ["reordered", "reordered", "equal"]
    assert shown["match: registers"][0].isdecimal()
    assert compare.locator(".diff .gone").count() > 0
    assert compare.locator(".diff .came").count() > 0
    assert "texture" in "".join(compare.locator(".diff .came").all_text_contents()).lower()
    compare.get_by_label("only what differs").check()
    assert "tree_order" not in compare.locator("tbody th").all_text_contents()
    assert trials.nth(20).get_by_role("button", name="compare as B").get_attribute("aria-pressed") == "true"


def test_sorting(shared: Opened) -> None:
    one = at(shared, "#study-2")
    column = heads(one.page, "study-2").index("footprint")
    head = one.page.locator("#study-2-trials .trials thead th", has_text="footprint")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    frame = read_frame(TABLES["mummergpu"])
    frame = frame[frame["workload"] == "ssuis"]
    low, high = (f"{frame['footprint_bytes'].agg(side) / 2**30:.2f} GiB" for side in ("min", "max"))
    assert {row[column] for row in rows(one.page, "study-2")} == {low}
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert rows(one.page, "study-2")[0][column] == high


def test_the_bars_show_the_kernel_that_is_chosen(shared: Opened) -> None:
    one = at(shared, "#study-1-effects")
    one.page.locator("#study-1-chart-pairs_1").scroll_into_view_if_needed()
    one.page.locator("#study-1-chart-pairs_1 .main-svg").first.wait_for()
    label = "document.querySelector('#study-1-chart-pairs_1 .xtick').textContent"
    before = one.page.evaluate(label)
    one.page.locator("#study-1-effects [data-kernels]").select_option("match")
    one.until(f"{label} !== {before!r}")


def test_tables_and_charts_are_downloaded_whole(shared: Opened) -> None:
    one = at(shared, "#study-2")
    one.page.locator("#study-2-effects .chart").first.wait_for()
    frame = read_frame(TABLES["mummergpu"])
    ssuis = frame[frame["workload"] == "ssuis"].set_index("configuration")
    found = downloaded(one.page, one.page.locator("#study-2-trials").get_by_text("Download the rows found"))
    assert len(found) == 128
    assert all(
        float(r["time_ms"]) == pytest.approx(ssuis.loc[r["configuration"], "time_ms"], rel=1e-5)
        for r in found
    )
    found = downloaded(one.page, one.page.locator("#study-2-result [data-download=presets]"))
    control = next(row for row in found if row["preset"] == "control")
    assert float(control["time_ms"]) == ssuis.loc[control["configuration"], "time_ms"]
    found = downloaded(one.page, one.page.locator("[data-points='study-2-chart-front_footprint']"))
    assert len(found) == 128
    assert {row["configuration"] for row in found} == set(ssuis.index)
    one.page.locator("nav.studies a").first.click()
    found = downloaded(one.page, one.page.locator("[data-points='across-1-chart-regrets']"))
    best = frame.groupby("workload")["time_ms"].min()
    times = frame.set_index(["workload", "configuration"])["time_ms"]
    assert len(found) == len(frame)
    for row in found[::50]:
        ratio = times[row["workload"], row["configuration"]] / best[row["workload"]]
        assert float(row["time_over_best"]) == pytest.approx(ratio, rel=1e-3)


def test_a_point_leads_to_its_row(shared: Opened) -> None:
    one = at(shared, "#study-4-choice")
    chart = one.page.locator("#study-4-chart-front_once")
    one.draw_all()  # what is above it may move it until then
    point = chart.locator(".trace path.point").last
    point.hover(force=True)
    assert "block_size=256" in chart.locator(".hovertext").first.text_content()
    point.click(force=True)
    assert one.page.locator("#study-4-trials [aria-live]").text_content() == "1 to 1 of 1"
    assert "block_size=" in one.page.locator("#study-4-trials input[type=search]").input_value()


def test_filtering(opened: Any) -> None:
    one = opened("allpairs", "#study-3")
    told = one.page.locator("#study-3-trials [aria-live]")
    assert told.text_content() == "1 to 25 of 1,072"
    frame = read_frame(TABLES["allpairs"])
    wide = frame[frame["workload"] == "wide"]
    box = one.page.locator("#study-3-trials input[type=search]")
    box.fill("memory=texture tile=4")
    count = ((wide["memory"] == "texture") & (wide["tile"] == 4)).sum()
    assert told.text_content() == f"1 to 25 of {count}"
    memory = heads(one.page, "study-3").index("memory")
    assert {row[memory] for row in rows(one.page, "study-3")} == {"texture"}
    box.fill("")
    one.page.locator("#study-3-trials .controls select").first.select_option("excluded")
    assert told.text_content() == f"1 to 25 of {(wide['state'] == 'excluded').sum()}"
    reason = one.page.locator("#study-3-trials tr.remark").first.text_content()
    assert reason in set(wide["reason"].dropna())
    box.fill("no such word")
    assert told.text_content() == "none found"


# ---- the keyboard


def test_all_is_reached_and_pressed_by_keyboard(opened: Any) -> None:
    one = opened("mummergpu")
    focused = "document.activeElement.textContent.trim()"
    one.page.keyboard.press("Tab")
    assert one.page.evaluate(focused) == "Skip to the report"
    for expected in ("All workloads", "hsill"):
        one.page.keyboard.press("Tab")
        assert one.page.evaluate(focused) == expected
    assert one.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    one.page.keyboard.press("Enter")
    assert one.page.locator("article:visible h1").text_content() == "mummergpu on hsill"
    unnamed = one.page.evaluate(
        """() => [...document.querySelectorAll(":is(a, button, input, select, summary, [tabindex])")]
          .filter((node) => node.checkVisibility() && !node.closest(".js-plotly-plot"))
          .filter((node) => node.tabIndex < 0 || !(node.ariaLabel || node.textContent || node.labels[0].textContent))
          .map((node) => node.outerHTML.slice(0, 200))"""
    )
    assert unnamed == []
    reached = set()
    for _ in range(400):
        one.page.keyboard.press("Tab")
        reached.add(one.page.evaluate("document.activeElement.closest('section')?.id ?? ''"))
        if "study-1-trials" in reached:
            break
    assert {f"study-1-{name}" for name in SECTIONS} <= reached


# ---- hostile names


def test_hostile_names_are_seen_as_text(opened: Any) -> None:
    one = opened("hostile", "#study-2")
    one.page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    one.draw_all()
    title = one.page.locator("article:visible h1").text_content()
    assert "<script>alert('x')</script> \"q\", $x$ & </script><!--" in title
    one.page.locator("#study-2-trials .controls select").first.select_option("compile_failed")
    reason = one.page.locator("#study-2-trials tr.remark").first.text_content()
    assert reason.startswith("<script>alert('x')</script>")
    assert one.page.locator("#study-2-effects").get_by_text("</script><b>planes").count() > 2
    ticks = one.page.locator("#study-2-effects .chart text").all_text_contents()
    assert any("</script><b>planes" in text for text in ticks)
    assert one.page.locator(":is(td, th, text, option, svg) :is(script, b:not(:scope))").count() == 0
    assert one.page.evaluate("document.scripts.length") == 3
