"""report.html: true to the record, whatever names and messages it holds."""

import re
import subprocess
import sys
import time
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from fakes import sweep
from report_pages import CONTROL, HOSTILE, POLICIES, RESULTS, Page, embedded, fake_study, measured, read_page
from result_files import read_frame
from rich.console import Console

from autotune import figures as units
from autotune.cli import report as reporting
from autotune.compile.profile import KernelProfile
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import StoreError
from autotune.files import clean
from autotune.policy.merge import update
from autotune.record import Provenance
from autotune.record.results_csv import read_results, results_frame, write_results
from autotune.record.study import Study
from autotune.record.trial import Trial
from autotune.report import page as page_module
from autotune.report.files import find_use, make_generator, write_all
from autotune.report.page import write_report
from autotune.report.ranking import LONGEST, configurations
from autotune.report.result_section import Use, roles_of
from autotune.report.tables import study_html


@pytest.fixture(scope="module")
def studies() -> tuple[Study, Study]:
    return fake_study("primer", 1), fake_study(f"hapmap {HOSTILE}", 2)


@pytest.fixture(scope="module")
def report(studies: tuple[Study, Study], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(studies, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return read_page(report)


# ---- report.html


def test_report_figures_equal_the_csv(studies: tuple[Study, Study], page: Page, tmp_path: Path) -> None:
    """With pandas: the winner's time, the margin over the control, an effect, a preset's and a regret."""
    frame = pd.read_csv(write_results(studies, tmp_path / "results.csv"))
    first = frame[(frame["workload"] == "primer") & (frame["state"] == "measured")]
    first = first.set_index("configuration")
    best = first["time_ms"].min()
    assert float(page.cards["time_ms"]) == pytest.approx(best)
    assert units.duration(best) in page.text
    margin = first.loc[CONTROL.id, "time_ms"] / best
    assert float(page.cards["margin_over_control"]) == pytest.approx(margin)
    assert units.ratio(margin) in page.text

    others = ["axes", "packing", "block_size", "policy_state"]
    wide = first.pivot(index=others, columns="memory", values="time_ms")
    mean = (100 * (wide["texture"] / wide["global"] - 1)).mean()
    head, *rows = page.tables["effects"]
    shown = next(dict(zip(head, row, strict=True)) for row in rows if row[2] == "texture")
    assert float(shown["mean_percent"]) == pytest.approx(mean)

    head, *rows = page.tables["presets"]
    rung = next(dict(zip(head, row, strict=True)) for row in rows if row[0] == "texture")
    texture = frame[(frame["workload"] == "primer") & (frame["preset"] == "texture")]["time_ms"].iloc[0]
    assert float(rung["time_over_winner"]) == pytest.approx(texture / best)

    table = frame.pivot_table(index="configuration", columns="workload", values="time_ms")
    worst = (table / table.min()).dropna().max(axis=1)
    head, *rows = page.tables["across_workloads"]
    chosen = dict(zip(head, rows[0], strict=True))
    assert (chosen["configuration"], float(chosen["worst"])) == (worst.idxmin(), pytest.approx(worst.min()))


def test_hostile_text_shows_as_text(page: Page) -> None:
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 3
    ours = 2 * len(POLICIES) + 2  # the winners' chips, the program's name, the regret of the choice for all
    assert len([tag for tag, _ in page.tags if tag == "b"]) == ours
    assert "tree <b>walk</b>" in page.text
    assert "</script><b>planes" in page.text
    assert "hapmap <script>alert('x')</script> \"q\"" in page.text
    assert not [name for _, values in page.tags for name in values if name.startswith("on")]


def test_hostile_text_is_data_in_scripts_and_charts(report: Path, page: Page) -> None:
    data = embedded(page)
    reasons = data["trials"]["study-1"]["columns"][-1]["names"]
    assert any(reason.startswith("<script>alert('x')</script>") for reason in reasons)
    raw = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', report.read_text(), re.DOTALL
    )
    assert raw
    assert not re.search("[<>&\u2028]", raw[1])
    labels = data["charts"]["study-1-chart-configurations"]["layout"]["yaxis"]["ticktext"]
    assert any("&lt;/script&gt;&lt;b&gt;planes" in label for label in labels)
    assert not any("<" in label for label in labels)


def test_report_is_one_small_file_that_asks_for_nothing(report: Path, page: Page) -> None:
    assert report.stat().st_size < 8_000_000
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]
    for tag, values in page.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert (values.get(name) or "#").startswith(("#", "data:")), (tag, values)
    assert any(
        "default-src 'none'" in str(values.get("content")) for tag, values in page.tags if tag == "meta"
    )
    ours = [script for script in page.scripts if "plotly.js v" not in script[:200]]
    assert len(ours) == 2
    for text in (*ours, (Path(page_module.__file__).parent / "page.css").read_text()):
        assert "http:" not in text
        assert "https:" not in text
    assert "plotly.js v" in max(page.scripts, key=len)[:200]


