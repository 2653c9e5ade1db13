"""results.csv, summary.csv and effects.csv: true to the record, and results.csv back into studies."""

import csv
import math
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import CONTROL, HOSTILE, RESULTS, fake_study, measured
from result_files import read_frame

from autotune.cli.commands import main
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import StoreError
from autotune.files import csv_text
from autotune.record import Provenance
from autotune.record.results_csv import (
    COLUMNS,
    EXTRA,
    policy_columns,
    read_results,
    results_frame,
    write_results,
)
from autotune.record.study import Study
from autotune.record.trial import Trial
from autotune.report.page import write_report
from autotune.report.tables import (
    EFFECTS,
    SUMMARY,
    effects_csv_frame,
    summary_frame,
)


@pytest.fixture(scope="module")
def studies() -> tuple[Study, Study]:
    return fake_study("primer", 1), fake_study(f"hapmap {HOSTILE}", 2)


# ---- results.csv


def test_csv_reads_back_with_no_options(studies: tuple[Study, Study], tmp_path: Path) -> None:
    frame = pd.read_csv(write_results(studies, tmp_path / "new" / "results.csv"))
    trials = [trial for study in studies for trial in study.trials]
    assert len(frame) == len(trials) == 216
    medians = [trial.measurement.median_ms if trial.measurement else math.nan for trial in trials]
    assert frame["median_ms"].to_list() == pytest.approx(medians, rel=1e-12, nan_ok=True)
    assert frame["state"].to_list() == [trial.state for trial in trials]
    assert frame["configuration"].to_list() == [trial.configuration.id for trial in trials]
    assert frame["block_size"].to_list() == [trial.configuration["block_size"] for trial in trials]
    reason = frame.loc[frame["state"] == "compile_failed", "reason"].iloc[0]
    assert reason == HOSTILE.replace("\r", "").replace("\0\33", "\\x00\\x1b").replace("\udc80", "\\udc80")
    assert frame.loc[frame["state"] == "measured", "reason"].isna().all()


def test_csv_figures_are_derived_from_the_record(studies: tuple[Study, Study]) -> None:
    frame = results_frame(studies)
    row = frame[frame["configuration"] == CONTROL.id].iloc[0]
    assert row["preset"] == "control naive"
    assert row["operations_per_s"] == pytest.approx(1e9 / (row["time_ms"] / 1000))
    assert row["bytes_per_s"] == pytest.approx(4e6 / (row["time_ms"] / 1000))
    assert row["kernel_walk_ms"] == row["median_ms"]
    assert row["static_shared_bytes_walk"] == 512
    assert row["compile_ms"] == 20.0
    assert pd.isna(row["retimed_ms"])


def test_retimed_median_is_the_time_to_rank_by() -> None:
    study = fake_study()
    trial, measurement = measured(study)[0]
    retimed = replace(trial, measurement=replace(measurement, retimed_ms=1.25))
    row = results_frame([replace(study, trials=(retimed,))]).iloc[0]
    assert (row["time_ms"], row["median_ms"]) == (1.25, measurement.median_ms)


def test_a_policy_named_like_a_column_keeps_both(studies: tuple[Study, Study]) -> None:
    assert policy_columns(studies)["state"] == "policy_state"
    assert set(results_frame(studies)["policy_state"]) == {"plain", 'quoted, "twice"'}


def test_every_column_is_documented() -> None:
    study = fake_study(kernels=("match", "print"))
    documented = set(COLUMNS) - {"<policy>"}
    documented -= {
        "counter_<counter>_<kernel>",
        "<unit>_per_s",
        "error_<output>",
        *EXTRA,
    }  # where profiled, where a family needs a unit or has a storage, where an objective asks for it
    known = {name.replace("<kernel>", kernel) for name in documented for kernel in ("match", "print")}
    assert set(results_frame([study])) - set(policy_columns([study]).values()) == known


def test_studies_of_different_families_share_a_table(tmp_path: Path) -> None:
    other = replace(fake_study(), family="atoms", control=Configuration({"order": "none"}), about=Provenance(), trials=(
        Trial(family="atoms", workload="w", device="cpu-1", configuration=Configuration({"order": "none"}),
              state="crashed", reason="signal 11"),
    ))  # fmt: skip
    frame = pd.read_csv(write_results([fake_study(), other], tmp_path / "results.csv"))
    assert frame["order"].iloc[-1] == "none"
    assert frame["block_size"].notna().sum() == 108


def test_writing_fails_whole_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        write_results([fake_study()], tmp_path / "taken")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="name a folder"):
        write_report([], tmp_path / "file" / "report.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"]


# ---- results.csv back into studies


