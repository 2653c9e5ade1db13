"""Kernel Tuner's cache files and T4 results: written, read back, and read by Kernel Tuner itself."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import fake_study

from autotune import kernel_tuner
from autotune.cli.commands import main
from autotune.declaration.space import Configuration
from autotune.errors import StoreError, UnknownName, UsageError
from autotune.kernel_tuner.cache import from_cache, parse, to_cache, write_cache
from autotune.kernel_tuner.records import import_files
from autotune.kernel_tuner.t4 import from_t4, to_t4, write_t4
from autotune.measure import Figure
from autotune.record import Provenance
from autotune.record.readers import read_record
from autotune.record.results_csv import read_results
from autotune.record.study import Study, find_newest_of_each
from autotune.record.trial import STATES, Measurement, Trial

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "allpairs-h200.csv.xz"
SIMULATION = """
import json, sys
import kernel_tuner
from kernel_tuner.file_utils import output_file_schema
import jsonschema
results, env = kernel_tuner.tune_cache(sys.argv[1], strategy=sys.argv[2], quiet=True, lang="C")
timed = [r for r in results if "__error__" not in r]
jsonschema.validate(json.load(open(sys.argv[3])), output_file_schema("results")[1])
best = min(timed, key=lambda r: r["time"])
print(json.dumps([len(results), best["time"], best["memory"], env["device_name"]]))
"""


@pytest.fixture(scope="module")
def wide() -> Study:
    return next(study for study in read_results([RECORDED]) if study.workload == "wide")


def told(study: Study) -> list[tuple[object, ...]]:
    """What an exchange must keep of each trial."""
    return [
        (t.configuration, t.state, t.reason, t.measurement and (t.measurement.time_ms, t.measurement.spread,
         t.measurement.samples, *map(t.measurement.value, ("transfer_bytes", "footprint_bytes"))))
        for t in study.trials
    ]  # fmt: skip


def names(study: Study) -> tuple[object, ...]:
    return study.family, study.workload, study.device, study.identity, study.control, study.presets


@pytest.mark.parametrize("form", ["kernel-tuner", "t4"])
def test_a_recorded_study_comes_back_as_it_was(wide: Study, form: str, tmp_path: Path) -> None:
    write = write_cache if form == "kernel-tuner" else write_t4
    (back,) = read_record(str(write(wide, tmp_path / "wide.json")))
    assert told(back) == told(wide)
    assert names(back) == names(wide)
    assert list(back.about.policies) == sorted(wide.control)
    assert back.decision
    assert wide.decision
    assert back.decision.winner.configuration == wide.decision.winner.configuration


def test_a_simulation_on_it(wide: Study, tmp_path: Path) -> None:
    write_cache(wide, tmp_path / "cache.json")
    with pytest.warns(UserWarning, match=r"configurations are not in .*cache.json: left out"):
        results, env = kernel_tuner.tune_cache(tmp_path / "cache", quiet=True)
    times = [t.measurement.time_ms for t in wide.trials if t.measurement]
    assert sorted(one["time"] for one in results if "time" in one) == sorted(times)
    assert env["best_config"]["time"] == min(times)
    assert env["best_config"]["memory"] == "texture"


@pytest.mark.kernel_tuner
@pytest.mark.parametrize("strategy", ["brute_force", "random_sample"])
def test_kernel_tuner_simulates_on_it(wide: Study, strategy: str, tmp_path: Path) -> None:
    """And the T4 file is one by the schema that Kernel Tuner carries."""
    cache, t4 = write_cache(wide, tmp_path / "cache.json"), write_t4(wide, tmp_path / "t4.json")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SIMULATION, str(cache), strategy, str(t4)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    visited, best, memory, device = json.loads(done.stdout)
    times = [t.measurement.time_ms for t in wide.trials if t.measurement]
    assert device == "NVIDIA H200"
    if strategy == "brute_force":
        assert (visited, best, memory) == (len(times), min(times), "texture")
    else:
        assert 0 < visited < len(times)
        assert best in times


# ---- any record

WORD = st.text("abcxyz_019", min_size=1, max_size=6)
TIME = st.floats(1e-4, 1e5)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    policies = draw(
        st.lists(WORD | st.sampled_from(["time", "state", "times"]), min_size=1, max_size=3, unique=True)
    )
    numbers = {name: draw(st.booleans()) for name in policies}
    values = {
        name: draw(
            st.lists(st.integers(-9, 999) if numbers[name] else WORD, min_size=1, max_size=3, unique=True)
        )
        for name in policies
    }
    combined = [Configuration({})]
    for name, some in values.items():
        combined = [Configuration({**one, name: value}) for one in combined for value in some]
    trials = []
    for i, configuration in enumerate(combined):
        state = "measured" if i == 0 else draw(st.sampled_from(STATES))
        measurement = None
        if state == "measured":
            ms = draw(TIME)
            measurement = Measurement(
                median_ms=ms, minimum_ms=ms, spread=draw(st.floats(0, 1)), samples=draw(st.integers(1, 99)),
                figures={name: Figure(draw(st.integers(0, 2**40))) for name in ("transfer_bytes", "footprint_bytes")},
            )  # fmt: skip
        reason = "" if measurement else draw(st.text(min_size=1, max_size=9))
        trials.append(
            Trial(
                family="f", workload="w <1>", device="gpu", configuration=configuration, state=state, reason=reason,
                measurement=measurement, phases_ms={"compile": draw(TIME)},
            )
        )  # fmt: skip
    return Study(
        family="f", workload="w <1>", device="gpu", identity="abc", control=combined[0],
        presets={"control": combined[0]}, about=Provenance(device_name="GPU"), trials=tuple(trials),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(studies())
def test_any_study_survives_both_forms(study: Study) -> None:
    cache = json.loads(json.dumps(to_cache(study)))
    back = from_cache(cache, "x.json")
    assert told(back) == told(study)
    assert names(back) == names(study)
    assert not {"time", "times", "state"} & set(cache["tune_params"])
    assert list(cache["cache"]) == [",".join(map(str, t.configuration.values())) for t in study.trials]
    again = from_t4(json.loads(json.dumps(to_t4(study))), "x.json")
    assert told(again) == told(study)
    assert names(again) == names(study)
    assert all(
        b.phases_ms["compile"] == a.phases_ms["compile"]
        for a, b in zip(study.trials, again.trials, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
       | st.dictionaries(st.sampled_from(["cache", "results", "tune_params_keys", "kernel_name", "configuration", "x"]),
                         inner, max_size=4), max_leaves=8))  # fmt: skip
def test_what_is_neither_is_refused_with_a_reason(content: object) -> None:
    for read in (from_cache, from_t4):
        with pytest.raises(StoreError, match=r"x\.json"):
            read(content, "x.json")  # type: ignore[arg-type]


# ---- other tuners' own files

OWN = """{
"device_name": "NVIDIA RTX A4000",
"kernel_name": "vector_add",
"problem_size": [100, 20],
"tune_params_keys": ["block_size_x", "mode"],
"tune_params": {"block_size_x": [64, 128, 256], "mode": ["a", "b"]},
"objective": "time",
"cache": {
"64,a": {"block_size_x": 64, "mode": "a", "time": 0.5, "times": [0.9, 0.4, 0.3], "compile_time": 440.1},
"128,a": {"block_size_x": 128, "mode": "a", "time": "CompilationFailedConfig"},
"128,b": {"block_size_x": 128, "mode": "b", "time": 0.25},
"256,b": {"block_size_x": 256, "mode": "b", "__error__": "RuntimeFailedConfig"},"""


def test_a_cache_that_kernel_tuner_left_open(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(OWN)
    (study,) = read_record(str(tmp_path / "own.json"))
    assert names(study)[:3] == ("vector_add", "100x20", "nvidia-rtx-a4000")
    assert study.control == Configuration({"block_size_x": 64, "mode": "a"})
    assert [t.state for t in study.trials] == ["measured", "compile_failed", "measured", "launch_failed"]
    first = study.trials[0].measurement
    assert first
    assert (first.median_ms, first.minimum_ms, first.samples) == (0.4, 0.3, 3)
    assert study.trials[2].measurement == Measurement(median_ms=0.25, minimum_ms=0.25, spread=1.0, samples=1)
    torn = OWN + '\n"64,b": {"block_size_x": 6'  # killed while it wrote
    assert len(parse(torn)["cache"]) == 4
    assert parse("{") is None


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(OWN)))
def test_a_cache_that_ends_anywhere_is_a_part_of_it_or_nothing(length: int) -> None:
    whole, part = parse(OWN)["cache"], parse(OWN[:length])
    assert part is None or part.get("cache", {}).items() <= whole.items()


def test_t4_of_another_tuner(tmp_path: Path) -> None:
    content = {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "seconds"},
        "results": [
            {"configuration": {"b": 32, "p": 0.5}, "times": {"runtimes": [2e-3, 3e-3, 4e-3]}, "invalidity": "correct",
             "correctness": 1, "objectives": ["t"], "measurements": [{"name": "t", "value": 9}]},
            {"configuration": {"b": 64, "p": 0.5}, "times": {}, "invalidity": "correct", "correctness": 1,
             "objectives": ["t"], "measurements": [{"name": "t", "value": 700, "unit": "us"}]},
            {"configuration": {"b": 64, "p": 1.5}, "times": {"compilation": 0.25, "framework": "unknown"},
             "invalidity": "timeout", "correctness": 0},
        ],
    }  # fmt: skip
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(content))
    (study,) = import_files([path], device="a100", control="b=64,p=0.5")
    assert names(study)[:3] == ("theirs", "theirs", "a100")
    assert study.control == Configuration({"b": 64, "p": "0.5"})
    times = [t.measurement.time_ms if t.measurement else math.nan for t in study.trials]
    assert times[:2] == pytest.approx([3.0, 0.7])
    assert study.trials[2].state == "timed_out" and study.trials[2].phases_ms == {"compile": 250.0}
    with pytest.raises(UnknownName, match=r"allowed: 32, 64"):
        import_files([path], control="b=63,p=0.5")
    (part,) = import_files([path], control="b=64")
    assert part.control == Configuration({"b": 64, "p": "0.5"})
    with pytest.raises(UsageError, match="is not among the configurations of theirs"):
        import_files([path], control="b=32,p=1.5")
    with pytest.raises(UsageError, match="same family, workload and device"):
        import_files([path, path])
    for spelling in ("milliseconds", "miliseconds"):  # the second is the benchmark hub's
        content["metadata"] = {"timeunit": spelling}
        path.write_text(json.dumps(content))
        (study,) = import_files([path])
        assert study.trials[0].measurement is not None
        assert study.trials[0].measurement.median_ms == pytest.approx(3e-3)
    assert to_t4(study)["metadata"]["timeunit"] == "milliseconds"
    content["metadata"] = {"timeunit": "fortnights"}
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=r"fortnights.*not one of s, seconds"):
        import_files([path])


# ---- the commands


def test_export_import_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = replace(fake_study(), family="walk", workload="one/two")
    source = tmp_path / "source"
    from autotune.record.results_csv import write_results

    write_results([study], source / "results.csv")
    assert main(["convert", str(source), "--to", "t4"]) == 0
    assert main(["convert", str(source / "results.csv"), "--out", str(tmp_path / "kt")]) == 0
    cache = tmp_path / "kt" / "walk-one_two-gpu_1.cache.json"
    assert cache.is_file()
    assert (source / "walk-one_two-gpu_1.t4.json").is_file()
    table = tmp_path / "back.csv"
    assert main(["import", str(cache), "--workload", "named", "--out", str(table)]) == 0
    frame, before = pd.read_csv(table), pd.read_csv(source / "results.csv")
    assert set(frame["workload"]) == {"named"}
    pd.testing.assert_series_equal(frame["time_ms"], before["time_ms"])
    pd.testing.assert_series_equal(frame["state"], before["state"])
    assert main(["report", str(cache), "--out", str(tmp_path / "report")]) == 0
    assert (tmp_path / "report" / "report.html").is_file()
    capsys.readouterr()
    assert main(["convert", str(source), "--to", "kernel-tunr"]) == 2
    assert "did you mean 'kernel-tuner'" in capsys.readouterr().err
    assert main(["report", str(cache)]) == 2
    assert main(["convert", str(cache)]) == 2


def test_records_of_every_kind(tmp_path: Path) -> None:
    old = replace(fake_study(seed=1), about=Provenance(date="2026-01-01"))
    new = replace(fake_study(seed=2), about=Provenance(date="2026-01-02"))
    assert find_newest_of_each([new, old]) == [new]
    for name, text in (("x.json", "[1]"), ("y.json", '{"a": 1}'), ("z.txt", ""), ("w.json", "{{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(StoreError, match=name):
            read_record(str(tmp_path / name))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(StoreError, match="no file"):
        read_record(str(tmp_path / "pipe.json"))
