"""The kernel that a family is held against: proved as any configuration, timed in turn with control and winner."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plain import ADD, vector_add, workload

from autotune.cli.commands import main
from autotune.declaration.plain_kernel import Kernel
from autotune.errors import FamilyError, UnknownName
from autotune.record import Baseline, read_record

OLD = """\
// What there was before.
__global__ void old_add(float* c, const float* a, const float* b, int n) {
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += THREADS * gridDim.x) c[i] = a[i] + b[i]STEP;
}
"""
TOLD = {
    "source": "old.cu", "kernel": "old_add", "arguments": ["c", "a", "b", "n"], "grid": [4], "block": ["THREADS"],
    "define": {"THREADS": 64},
}  # fmt: skip


def held(step: str = "", **changes: Any) -> Kernel:
    return vector_add(baseline={**TOLD, **changes}, headers={"old.cu": OLD.replace("STEP", step)})


def _as_reference(step: str = "") -> Kernel:
    return vector_add(baseline=TOLD, headers={"old.cu": OLD.replace("STEP", step)}, reference="baseline")


def swept(kernel: Kernel, place: Path) -> tuple[pd.DataFrame, Baseline]:
    given = workload(place, "vector_add", a=(4000,), b=(4000,))
    words = [
        "sweep",
        str(kernel.folder),
        "-w",
        str(given),
        "--device",
        "cpu",
        "--samples",
        "3",
        "--out",
        "out",
    ]
    assert main(words) == 0
    (study,) = read_record(place / "out")
    found = study.about.baseline
    assert found is not None
    return pd.read_csv(place / "out" / "summary.csv"), found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_is_timed_beside_control_and_winner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary, baseline = swept(held(), tmp_path)
    assert (baseline.source, baseline.kernel, baseline.reason) == ("old.cu", "old_add", "")
    assert min(baseline.median_ms, baseline.control_ms, baseline.winner_ms) > 0
    assert baseline.over_winner == pytest.approx(baseline.median_ms / baseline.winner_ms)
    row = summary[summary.role == "baseline"].iloc[0]
    assert row.configuration == "old.cu:old_add"
    winner = summary[summary.role == "winner"].iloc[0]
    assert row.time_ms / winner.time_ms == pytest.approx(row.time_over_winner)
    assert row.time_over_winner == pytest.approx(baseline.over_winner)
    assert "old_add in old.cu" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "margin over the baseline" in page
    assert "Results were compared with those of control." in page


def test_one_that_is_wrong_has_no_time_and_costs_the_sweep_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, baseline = swept(held(" + 1"), tmp_path)
    assert baseline.median_ms == 0
    assert "elements differ" in baseline.reason
    assert "baseline old_add was not timed: c: 4000 of 4000" in capsys.readouterr().out
    assert (summary.role == "winner").sum() == 1


def test_another_one_is_timed_when_nothing_else_is_left_to_do(tmp_path: Path) -> None:
    before = swept(held(), tmp_path)[1]
    assert swept(held(), tmp_path)[1] == before
    other = swept(held(define={"THREADS": 32}), tmp_path)[1]
    assert other.digest != before.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arguments": ["c", "a", "b", "m"]}, "unknown argument 'm' in family vector_add: kernel old_add"),
        ({"grid": ["ceil_div(n, block_size)"]}, "baseline: kernel old_add: grid: unknown name 'block_size'"),
        ({"source": "none.cu"}, "baseline: source: .*none.cu is not there"),
    ],
)
def test_a_mistake_in_it_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((FamilyError, UnknownName), match=message):
        held(**changes)


def test_it_is_no_part_of_what_makes_two_studies_comparable() -> None:
    assert held(define={"THREADS": 32}).family.space_digest == held().family.space_digest
    assert "vector_add" in ADD


def test_it_may_be_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swept(_as_reference(), tmp_path)
    (study,) = read_record(tmp_path / "out")
    assert study.about.proof["against"] == "baseline"
    given = workload(tmp_path, "vector_add", a=(4000,), b=(4000,))
    words = [
        "sweep",
        str(_as_reference(" + 1").folder),
        "-w",
        str(given),
        "--device",
        "cpu",
        "--out",
        "wrong",
    ]
    assert main(words) != 0
    assert "c: 4000 of 4000 elements differ" in capsys.readouterr().err


def test_as_the_reference_it_decides_what_is_comparable_and_has_to_be_there() -> None:
    digests = {_as_reference().family.source_digest, _as_reference(" + 1").family.source_digest}
    assert len(digests) == 2
    assert _as_reference().family.space_digest != held().family.space_digest
    with pytest.raises(FamilyError, match="reference: baseline, and no baseline: is declared"):
        vector_add(reference="baseline")
