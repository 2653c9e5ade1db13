"""What workloads lose with one another's winners."""

import csv
from pathlib import Path

import pytest
from fakes import sweep

from autotune.cli.commands import main
from autotune.declaration.space import Configuration
from autotune.record.regret import Regrets, of_studies, read_regrets, write_matrix
from autotune.record.results_csv import write_results

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
RECORDED = RESULTS / "allpairs-h200.csv.xz"
A, B, C = (Configuration({"p": v}) for v in "abc")
TIMES = {"one": {A: 1.0, B: 1.2, C: 3.0}, "two": {A: 2.0, B: 1.1, C: 1.0}}


def test_regrets_minimax_and_the_cost_of_one_for_all() -> None:
    found = Regrets(family="f", device="d", times=TIMES)
    assert found.best == {"one": A, "two": C}
    assert found.regret("two", A) == pytest.approx(1.0)
    assert found.minimax is not None
    assert found.minimax.configuration == B
    cost = found.cost_of_one(B)
    assert cost["worst"] == pytest.approx(0.2)
    assert cost["median"] == pytest.approx(0.15)
    assert cost["total"] == pytest.approx(2.3 / 2 - 1)
    part = Regrets(family="f", device="d", times={"one": {A: 1.0}, "two": {B: 1.0}})
    assert (part.everywhere, part.minimax) == ((), None)


def test_a_record_and_its_results_give_the_same(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    path = write_results([study], tmp_path / "results.csv")
    (from_csv,), (from_store,) = read_regrets(str(path)), of_studies([study])
    assert from_csv.best == from_store.best
    assert from_csv.times["small"] == pytest.approx(from_store.times["small"])
    assert from_store == read_regrets(str(tmp_path / "out"))[0]


def test_the_newest_rows_of_a_workload_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.csv"
    head = "family,workload,device,preset,p,state,median_ms,retimed_ms,date,identity\n"
    rows = [
        "f,w,d,control,a,measured,3.0,1.0,2026-01-02,1",
        "f,w,d,control,a,measured,9.0,,2026-01-01,2",
        "f,w,d,,b,measured,2.0,,2026-01-02,1",
        "f,v,d,control,b,crashed,,,2026-01-02,3",
    ]
    path.write_text(head + "\n".join(rows))
    (found,) = read_regrets(str(path))
    assert found.times == {"w": {A: 1.0, B: 2.0}}
    assert main(["regret", str(path)]) == 0
    assert "of one workload, its winner costs nothing: sweep another one" in capsys.readouterr().out


def test_the_command_prints_the_matrix_and_writes_it_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["regret", str(RECORDED), "--out", str(tmp_path / "matrix.csv")]) == 0
    shown = capsys.readouterr().out
    assert "regret of 3 workloads" in shown
    assert "one configuration for all 3 workloads costs at most 50.7 %" in shown
    with (tmp_path / "matrix.csv").open() as file:
        rows = list(csv.DictReader(file))
    (found,) = read_regrets(str(RECORDED))
    assert len(rows) == len({c for row in found.times.values() for c in row})
    assert min(float(row["wide"]) for row in rows if row["wide"]) == 0.0
    assert any(row["wide"] == "" for row in rows)  # it did not fit there


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "family,workload,device,configuration,time_ms\nf,w,d,p=a,\n"]
)
def test_what_is_no_record_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert main(["regret", str(tmp_path / "r.csv")]) == 7
    assert main(["regret", str(tmp_path)]) == 7
    assert main(["regret", str(RECORDED), "--out", str(tmp_path / "none" / "m.csv")]) == 7
    said = capsys.readouterr().err
    assert "holds no record" in said and "cannot write" in said


def test_a_matrix_that_cannot_be_written(tmp_path: Path) -> None:
    from autotune.errors import StoreError

    with pytest.raises(StoreError, match="cannot write"):
        write_matrix([Regrets(family="f", device="d", times=TIMES)], tmp_path)