def test_every_trial_is_in_the_page(studies: tuple[Study, Study], page: Page) -> None:
    for i, study in enumerate(studies):
        shown = embedded(page)["trials"][f"study-{i + 1}"]
        columns = {column["key"]: column for column in shown["columns"] if column["kind"] != "policy"}
        assert shown["rows"] == shown["total"] == 108
        states = [columns["state"]["names"][code] for code in columns["state"]["codes"]]
        assert {state: states.count(state) for state in set(states)} == study.states()
        times = sorted(measurement.time_ms for _, measurement in measured(study))
        assert columns["time_ms"]["values"][: len(times)] == pytest.approx(times, rel=1e-5)


def test_a_chart_has_its_table_and_download(page: Page) -> None:
    charts = [str(v["id"]) for tag, v in page.tags if tag == "div" and v.get("class") == "chart"]
    assert set(charts) == set(embedded(page)["charts"])
    assert sorted(charts) == sorted(v["data-points"] for _, v in page.tags if v.get("data-points"))
    for name in (
        "presets", "configurations", "importance", "effects", "pairs_1", "interactions", "occupancy_walk",
        "across_workloads", "rank_correlation", "pareto", "break_even", "best_so_far", "states",
    ):  # fmt: skip
        assert name in page.tables
        assert [v for tag, v in page.tags if tag == "button" and v.get("data-download") == name]


def test_the_six_sections_are_there(page: Page) -> None:
    every = [v["id"] for _, v in page.tags if v.get("id")]
    assert len(every) == len(set(every))
    ids = [str(v.get("id")) for tag, v in page.tags if tag == "section"]
    for study in ("study-1", "study-2"):
        names = ("result", "effects", "why", "choice", "search", "trials")
        assert [name for name in ids if name.startswith(study)] == [f"{study}-{name}" for name in names]


def test_times_wider_than_thirtyfold_get_a_logarithmic_axis(page: Page) -> None:
    data = embedded(page)
    axis = data["charts"]["study-1-chart-configurations"]["layout"]["xaxis"]
    assert axis["type"] == "log"
    study = fake_study()
    timed = enumerate(measured(study))
    near = [replace(t, measurement=replace(m, median_ms=1 + i / 100)) for i, (t, m) in timed]
    study = replace(study, trials=tuple(near))
    assert study.decision
    _, chart = configurations(study, study.decision, roles_of(study, study.decision))
    assert "type" not in chart.figure["layout"]["xaxis"]


def test_warnings_are_said(tmp_path: Path) -> None:
    study = fake_study()
    same = [replace(t, measurement=replace(m, median_ms=5.0)) for t, m in measured(study)]
    failed = [trial for trial in study.trials if not trial.measurement]
    about = study.about.update({"interrupted": True, "throttle_reasons": 0x40, "floor_ms": 4.0})
    study = replace(study, about=about, trials=(*same, *failed))
    text = read_page(write_report([study], tmp_path / "report.html")).text
    assert f"{len(failed)} of 108 configurations failed: {len(failed)} compile_failed" in text
    assert "throttled (" in text
    assert "interrupted" in text
    assert "Policy memory changed nothing beyond noise (at most 0.0 %)" in text
    assert "less than three empty kernels" in text
    assert "held the clock down" in text
    assert f"The tie set: {len(same)} configurations" in text


