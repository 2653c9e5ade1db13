"""The static pass grown up: hints from registers and spills, occupancy over block sizes, its part of the report."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import SOURCE, write_family
from hypothesis import given
from hypothesis import strategies as st
from report_pages import HOSTILE, RESULTS, fake_study, read_page

from autotune.cli.commands import main
from autotune.compile.occupancy_model import LIMITS, occupancy
from autotune.compile.profile import KernelProfile
from autotune.compile.static_pass import (
    BLOCK_SIZES,
    StaticProfile,
    better_neighbours,
    occupancy_curve,
)
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import StoreError
from autotune.record.results_csv import read_results
from autotune.report.files import write_all, write_static_report
from autotune.report.static_pass import MOST_ROWS, read_static, write_static

ARCHS = ("sm_80", "sm_90", "sm_120")


def profile(
    registers: int, *, spills: int = 0, arch: str = "sm_90", kernel: str = "k", block: int = 256
) -> KernelProfile:
    at = occupancy(arch, block, registers, 0)
    return KernelProfile(
        kernel=kernel, block_size=block, registers=registers, spill_store_bytes=spills, blocks_per_sm=at.blocks_per_sm,
        occupancy=at.occupancy, limited_by=at.limited_by,
    )  # fmt: skip


def at(**values: int | str) -> Configuration:
    return Configuration(values)


# ---- hints


def test_a_dominated_configuration_names_the_neighbour() -> None:
    found = better_neighbours(
        {
            at(a=1, b=1): [profile(32)],
            at(a=2, b=1): [profile(40)],  # fewer blocks than a=1
            at(a=1, b=2): [profile(32, spills=8)],
            at(a=2, b=2): [profile(64, spills=8)],  # beaten by both neighbours
            at(a=3, b=3): [profile(255, spills=99)],  # nothing differs from it in one policy alone
        }
    )
    assert set(found) == {at(a=2, b=1), at(a=1, b=2), at(a=2, b=2)}
    assert found[at(a=2, b=1)].configuration == at(a=1, b=1)
    assert found[at(a=2, b=1)].policy == "a"
    assert found[at(a=2, b=1)].why == "k: occupancy 75% to 100%"
    assert found[at(a=1, b=2)].why == "k: 8 spilled bytes to 0"
    assert found[at(a=2, b=2)].configuration == at(a=2, b=1)  # of two, the one that spills least


def test_better_in_one_kernel_and_worse_in_another_dominates_nothing() -> None:
    one = [profile(32), profile(64, kernel="other")]
    two = [profile(64), profile(32, kernel="other")]
    assert better_neighbours({at(a=1): one, at(a=2): two}) == {}
    assert better_neighbours({at(a=1): one, at(a=2): [profile(16)]}) == {}  # of which a kernel is missing


FIGURES = st.tuples(st.sampled_from([16, 32, 40, 64, 128]), st.sampled_from([0, 4, 8]))


@given(st.lists(FIGURES, min_size=6, max_size=6))
def test_what_dominates_is_never_worse(figures: list[tuple[int, int]]) -> None:
    space = [at(a=a, b=b) for a in (1, 2) for b in (1, 2, 3)]
    profiles = {one: [profile(r, spills=s)] for one, (r, s) in zip(space, figures, strict=True)}
    for one, better in better_neighbours(profiles).items():
        (mine,), (other,) = profiles[one], profiles[better.configuration]
        assert [n for n in one if one[n] != better.configuration[n]] == [better.policy]
        assert (other.occupancy, -other.spill_store_bytes) != (mine.occupancy, -mine.spill_store_bytes)
        assert other.occupancy >= mine.occupancy
        assert other.spill_store_bytes <= mine.spill_store_bytes


@given(st.sampled_from(sorted(LIMITS)), st.integers(16, 255), st.integers(0, 40000))
def test_a_curve_is_the_occupancy_at_each_size(arch: str, registers: int, shared: int) -> None:
    curve = occupancy_curve(arch, registers, shared)
    assert curve == [occupancy(arch, size, registers, shared).occupancy for size in range(32, 1025, 32)]
    assert len(curve) == len(BLOCK_SIZES)


def test_what_the_document_says_of_the_hints() -> None:
    """Recomputed from the records of the H200."""
    pairs = faster = winners = 0
    for name in ("allpairs-h200.csv.xz", "mummergpu-h200.csv.xz"):
        for study in read_results([RESULTS / name]):
            timed = {t.configuration: t for t in study.trials if t.measurement}
            found = better_neighbours({one: t.profiles for one, t in timed.items()})
            pairs += len(found)
            faster += sum(timed[b.configuration].time_ms < timed[one].time_ms for one, b in found.items())
            winners += bool(study.decision and study.decision.winner.configuration in found)
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    assert f"{faster:,} of {pairs:,} pairs" in text
    assert winners == 6
    assert "six of the seven winners" in text


# ---- the report


def rows(folder: Path) -> list[StaticProfile]:
    family = families.load_family(write_family(folder / "doubler"))
    found = []
    for arch in ARCHS:
        for i, one in enumerate(family.space.configurations()):
            if i == 5:
                found.append(StaticProfile(arch, one, message=f"error: {HOSTILE}"))
                continue
            block = int(one["block_size"])
            found.append(
                StaticProfile(arch, one, (profile(30 + 9 * i, arch=arch, block=block, kernel="doubler"),))
            )
    return found


@pytest.fixture
def written(tmp_path: Path) -> Path:
    family = families.load_family(write_family(tmp_path / "doubler"))
    write_static(family, rows(tmp_path), tmp_path / "static.csv")
    return tmp_path


def test_the_page_has_the_figures_of_the_table(written: Path) -> None:
    page = read_page(write_static_report(written, (), {}))
    frame = pd.read_csv(written / "static.csv")
    compiled = frame[frame["state"] == "compiled"]
    head, *body = page.tables["static_doubler"]
    shown = pd.DataFrame(body, columns=head).set_index("arch")
    assert list(shown.index) == list(ARCHS)
    for arch, some in compiled.groupby("arch"):
        assert float(shown.loc[arch, "registers_median"]) == some["registers"].median()
        assert float(shown.loc[arch, "occupancy_minimum"]) == pytest.approx(some["occupancy"].min())
    head, *body = page.tables["next_block"]
    near = compiled[compiled["registers_to_next_block"].notna()]
    assert float(body[0][0]) == near["registers_to_next_block"].min()
    head, *body = page.tables["dominated"]
    assert len(body) == MOST_ROWS < compiled["dominated_by"].notna().sum()
    first = compiled[compiled["dominated_by"].notna()].iloc[0]
    assert body[0][-1] == first["configuration"]
    policy, before, _, after = body[0][1].split()
    assert f"{policy}={before}" in first["configuration"]
    assert f"{policy}={after}" in first["dominated_by"]
    head, *body = page.tables["static_failed"]
    assert len(body) == len(ARCHS)
    assert "static-1-chart-occupancy_curve_doubler" in [values.get("id") for _, values in page.tags]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 3  # none of a compiler's message


def test_beside_a_record_it_is_a_part_of_its_report(written: Path) -> None:
    study = fake_study()
    page = read_page(write_all([study], written)["report"])
    ids = [values.get("id") for _, values in page.tags]
    assert "static" in ids
    assert "study-1" in ids
    assert "Static pass" in page.text


def test_a_static_table_of_an_older_version_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "static.csv").write_text("family,arch,configuration\nf,sm_90,a=1\n")
    assert read_static(tmp_path / "static.csv") is None
    assert read_static(tmp_path / "none.csv") is None
    (tmp_path / "static.csv").write_bytes(b'a,b\n"')
    with pytest.raises(StoreError, match=r"static\.csv"):
        read_static(tmp_path / "static.csv")


def test_beside_results_of_another_declaration_it_is_a_note(written: Path) -> None:
    made_from = families.load_family(written / "doubler")
    about = {
        "date": "2026-01-03",
        "source_digest": made_from.source_digest,
        "space_digest": made_from.space_digest,
    }
    same = replace(fake_study(), family="doubler", about=fake_study().about.told(about))
    older = replace(same, workload="old", about=same.about.told({"space_digest": "0", "date": "2026-01-01"}))
    page = read_page(write_all([same, older], written)["report"])
    assert "static_doubler" in page.tables
    edited = replace(same, about=same.about.told({"source_digest": "0", "date": "2026-01-04"}))
    page = read_page(write_all([edited, same, older], written)["report"])
    assert "static_doubler" not in page.tables
    assert (
        "What lies in static.csv is left out: the sources changed between it and what was measured."
        in page.text
    )
    assert "autotune sweep doubler --static makes it anew" in page.text
    # A pass that was made just now is not older than what was measured.
    assert "static_doubler" in read_page(write_static_report(written, [edited], {})).tables
    assert (
        "static_doubler" in read_page(write_all([replace(edited, family="other")], written)["report"]).tables
    )


@pytest.mark.nvrtc
def test_the_table_of_a_static_sweep_is_sorted_capped_and_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.cli.static_pass.BEST", 2)
    monkeypatch.setattr("autotune.cli.static_pass.WORST", 1)
    monkeypatch.setattr("autotune.report.meter.LINE_SECONDS", 0.0)
    # A loop as long as a policy says: registers differ.
    loop = "float s = 0; for (int k = 0; k < Policy::block_size / 16; ++k) s += x.load(i ^ k) * k;"
    source = SOURCE.replace("if (i <", f"{loop} if (i <")
    folder = write_family(tmp_path / "doubler", source=source.replace("2 * x.load(i)", "s"))
    assert main(["sweep", str(folder), "--static", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "doubler sm_90: 12 of 12\n" in shown.err
    frame = pd.read_csv(tmp_path / "out" / "static.csv")
    frame = frame.sort_values(["occupancy", "registers"], ascending=[False, True], kind="stable")
    lines = [line.split() for line in shown.out.splitlines()]
    start = next(i for i, line in enumerate(lines) if "limited" in line)
    shown_as = [" ".join(line[7:]) for line in lines[start + 1 :] if line[:2] == ["sm_90", "doubler"]]
    space = families.load_family(folder).space
    ids = [*frame["configuration"][:2], frame["configuration"].iloc[-1]]
    assert shown_as == [space.configuration(one).changes(space.control) for one in ids]
    assert "9 between are in static.csv" in shown.out
    figures = frame["registers"]
    assert figures.nunique() > 2
    summed = {line[2]: " ".join(line[3:]) for line in lines if line[:2] == ["sm_90", "doubler"]}
    told = f"12 {figures.min()} to {figures.max()}, median {figures.sort_values().iloc[5]} 0 "
    assert summed["all"].startswith(told)
    narrow = frame[frame["block_size"] == 32]["registers"]
    assert narrow.nunique() == 1
    assert summed["block_size=32"] == f"3 {narrow.iloc[0]} 0 50%"


@pytest.mark.nvrtc
@pytest.mark.parametrize("broken", ["x.lod(i)", "x.load(i, Policy::block_size == 64 ? wrong : 0)"])
def test_a_static_sweep_that_does_not_compile_says_why_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    folder = write_family(tmp_path / "doubler", source=SOURCE.replace("x.load(i)", broken))
    assert main(["sweep", str(folder), "--static", "--out", str(tmp_path / "out")]) == 6
    shown = capsys.readouterr()
    assert f"12 configurations in {tmp_path / 'out' / 'static.csv'}, 12 of them compile_failed" in shown.out
    assert "error: no configuration compiles for sm_90" in shown.err
    assert "12 compile_failed, one of them block_size=" in shown.err
    assert f"{folder / 'doubler.cu'}(5): error: " in shown.err
    assert broken in shown.err


@pytest.mark.nvrtc
def test_a_static_sweep_of_which_some_compiles_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = '  static_assert(Policy::block_size != 32, "too small");\n  const unsigned i'
    folder = write_family(tmp_path / "doubler", source=SOURCE.replace("  const unsigned i", check))
    assert main(["sweep", str(folder), "--static", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "static.csv, 3 of them compile_failed" in shown.out
    assert "warning: some do not compile\n3 compile_failed, one of them block_size=32," in shown.err
    assert "too small" in shown.err


@pytest.mark.nvrtc
def test_a_static_sweep_of_several_architectures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_family(tmp_path / "doubler")
    out = tmp_path / "out"
    archs = [word for arch in ARCHS for word in ("--arch", arch)]
    assert main(["sweep", str(folder), "--static", *archs, "--out", str(out)]) == 0
    assert f"report       {out / 'report.html'}" in capsys.readouterr().out
    page = read_page(out / "report.html")
    assert [row[0] for row in page.tables["static_doubler"][1:]] == list(ARCHS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.mark.chromium
@pytest.mark.parametrize("with_record", [False, True])
def test_it_opens_without_a_word_on_the_console(written: Path, browser: Any, with_record: bool) -> None:
    path = write_static_report(written, [fake_study()] if with_record else [], {})
    page = browser.new_page(viewport={"width": 1024, "height": 800})
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri() + "#static")
    page.locator("#static .chart .main-svg").first.wait_for()
    assert page.locator("#static h1").text_content() == "doubler: static pass"
    assert page.locator("article:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#theme").click()
    page.wait_for_timeout(100)
    page.close()
    assert problems == []
