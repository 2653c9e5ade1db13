"""results.csv and report.html: true to the record, whatever names and messages it holds."""

import itertools
import json
import math
import random
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autotune.errors import StoreError
from autotune.record import Study
from autotune.report import units, write_report, write_results
from autotune.report.effects import effects_frame
from autotune.report.results import COLUMNS, policy_columns, results_frame
from autotune.report.sections import configurations
from autotune.report.verdict import roles_of
from autotune.space import Configuration
from autotune.trial import KernelProfile, Measurement, Trial

HOSTILE = (
    "<script>alert('x')</script> \"q\", $x$ & </script><!-- \u2028\nsecond line\r\nthird\x00\x1b[31m \udc80"
)
POLICIES: dict[str, tuple[int | str, ...]] = {
    "axes": ("attribute_major", "instance_major"),
    "packing": ("int32", "int8", "</script><b>planes"),
    "memory": ("global", "texture", "constant"),
    "block_size": (128, 64, 256),
    "state": ("plain", "quoted, \"twice\""),
}  # fmt: skip
CONTROL = Configuration({name: values[0] for name, values in POLICIES.items()})


def fake_study(workload: str = "primer", seed: int = 1, *, kernels: tuple[str, ...] = ("walk",)) -> Study:
    """108 configurations: most measured, some failed, some hostile."""
    chance = random.Random(seed)
    trials = []
    for values in itertools.product(*POLICIES.values()):
        configuration = Configuration(dict(zip(POLICIES, values, strict=True)))
        ms = 40.0 * math.exp(chance.gauss(0, 0.5)) / (1 + 30 * (configuration["packing"] == "int8"))
        profiles = tuple(
            KernelProfile(
                kernel=kernel, block_size=128, registers=chance.randrange(16, 90), blocks_per_sm=8,
                occupancy=chance.choice([0.25, 0.5, 1.0]), limited_by="registers", static_shared_bytes=512,
            )
            for kernel in kernels
        )  # fmt: skip
        trial = Trial(
            family="tree <b>walk</b>", workload=workload, device="gpu-1", configuration=configuration,
            state="measured", profiles=profiles, phases_ms={"compile": 20.0, "verify": 3.5},
            notes=("throttled",) if chance.random() < 0.1 else (),
            measurement=Measurement(
                median_ms=ms, minimum_ms=ms * 0.98, spread=0.004, samples=31, footprint_bytes=4096,
                kernel_ms={kernel: ms / len(kernels) for kernel in kernels}, transform_ms=2.5,
            ),
        )  # fmt: skip
        if configuration != CONTROL and chance.random() < 0.15:
            trial = replace(trial, state="compile_failed", reason=HOSTILE, measurement=None, profiles=())
        trials.append(trial)
    presets = {"naive": CONTROL, "texture": Configuration({**CONTROL, "memory": "texture"})}
    about = {
        "device_name": "GPU <1>", "arch": "sm_90", "operations": 1e9, "operation_unit": "steps", "bytes": 4e6,
        "floor_ms": 0.002, "phases_s": {"compile": 1.5}, "busy_share": 0.75, "date": "2026-01-02",
        "policies": {name: {"values": list(v), "default": v[0]} for name, v in POLICIES.items()},
    }  # fmt: skip
    return Study(
        family="tree <b>walk</b>", workload=workload, device="gpu-1", identity=f"abc{seed}", control=CONTROL,
        presets=presets, about=about, trials=tuple(trials),
    )  # fmt: skip


def measured(study: Study) -> list[tuple[Trial, Measurement]]:
    return [(trial, trial.measurement) for trial in study.trials if trial.measurement]


@dataclass
class Page(HTMLParser):
    """What a reader sees: text without scripts, table rows by name, cards, and the embedded data."""

    scripts: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    cards: dict[str, str] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    _open: str = ""
    _rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        self._open = tag
        if tag == "table":
            self._rows = self.tables.setdefault(str(values["data-name"]), [])
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append(str(values.get("data-v" if tag == "td" else "data-key")))
        if tag == "data":
            self.cards.setdefault(str(values["data-card"]), str(values["value"]))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts.append(data)
        elif self._open != "style":
            self.text += data


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def embedded(page: Page) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(next(s for s in page.scripts if s.startswith("{")))
    return loaded


@pytest.fixture(scope="module")
def studies() -> tuple[Study, Study]:
    return fake_study("primer", 1), fake_study(f"hapmap {HOSTILE}", 2)