def test_a_control_that_failed_is_said(tmp_path: Path) -> None:
    study = fake_study()
    control = next(t for t in study.trials if t.configuration == CONTROL)
    wrong = replace(control, state="wrong_result", reason="D[0] is 1", measurement=None)
    rest = tuple(t for t in study.trials if t is not control)
    page = read_page(write_report([replace(study, trials=(wrong, *rest))], tmp_path / "report.html"))
    assert "The control was not measured: wrong_result, D[0] is 1." in page.text
    assert "margin_over_control" not in page.cards
    assert page.tables["presets"][0].count("state") == 1


def test_only_the_pages_of_one_workload_have_numbered_sections(report: Path) -> None:
    html = report.read_text(encoding="utf-8")
    titles = re.findall(r'<section id="(\w+)-[^>]*>\s*<h2>(?:<span>(\d)</span> )?', html)
    numbers: dict[str, str] = {}
    for anchor, number in titles:
        numbers[anchor] = numbers.get(anchor, "") + (number or "-")
    assert numbers == {"across": "---", "study": "123456" * 2}


def test_a_winner_that_noise_may_have_chosen_has_a_warning(tmp_path: Path) -> None:
    study = fake_study()
    timed = sorted(measured(study), key=lambda one: one[1].time_ms)
    wide = tuple(replace(t, measurement=replace(m, spread=0.9)) for t, m in timed[:8])
    text = read_page(write_report([replace(study, trials=wide)], tmp_path / "report.html")).text
    best = timed[0][1].time_ms
    near = sum(m.time_ms <= 1.9 * best for _, m in timed[1:8])
    assert 4 <= near < 7
    assert f"and {near} others are within it: noise may have decided." in text
    assert "noise may" not in read_page(write_report([study], tmp_path / "report.html")).text


def test_a_tied_runner_up_and_what_was_not_timed_again_are_explained(tmp_path: Path) -> None:
    study = fake_study()
    (first, at), (second, _), (third, _), *_ = sorted(measured(study), key=lambda one: one[1].time_ms)
    final = [replace(t, measurement=replace(at, retimed_ms=ms)) for t, ms in ((first, 10.0), (second, 10.01))]
    before = replace(third, measurement=replace(at, median_ms=10.005))
    page = read_page(write_report([replace(study, trials=(*final, before))], tmp_path / "report.html"))
    assert "margin over the runner-up, which is tied" in page.text
    assert "1 that are not in the tie set have a shorter time than one that is" in page.text


def test_reports_of_little(tmp_path: Path) -> None:
    """Nothing at all, nothing timed, one trial, and a cpu, whose kernels have no registers."""
    assert "holds no study" in read_page(write_report([], tmp_path / "none.html")).text
    study = fake_study()
    failed = tuple(trial for trial in study.trials if not trial.measurement)
    text = read_page(write_report([replace(study, trials=failed)], tmp_path / "failed.html")).text
    assert "Nothing was timed" in text
    one = replace(study, trials=study.trials[:1], presets={}, about=Provenance())
    page = read_page(write_report([one], tmp_path / "one.html"))
    assert "margin_over_runner_up" not in page.cards
    assert "runner-up: " not in page.text
    assert "effects" not in page.tables
    cpu = [replace(t, profiles=(KernelProfile(kernel="walk"),)) for t in study.trials]
    page = read_page(write_report([replace(study, trials=tuple(cpu))], tmp_path / "cpu.html"))
    assert "occupancy_walk" not in page.tables
    assert "registers" not in page.tables["configurations"][0]
    assert results_frame([replace(study, trials=tuple(cpu))])["registers_walk"].isna().all()


def test_ten_thousand_trials_with_long_reasons_stay_under_8_mb(tmp_path: Path) -> None:
    study = fake_study()
    trials = [
        replace(
            trial,
            configuration=Configuration({**trial.configuration, "unroll": i}),
            reason=trial.reason and f"{i} {trial.configuration.id} {HOSTILE * 40}",
        )
        for i in range(93)
        for trial in study.trials
    ]
    study = replace(study, trials=tuple(trials), control=Configuration({**CONTROL, "unroll": 0}), presets={})
    assert len(study.trials) > 10_000
    began = time.process_time()
    assert write_report([study], tmp_path / "report.html").stat().st_size < 8_000_000
    print(f"{len(study.trials):,} trials: {time.process_time() - began:.1f} s of this processor")


def test_importing_the_package_loads_neither_pandas_nor_plotly() -> None:
    code = "import sys, autotune.report; sys.exit('pandas' in sys.modules or 'plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- what else may be known: counters, ceilings, the family