@pytest.mark.parametrize("name", ["allpairs-h200.csv.xz", "mummergpu-h200.csv.xz"])
def test_what_was_recorded_on_the_h200_reads_back_without_loss(name: str, tmp_path: Path) -> None:
    studies = read_results([RESULTS / name])
    again = pd.read_csv(write_results(studies, tmp_path / "results.csv"))
    recorded = read_frame(RESULTS / name)
    if "transfer_bytes" not in recorded:  # it was recorded before there was this column
        assert again.pop("transfer_bytes").isna().all()
    if "rank" not in recorded:  # nor this one
        assert (again.pop("rank").notna() == (again["state"] == "measured")).all()
    pd.testing.assert_frame_equal(again, recorded)
    assert all(study.about.arch == "sm_90" and study.decision for study in studies)
    assert {len(study.trials) for study in studies} <= {128, 1072}


def test_hostile_studies_read_back(studies: tuple[Study, Study], tmp_path: Path) -> None:
    studies = (with_counters(studies[0]), studies[1])
    path = write_results(studies, tmp_path / "results.csv")
    back = read_results([path])
    assert [len(study.trials) for study in back] == [108, 108]
    assert back[0].control == Configuration(CONTROL)
    assert back[0].about.counters == studies[0].about.counters
    assert back[0].about.operations == pytest.approx(1e9)
    times = [[m.time_ms for _, m in measured(study)] for study in (studies[0], back[0])]
    assert times[0] == pytest.approx(times[1])
    assert [t.profiles for t in back[0].trials] == [t.profiles for t in studies[0].trials]
    again = pd.read_csv(write_results(back, tmp_path / "again.csv"))
    pd.testing.assert_frame_equal(again, pd.read_csv(path), rtol=1e-12)


def with_counters(study: Study) -> Study:
    """The control was profiled."""
    counters = {CONTROL.id: {"walk": {"l1_hit_share": 0.75, "dram_bytes": 2e6}}}
    return replace(study, about=study.about.update({"counters": counters}))


def test_ncu_of_kernels_whose_names_end_alike_read_back(tmp_path: Path) -> None:
    study = fake_study(kernels=("tiles", "scan_tiles"))
    counters = {CONTROL.id: {"tiles": {"l1_hit_share": 0.5}, "scan_tiles": {"l1_hit_share": 0.25}}}
    study = replace(study, about=study.about.update({"counters": counters}))
    (back,) = read_results([write_results([study], tmp_path / "results.csv")])
    assert back.about.counters == counters