@pytest.fixture(scope="module")
def report(studies: tuple[Study, Study], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(studies, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return read_page(report)


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
    assert row["preset"] == "naive"
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
    known = {name.replace("<kernel>", kernel) for name in documented for kernel in ("match", "print")}
    assert set(results_frame([study])) - set(policy_columns([study]).values()) == known


def test_studies_of_different_families_share_a_table(tmp_path: Path) -> None:
    other = replace(fake_study(), family="atoms", control=Configuration({"order": "none"}), about={}, trials=(
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


# ---- effects


def test_effects_are_the_mean_over_all_pairs() -> None:
    study = fake_study()
    times = {trial.configuration: measurement.time_ms for trial, measurement in measured(study)}
    effects = effects_frame(study).set_index(["policy", "base", "value"])
    for name, values in POLICIES.items():
        for base, value in itertools.combinations(values, 2):
            pairs = [
                100 * (times[other] / ms - 1)
                for configuration, ms in times.items()
                if configuration[name] == base
                and (other := Configuration({**configuration, name: value})) in times
            ]
            row = effects.loc[(name, base, value)]
            assert row["pairs"] == len(pairs) > 10
            assert row["mean_percent"] == pytest.approx(statistics.mean(pairs))
            assert row["median_percent"] == pytest.approx(statistics.median(pairs))
            assert (row["minimum_percent"], row["maximum_percent"]) == pytest.approx((min(pairs), max(pairs)))
            assert row["faster_share"] == pytest.approx(sum(p < 0 for p in pairs) / len(pairs))


def test_effects_of_one_kernel_and_of_nothing() -> None:
    study = fake_study(kernels=("match", "print"))
    whole, one = effects_frame(study), effects_frame(study, kernel="match")
    assert one["mean_percent"].to_list() == pytest.approx(whole["mean_percent"].to_list())
    assert effects_frame(replace(study, trials=())).empty
    assert effects_frame(study, kernel="none").empty


# ---- report.html


def test_report_figures_equal_the_csv(studies: tuple[Study, Study], page: Page, tmp_path: Path) -> None:
    """With pandas: the winner's time, the margin over the control, an effect, a preset's and a regret."""
    frame = pd.read_csv(write_results(studies, tmp_path / "results.csv"))
    first = frame[(frame["workload"] == "primer") & (frame["state"] == "measured")]
    first = first.set_index("configuration")
    best = first["time_ms"].min()
    assert float(page.cards["time_ms"]) == pytest.approx(best)
    assert units.time(best) in page.text
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
    assert len([tag for tag, _ in page.tags if tag == "b"]) == 2 * len(POLICIES)  # the winners' chips
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
    labels = data["charts"]["study-1-configurations"]["layout"]["yaxis"]["ticktext"]
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
    for text in (*ours, (Path(units.__file__).parent / "page.css").read_text()):
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
    for name in ("presets", "configurations", "effects", "occupancy"):
        assert name in page.tables
        assert [v for tag, v in page.tags if tag == "button" and v.get("data-download") == name]


def test_times_wider_than_thirtyfold_get_a_logarithmic_axis(page: Page) -> None:
    data = embedded(page)
    axis = data["charts"]["study-1-configurations"]["layout"]["xaxis"]
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
    about = {**study.about, "interrupted": True, "throttle_reasons": 0x40, "floor_ms": 4.0}
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


def test_reports_of_little(tmp_path: Path) -> None:
    """Nothing at all, nothing timed, one trial, and a cpu, whose kernels have no registers."""
    assert "holds no study" in read_page(write_report([], tmp_path / "none.html")).text
    study = fake_study()
    failed = tuple(trial for trial in study.trials if not trial.measurement)
    text = read_page(write_report([replace(study, trials=failed)], tmp_path / "failed.html")).text
    assert "Nothing was timed" in text
    one = replace(study, trials=study.trials[:1], presets={}, about={})
    page = read_page(write_report([one], tmp_path / "one.html"))
    assert "runner-up" not in page.text
    assert "effects" not in page.tables
    cpu = [replace(t, profiles=(KernelProfile(kernel="walk"),)) for t in study.trials]
    page = read_page(write_report([replace(study, trials=tuple(cpu))], tmp_path / "cpu.html"))
    assert "occupancy" not in page.tables
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
    assert write_report([study], tmp_path / "report.html").stat().st_size < 8_000_000


def test_importing_the_package_loads_neither_pandas_nor_plotly() -> None:
    code = "import sys, autotune.report; sys.exit('pandas' in sys.modules or 'plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.0000004, "0.400 ns"), (0.00012, "120 ns"), (0.0123, "12.3 µs"), (0.9994, "999 µs"),
        (0.9996, "1.00 ms"), (1.2345, "1.23 ms"), (999.6, "1.00 s"), (12345.0, "12.3 s"), (1.5e7, "15000 s"),
        (math.inf, "–"), (0.0, "0 ns"),
    ],
)  # fmt: skip
def test_times_for_people(ms: float, text: str) -> None:
    assert units.time(ms) == text


def test_other_figures_for_people() -> None:
    assert [units.percent(v) for v in (-12.34, 0.04, -0.04, 250, 1234, math.nan)] == [
        "−12.3 %", "0.0 %", "0.0 %", "+250 %", "+1,234 %", "–",
    ]  # fmt: skip
    assert [units.ratio(v) for v in (1.0, 12.34, 1666, math.nan)] == ["1.00×", "12.3×", "1670×", "–"]
    assert [units.si(v).strip() for v in (0, 12, 999.9, 1.5e12)] == ["0", "12.0", "1.00 k", "1.50 T"]
    assert units.spread(0.0042) == "±0.4 %"
    assert [units.share(v) for v in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "<1 %", "50 %", ">99 %", "100 %"]