def known(study: Study) -> Study:
    """The control was profiled; each call moves 40 MB by its declaration."""
    counters = {CONTROL.id: {"walk": {"l1_hit_share": 0.75, "dram_bytes": 2e6}}}
    return replace(study, about=study.about.update({"bytes": 4e7, "counters": counters}))


def test_ncu_and_ceilings_where_they_are_known(tmp_path: Path) -> None:
    study = known(fake_study())
    (tmp_path / "limits.json").write_text(
        '{"device_name": "GPU <1>", "ceilings": {"bytes_per_s": 1e12, "steps_per_s": 1e14, "dram_bytes_per_s": 4e12}}'
    )
    write_all([study], tmp_path)
    page = read_page(tmp_path / "report.html")
    head, row = page.tables["counters"]
    shown = dict(zip(head, row, strict=True))
    assert (shown["l1_hit_share"], shown["dram_bytes"], shown["kernel"]) == ("0.75", "2000000.0", "walk")
    head, *rows = page.tables["ceilings"]
    control = next(r for r in (dict(zip(head, row, strict=True)) for row in rows) if r["role"] == "control")
    seconds = float(control["time_ms"]) / 1000
    assert float(control["share_of_bytes_ceiling"]) == pytest.approx(4e7 / seconds / 1e12)
    assert float(control["share_of_steps_ceiling"]) == pytest.approx(1e9 / seconds / 1e14)
    assert float(control["share_of_dram_bytes_ceiling"]) == pytest.approx(2e6 / seconds / 4e12)
    assert control["binding_unit"] == "bytes"
    columns = [column["key"] for column in embedded(page)["trials"]["study-1"]["columns"]]
    assert "share_of_ceiling" in columns


def test_ceilings_beside_the_record_and_what_a_family_needs_of_a_unit(tmp_path: Path) -> None:
    """The record is in another folder than its report, as a table, which keeps the rate of the unit."""
    study = replace(fake_study(), about=fake_study().about.update({"needs": {"mufu": 5e8}}))
    kept = write_results([study], tmp_path / "kept" / "results.csv")
    (kept.parent / "limits.json").write_text('{"device_name": "GPU <1>", "ceilings": {"mufu_per_s": 1e13}}')
    reporting.report([str(kept)], tmp_path / "made", Console(quiet=True))
    head, *rows = read_page(tmp_path / "made" / "report.html").tables["ceilings"]
    control = next(r for r in (dict(zip(head, row, strict=True)) for row in rows) if r["role"] == "control")
    seconds = float(control["time_ms"]) / 1000
    assert float(control["share_of_mufu_ceiling"]) == pytest.approx(5e8 / seconds / 1e13)
    assert control["binding_unit"] == "mufu"
    rates = pd.read_csv(tmp_path / "made" / "results.csv").set_index("preset")["mufu_per_s"]
    assert rates["control naive"] == pytest.approx(5e8 / seconds)


def test_a_kernel_that_was_not_launched_has_no_time(tmp_path: Path) -> None:
    study = fake_study(kernels=("walk", "table"))
    without = [
        replace(t, measurement=replace(t.measurement, kernel_ms={"walk": t.measurement.median_ms}))
        if t.measurement and t.configuration["memory"] != "texture"
        else t
        for t in study.trials
    ]
    page = read_page(write_report([replace(study, trials=tuple(without))], tmp_path / "report.html"))
    rows = {name: page.tables[f"occupancy_{name}"] for name in ("walk", "table")}
    many = {
        name: sum(int(row[head.index("configurations")]) for row in body)
        for name, (head, *body) in rows.items()
    }
    measured_trials = [t for t in study.trials if t.measurement]
    assert many["walk"] == len(measured_trials)
    assert many["table"] == sum(t.configuration["memory"] == "texture" for t in measured_trials)


def test_ceilings_of_another_device_say_nothing(tmp_path: Path) -> None:
    limits = {"device_name": "GPU 2", "ceilings": {"bytes_per_s": 1e12}}
    page = read_page(write_report([known(fake_study())], tmp_path / "report.html", ceilings=limits))
    assert "ceilings" not in page.tables


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"ceilings": {"bytes_per_s": 0}, "device_name": "G"}', '{"ceilings": {}}']
)
def test_ceilings_of_another_form_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "limits.json").write_text(text)
    with pytest.raises(StoreError, match=r"limits\.json"):
        write_all([fake_study()], tmp_path)


