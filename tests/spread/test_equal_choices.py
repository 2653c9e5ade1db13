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
        text.replace("loaded(place, name, own, agreement=Agreement(gather))", "loaded(place, name, own)")
    )
    monkeypatch.setattr(equal_choices, "__file__", str(script))
    monkeypatch.setenv("PYTHONPATH", str(Path(harness.__file__).parent))
    words = ["--starts", "1", "--ways", "agreement", "--mpiexec", program, "--out", str(tmp_path / "out.csv")]
    assert equal_choices.main(["--ranks", "2", *words]) == 1
    assert "2 ranks, start 1, agreement: [[" in capsys.readouterr().out
