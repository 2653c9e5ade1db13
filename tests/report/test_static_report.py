"""The static pass grown up: hints from registers and spills, occupancy over block sizes, its part of the report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import SOURCE, write_family
from hypothesis import given
from hypothesis import strategies as st
from report_pages import HOSTILE, fake_study, read_page

from autotune.cli.commands import main
from autotune.compile.occupancy_model import LIMITS, occupancy
from autotune.compile.profile import KernelProfile
from autotune.compile.static_pass import (
    BLOCK_SIZES,
    StaticProfile,
    occupancy_curve,
)
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import StoreError
from autotune.report.files import write_all, write_static_report
from autotune.report.static_pass import read_static, write_static

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


@given(st.sampled_from(sorted(LIMITS)), st.integers(16, 255), st.integers(0, 40000))
def test_a_curve_is_the_occupancy_at_each_size(arch: str, registers: int, shared: int) -> None:
    curve = occupancy_curve(arch, registers, shared)
    assert curve == [occupancy(arch, size, registers, shared).occupancy for size in range(32, 1025, 32)]
    assert len(curve) == len(BLOCK_SIZES)


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
    same = replace(fake_study(), family="doubler", about=fake_study().about.update(about))
    older = replace(
        same, workload="old", about=same.about.update({"space_digest": "0", "date": "2026-01-01"})
    )
    page = read_page(write_all([same, older], written)["report"])
    assert "static_doubler" in page.tables
    edited = replace(same, about=same.about.update({"source_digest": "0", "date": "2026-01-04"}))
    page = read_page(write_all([edited, same, older], written)["report"])
    assert "static_doubler" not in page.tables
    assert (
        "The static pass in static.csv is left out: the sources changed between it and what was measured."
        in page.text
    )
    assert "autotune sweep doubler --static writes it again" in page.text
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
    monkeypatch.setattr("autotune.report.progress_bar.LINE_SECONDS", 0.0)
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