def test_the_generated_code_is_there_for_a_family_that_is() -> None:
    study = read_results([RESULTS / "mummergpu-h200.csv.xz"])[0]
    code = make_generator({})
    texts = [code(study, study.control), code(study, study.presets["mummergpu-2.0"])]
    assert all("struct" in text and "nodes" in text for text in texts)
    assert texts[0] != texts[1]
    changed = replace(study, about=study.about.update({"space_digest": "another"}))
    assert code(changed, study.control) == ""
    assert code(study, Configuration({**study.control, "tree_order": "gone"})) == ""
    assert code(replace(study, family="gone"), study.control) == ""


def test_the_numbers_of_real_studies_are_those_of_the_csv(tmp_path: Path) -> None:
    """Three figures of the H200's report, with pandas: a regret, a rank correlation, a mean effect on a kernel."""
    path = RESULTS / "mummergpu-h200.csv.xz"
    frame = read_frame(path)
    page = read_page(write_report(read_results([path]), tmp_path / "report.html"))
    times = frame.pivot(index="configuration", columns="workload", values="time_ms")
    worst = (times / times.min()).max(axis=1)
    head, *rows = page.tables["across_workloads"]
    first = dict(zip(head, rows[0], strict=True))
    assert (first["configuration"], float(first["worst"])) == (worst.idxmin(), pytest.approx(worst.min()))

    head, *rows = page.tables["rank_correlation"]
    shown = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    expected = times.corr(method="spearman").loc["hsill", "lmono"]
    assert float(shown["hsill"]["correlation_lmono"]) == pytest.approx(expected)

    one = frame[frame["workload"] == "hsill"]
    others = ["query_memory", "reference_memory", "reference_dims", "tree_memory", "tree_dims", "tree_order"]
    wide = one.pivot(index=others, columns="tree_grouping", values="kernel_match_ms")
    mean = (100 * (wide["merged"] / wide["split"] - 1)).mean()
    head, *rows = page.tables["effects_by_kernel"][:8]  # the first study's; its rows follow each other
    row = next(dict(zip(head, row, strict=True)) for row in rows if row[2] == "merged")
    assert float(row["mean_percent_match"]) == pytest.approx(mean)


# ---- the sentence under the title