def test_ncu_are_columns(studies: tuple[Study, Study]) -> None:
    frame = results_frame([with_counters(studies[0])]).set_index("configuration")
    assert frame.loc[CONTROL.id, "counter_l1_hit_share_walk"] == 0.75
    assert frame["counter_dram_bytes_walk"].notna().sum() == 1


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(deadline=None)
@given(reason=texts, value=texts.filter(bool), ms=st.floats(1e-6, 1e9))
def test_any_text_and_time_survive_the_table(
    reason: str, value: str, ms: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    control = Configuration({"state": "plain", "order": 1})
    other = Configuration({"state": f"x{value}", "order": 2})
    fake, measurement = measured(fake_study())[0]
    one = replace(fake, configuration=control, measurement=replace(measurement, median_ms=ms))
    two = replace(
        fake, configuration=other, state="crashed", measurement=None, profiles=(), reason=f"x{reason}"
    )
    study = replace(
        fake_study(), control=control, presets={"control": control}, about=Provenance(), trials=(one, two)
    )
    path = tmp_path_factory.getbasetemp() / "any.csv"
    first = write_results([study], path).read_bytes()
    (back,) = read_results([path])
    assert back.trials[0].measurement
    assert back.trials[0].measurement.median_ms == ms
    assert [t.configuration["order"] for t in back.trials] == [1, 2]
    assert write_results([back], path).read_bytes() == first


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["family,workload", "a,b"], "no column device, preset, state, median_ms"),
        (["family,workload,device,preset,state,median_ms", "a,b,c,control,measured,1"], "no column of a policy"),
        (["family,workload,device,preset,p,state,median_ms", "a,b,c,,x,measured,1"], "no row with the preset control"),
        (["family,workload,device,preset,p,state,median_ms", "a,b,c,control,x,done,1"], "state 'done' is not one of"),
        (["family,workload,device,preset,p,state,median_ms", "a,b,c,control,x,measured,fast"], "fast"),
        (["family,workload,device,preset,p,state,median_ms", "a,b,c,control,x,measured,nan"], "is no time"),
    ],
)  # fmt: skip
def test_a_table_of_another_form_is_refused(rows: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(StoreError, match=f"cannot read .*table.csv as a results.csv.*{said}"):
        read_results([path])
    with pytest.raises(StoreError, match="No such file"):
        read_results([tmp_path / "none.csv"])


# ---- summary.csv and effects.csv


def test_the_summary_has_the_named_configurations(studies: tuple[Study, Study], tmp_path: Path) -> None:
    frame = pd.read_csv(StringIO(csv_text(summary_frame(studies))))
    assert list(frame) == list(SUMMARY)
    first = frame[frame["workload"] == "primer"].set_index("role")
    assert list(first.index) == ["winner", "runner-up", "control", "naive", "texture", "minimax"]
    rows = pd.read_csv(write_results(studies[:1], tmp_path / "results.csv")).set_index("configuration")
    assert first.loc["winner", "time_ms"] == pytest.approx(rows["time_ms"].min())
    over = rows.loc[CONTROL.id, "time_ms"] / rows["time_ms"].min()
    assert first.loc["control", "time_over_winner"] == pytest.approx(over)
    assert bool(first.loc["winner", "in_tie_set"])
    assert first.loc["control", "once_ms"] == 2.5
    assert first.loc["winner", "measured"] == (rows["state"] == "measured").sum()


def test_the_summary_of_what_was_not_tried() -> None:
    study = replace(fake_study(), trials=())
    frame = summary_frame([study]).set_index("role")
    assert set(frame["state"]) == {"not_tried"}
    assert "winner" not in frame.index


def test_the_effects_of_each_kernel_alone_and_given_another_policy(tmp_path: Path) -> None:
    study = fake_study(kernels=("match", "print"))
    frame = pd.read_csv(StringIO(csv_text(effects_csv_frame([study]))))
    assert list(frame) == list(EFFECTS)
    assert set(frame["kernel"].dropna()) == {"match", "print"}
    times = pd.DataFrame([{**t.configuration, "ms": m.time_ms} for t, m in measured(study)])
    some = times[times["axes"] == "instance_major"]
    wide = some.pivot(index=["packing", "block_size", "state"], columns="memory", values="ms")
    change = (100 * (wide["texture"] / wide["global"] - 1)).dropna()
    row = frame[
        frame["kernel"].isna() & (frame["given_policy"] == "axes") & (frame["given_value"] == "instance_major")
        & (frame["policy"] == "memory") & (frame["base"] == "global") & (frame["value"] == "texture")
    ].iloc[0]  # fmt: skip
    assert row["pairs"] == len(change)
    assert row["mean_percent"] == pytest.approx(change.mean())
    assert row["minimum_percent"] == pytest.approx(change.min())
    assert math.isnan(row["importance"])


def test_tables_of_nothing_have_their_columns() -> None:
    assert list(effects_csv_frame([])) == list(EFFECTS)
    assert list(summary_frame([])) == list(SUMMARY)


# ---- autotune report


def test_a_report_is_made_from_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = RESULTS / "mummergpu-8800gtx" / "hsill.csv"
    assert main(["report", str(table), "--out", str(tmp_path / "new")]) == 0
    files = {"results.csv", "summary.csv", "effects.csv", "report.html"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == files
    shown = capsys.readouterr().out
    assert all(str(tmp_path / "new" / name) in shown for name in files)
    with (tmp_path / "new" / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 128
    assert main(["report", str(table)]) == 2
    assert "need --out DIR" in capsys.readouterr().err
    assert main(["report", "/nowhere", "/elsewhere", "--out", str(tmp_path)]) == 2
    assert "one record at a time" in capsys.readouterr().err


# ---- the documentation


@pytest.mark.parametrize(("heading", "columns"), [("summary.csv", SUMMARY), ("effects.csv", EFFECTS)])
def test_every_column_of_the_tables_is_described(heading: str, columns: dict[str, str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "results-csv.md").read_text(encoding="utf-8")
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE) == list(columns)


def test_a_table_without_the_control_takes_that_of_an_installed_family(tmp_path: Path) -> None:
    family = families.load_family("allpairs")
    tried = family.space.configurations("tiles")[0]
    study = replace(
        fake_study(), family="allpairs", control=tried, presets={"control": tried}, about=Provenance(),
        trials=(Trial(family="allpairs", workload="primer", device="gpu-1", configuration=tried, state="crashed"),),
    )  # fmt: skip
    path = write_results([study], tmp_path / "results.csv")
    path.write_text(path.read_text().replace(",control,", ",,"))
    (read,) = read_results([path])
    assert read.control == family.space.control
    assert read.trials[0].configuration == tried
    path.write_text(path.read_text().replace("allpairs,", "stranger,"))
    with pytest.raises(StoreError, match="no row with the preset control"):
        read_results([path])
