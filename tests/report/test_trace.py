"""A sweep's timeline, as Perfetto reads it."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from fakes import sweep, write_family

from autotune.cli.commands import main
from autotune.errors import StoreError
from autotune.record import read_record, write_results
from autotune.report import write_trace


def test_each_trial_has_its_place_and_its_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    family = str(write_family(tmp_path / "doubler"))
    words = ["sweep", family, "--device", "cpu", "--samples", "3", "--out", "out", "--policies", "policies"]
    assert main(words) == 0
    assert main(["report", "out", "--trace", "trace.json"]) == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (study,) = read_record("out")
    trials = [event for event in events if event.get("cat") == "trial"]
    ran = [trial for trial in study.trials if trial.same_as is None and trial.state == "measured"]
    assert {event["name"] for event in trials} == {trial.configuration.id for trial in ran}
    for trial in trials:
        parts = [
            e
            for e in events
            if e.get("cat") == "phase" and trial["ts"] <= e["ts"] < trial["ts"] + trial["dur"]
        ]
        assert [part["name"] for part in parts] == ["place", "verify", "measure"]
        # exactly, or a viewer nests the next trial in this one
        ends = [part["ts"] + part["dur"] for part in parts]
        assert ends == [*(part["ts"] for part in parts[1:]), trial["ts"] + trial["dur"]]
    ends = sorted((event["ts"], event["ts"] + event["dur"]) for event in trials)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))  # one process
    named = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert any(name.startswith("doubler on ") for name in named)


def test_a_record_without_times_has_no_timeline(tmp_path: Path) -> None:
    study = sweep(write_family(tmp_path / "doubler"), tmp_path).run()
    untimed = replace(study, trials=tuple(replace(t, begun_s=0.0) for t in study.trials))
    with pytest.raises(StoreError, match="no trial of this record has a start time"):
        write_trace([untimed], tmp_path / "trace.json")
    table = write_results([study], tmp_path / "results.csv")
    words = ["report", str(table), "--out", str(tmp_path / "again")]
    assert main([*words, "--trace", str(tmp_path / "trace.json")]) == StoreError.exit_code
    assert not list(tmp_path.glob("trace.json")) and not list((tmp_path / "again").iterdir())
