"""Ranks in several starts, with ties planted: all choose alike, however they ask for it."""

from pathlib import Path

import equal_choices
import harness
import pytest
from mpi_program import launcher
from result_files import read_rows


@pytest.mark.mpi
def test_ranks_choose_alike_in_each_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, library = launcher() or ("", "")
    monkeypatch.setenv("MPI4PY_LIBMPI", library)
    out = tmp_path / "out.csv"
    words = [
        "--starts",
        "2",
        "--by",
        "mpiexec",
        "--ways",
        "frozen,frozen-nearest,agreement",
        "--mpiexec",
        program,
        "--out",
        str(out),
    ]
    assert equal_choices.main(["--ranks", "2", *words]) == 0
    rows = read_rows(out)
    assert len(rows) == 2 * 3
    assert {(row["different"], row["as_first_start"]) for row in rows} == {("1", "1")}
    assert {"predicted", "nearest"} == {row["chosen"].partition(":")[0] for row in rows}


@pytest.mark.mpi
def test_ranks_that_are_left_to_themselves_may_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the script could not see it: without an agreement each takes its own files."""
    program, library = launcher() or ("", "")
    monkeypatch.setenv("MPI4PY_LIBMPI", library)
    script = tmp_path / "equal_choices.py"
    text = Path(equal_choices.__file__).read_text()
    script.write_text(
        text.replace("loaded(place, name, own, agreement=AGREEMENT)", "loaded(place, name, own)")
    )
    monkeypatch.setattr(equal_choices, "__file__", str(script))
    monkeypatch.setenv("PYTHONPATH", str(Path(harness.__file__).parent))
    words = [
        "--starts",
        "1",
        "--by",
        "mpiexec",
        "--ways",
        "agreement",
        "--mpiexec",
        program,
        "--out",
        str(tmp_path / "out.csv"),
    ]
    assert equal_choices.main(["--ranks", "2", *words]) == 1
    assert "start 1, 2 ranks, mpiexec, agreement: [[" in capsys.readouterr().out


@pytest.mark.torch
def test_ranks_of_torchrun_choose_alike_on_tensors(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = ["--by", "gloo", "--ranks", "2", "--starts", "1", "--ways", "agreement,spread", "--out", str(out)]
    assert equal_choices.main(words) == 0
    (row,) = read_rows(out)  # RankSpread is MPI's
    assert (row["by"], row["way"], row["different"]) == ("gloo", "agreement", "1")
    assert row["chosen"].startswith("predicted: ")


@pytest.mark.parametrize(
    ("program", "seconds", "why"),
    [("exit 3", "60", "exit code 3"), ("exec sleep 600", "0.1", "no end within 0.1 s")],
)
def test_a_start_that_fails_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, seconds: str, why: str
) -> None:
    """The others go on; a way of which nothing is known is not alike."""
    monkeypatch.setattr(equal_choices, "find_spec", lambda name: name != "torch")
    script, out = tmp_path / "mpiexec", tmp_path / "out.csv"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    words = [
        "--ranks",
        "2",
        "--starts",
        "2",
        "--ways",
        "agreement,tuned",
        "--seconds",
        seconds,
        "--out",
        str(out),
    ]
    assert equal_choices.main([*words, "--mpiexec", str(script), "--at-once", "2"]) == 1
    rows = read_rows(out)
    assert [(row["start"], row["way"], row["different"], row["chosen"]) for row in rows] == [
        (start, way, "0", f"failed: {why}") for start in "12" for way in ("agreement", "tuned")
    ]


def test_no_start_begins_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(equal_choices, "find_spec", lambda name: name != "torch")
    words = [
        "--mpiexec",
        "false",
        "--within",
        "-1",
        "--starts",
        "3",
        "--ranks",
        "2",
        "--out",
        str(tmp_path / "out.csv"),
    ]
    assert equal_choices.main(words) == 1
    printed = capsys.readouterr().out
    assert "gloo is left out: no torch" in printed and "0 of 0 alike; 3 starts came too late" in printed
    with pytest.raises(SystemExit, match="nothing to start ranks with"):
        equal_choices.main(["--by", "gloo"])