def sentence(path: Path) -> str:
    html = path.read_text(encoding="utf-8")
    found = re.search(r'<p class="lead answer">(.*?)</p>', html, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", found[1])).split()) if found else ""


def test_the_first_sentence_says_what_to_use_and_how_sure_that_is(tmp_path: Path) -> None:
    study = fake_study()
    searched = {
        "tried": len(study.trials),
        "of": len(study.trials),
        "space": 768,
        "budget": "time limit 6 s",
    }
    study = replace(study, about=study.about.update({"searched": searched}))
    decision = study.decision
    assert decision is not None
    winner, over = decision.winner.configuration, decision.over_control
    file = "policies/tree/gpu-1.yaml"
    use = Use(file, 'autotune.load("tree")')
    said = sentence(write_report([study], tmp_path / "report.html", use=lambda _: use))
    times = [units.number(one) for one in (over.ratio, over.low, over.high)]
    assert said.startswith(
        f"Use {clean(winner.changes(study.control))}: {times[0]} times as fast as the control"
    )
    assert (
        f"({times[1]} to {times[2]}), mostly by packing=int8 and block_size=64; 108 of 768 tried (108 selected,"
        in said
    )
    assert said.endswith(
        f'time limit 6 s, exhaustive order); written to {file}; autotune.load("tree") takes it.'
    )
    without = sentence(write_report([study], tmp_path / "report.html"))
    assert "written" not in without and "takes it" not in without


def test_a_first_sentence_where_noise_is_wider_than_the_lead(tmp_path: Path) -> None:
    study = fake_study()
    (first, at), *_ = sorted(measured(study), key=lambda one: one[1].time_ms)
    control = next(t for t in study.trials if t.configuration == study.control)
    pair = (replace(first, measurement=replace(at, median_ms=622.0, spread=0.162)),
            replace(control, measurement=replace(at, median_ms=661.0, spread=0.03)))  # fmt: skip
    path = write_report([replace(study, trials=pair)], tmp_path / "report.html")
    assert sentence(path).startswith("No configuration is reliably faster than the control: the winner, ")
    assert "is 1.06 times as fast (0.912 to 1.27); 2 tried." in sentence(path)
    assert "0.912× to 1.27×" in read_page(path).text  # on the card
    assert "margin over the control 1.06× (0.912× to 1.27×)" in study_html(replace(study, trials=pair))
    alone = write_report([replace(study, trials=(control,))], tmp_path / "report.html")
    assert sentence(alone) == "No configuration is reliably faster than the control; 1 tried."


def test_the_policy_file_that_holds_the_winner_is_named(folder: Path, tmp_path: Path) -> None:
    study, family = sweep(folder, tmp_path).run(), families.load_family(folder)
    policies = tmp_path / "policies"
    assert find_use(study, [policies], {}) == Use()
    path = update(policies, [study])
    found = find_use(study, [policies], {"doubler": family})
    assert found == Use(str(path), f'autotune.load("{folder}", policies="{policies}")')
    assert find_use(study, [policies], {}) == Use(str(path))  # nobody knows the family's folder
    slower = tuple(t for t in study.trials if t != study.decision.winner) if study.decision else ()
    assert (
        find_use(replace(study, trials=slower), [policies], {}) == Use()
    )  # the file's winner is another one
    path.write_text("torn: [")
    assert find_use(study, [policies], {}) == Use()
    path.unlink()
    cpu = replace(study, about=study.about.update({"device_kind": "cpu"}))
    update(policies, [study])
    assert 'device="cpu"' in find_use(cpu, [policies], {"doubler": family}).call


def test_rows_are_in_the_order_of_the_times_they_show(tmp_path: Path) -> None:
    study = fake_study()
    (first, at), *rest, (last, other) = sorted(measured(study), key=lambda one: one[1].time_ms)
    again = (replace(first, measurement=replace(at, retimed_ms=1.6 * at.median_ms)),
             replace(last, measurement=replace(other, retimed_ms=1.6 * other.median_ms)))  # fmt: skip
    study = replace(study, trials=(*(t for t, _ in rest), *again))
    page = read_page(write_report([study], tmp_path / "report.html"))
    assert "The machine was 1.6 times slower when finalists were timed" in page.text
    head, *rows = page.tables["configurations"]
    shown = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["timed_again"] for row in (shown[0], shown[1], shown[-1])] == ["yes", "", "yes"]
    assert "winner" in shown[0]["role"]
    times = [float(row["time_ms"]) for row in shown]
    assert times[1:] == sorted(times[1:])
    frame = pd.read_csv(write_results([study], tmp_path / "results.csv"))
    placed = frame.sort_values("rank").reset_index()
    assert placed["configuration"][0] == first.configuration.id
    assert placed["time_ms"][1:].is_monotonic_increasing
    assert placed["rank"].tolist() == list(range(1, len(frame) + 1))


def test_a_label_has_the_policies_that_differ_with_their_names(tmp_path: Path) -> None:
    names = ("first_memory", "second_memory", "third_memory", "width")
    trials = []
    for i in range(30):
        values = (
            "texture" if i < 25 else "global",
            "readonly" if i % 2 else "global",
            "constant_memory" * (1 + i % 3),
        )
        configuration = Configuration(dict(zip(names, (*values, i), strict=True)))
        (_, measurement), *_ = measured(fake_study())
        made = replace(measurement, median_ms=1.0 + i, minimum_ms=1.0)
        trials.append(Trial(family="f", workload="w", device="d", configuration=configuration, state="measured",
                            measurement=made))  # fmt: skip
    study = replace(fake_study(), trials=tuple(trials), presets={}, about=Provenance(),
                    control=Configuration(dict.fromkeys(names, "global")))  # fmt: skip
    assert study.decision
    _, chart = configurations(study, study.decision, roles_of(study, study.decision))
    labels = chart.figure["layout"]["yaxis"]["ticktext"]
    assert labels[0].startswith("first_memory=texture, third_memory=constant_memory") and "…" in labels[2]
    assert max(map(len, labels)) <= LONGEST + len("  #30")
