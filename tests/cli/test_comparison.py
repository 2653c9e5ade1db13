"""``autotune compare``: what moved, what is noise, and what is a regression."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from report_pages import CONTROL, RESULTS, fake_study, measured
from result_files import read_frame

from autotune.cli.commands import main
from autotune.cli.comparison import Side, comparisons, read_side, sides_of
from autotune.errors import StoreError
from autotune.measure import Figure
from autotune.policy import merge as policyfile_write
from autotune.record.decision import noise
from autotune.record.results_csv import write_results
from autotune.record.study import Study


def scaled(study: Study, factor: float, only: str = "") -> Study:
    """``study`` with the times of configurations whose id has ``only`` in it multiplied by ``factor``."""
    trials = [
        replace(t, measurement=replace(t.measurement, median_ms=factor * t.measurement.median_ms))
        if t.measurement and only in t.configuration.id else t
        for t in study.trials
    ]  # fmt: skip
    return replace(study, trials=tuple(trials))


def one(a: Study, b: Study) -> tuple[object, ...]:
    (found,) = comparisons(sides_of([a]), sides_of([b]))
    outcomes = [m.outcome for m in found.every]
    return found, outcomes.count("slower"), outcomes.count("faster"), outcomes.count("same")


def test_the_same_record_moves_nothing() -> None:
    study = fake_study()
    found, slower, faster, same = one(study, study)
    assert (slower, faster, same) == (0, 0, len(measured(study)))
    assert found.typical == 0
    assert found.transfer == found.back == pytest.approx(0, abs=0.05)
    assert not found.regressions(0.0, every=True)


@pytest.mark.parametrize(
    ("factor", "slower", "threshold", "fails"),
    [(1.009, 0, 0.0, False), (1.011, 1, 0.02, False), (1.2, 1, 0.05, True), (0.8, -1, 0.0, False)],
)
def test_noise_is_what_ties_are_made_of(factor: float, slower: int, threshold: float, fails: bool) -> None:
    """The fake study's spread is 0.4 %, so that 1 % counts: the least that a tie allows."""
    study = fake_study()
    moved = scaled(study, factor)
    found, *counts = one(study, moved)
    count = len(measured(study))
    assert counts == [count * (slower > 0), count * (slower < 0), count * (slower == 0)]
    assert found.typical == pytest.approx(factor - 1)
    assert bool(found.regressions(threshold)) is fails
    assert bool(found.regressions(threshold, every=True)) is fails
    first = next(t for t in study.trials if t.measurement)
    same = next(t for t in moved.trials if t.configuration == first.configuration)
    row = next(m for m in found.every if m.role == first.configuration.id)
    assert row.noise == noise(first, same)


@pytest.mark.parametrize(
    ("spreads", "noise_", "outcome"),
    [
        ((0.03, 0.04), 0.05, "slower"), ((0.06, 0.08), 0.10, "same"), ((0.0, 0.0), 0.01, "slower"),
        ((1.0, 0.0), 0.05, "slower"), ((None, 0.3), 0.05, "slower"),
    ],
)  # fmt: skip
def test_noise_grows_with_the_spread(
    spreads: tuple[float | None, float], noise_: float, outcome: str
) -> None:
    """B takes 8 % more."""
    a, b = (
        Side(family="f", workload="w", device="d", times={"x=1": Figure(ms, s)}, roles={"winner": "x=1"})
        for ms, s in zip((1.0, 1.08), spreads, strict=True)
    )
    (found,) = comparisons([a], [b])
    assert found.winner.noise == pytest.approx(noise_)
    assert found.winner.outcome == outcome
    assert bool(found.regressions(0.05)) is (outcome == "slower")


def test_a_slower_loser_is_a_regression_only_with_every() -> None:
    study = fake_study()
    winner = study.decision
    assert winner
    moved = scaled(
        study,
        3.0,
        "memory=constant" if winner.winner.configuration["memory"] != "constant" else "memory=global",
    )
    found, *_ = one(study, moved)
    assert not found.regressions(0.05)
    assert len(found.regressions(0.05, every=True)) > 5
    assert found.every[0].change == pytest.approx(2.0)  # the largest change first


def test_another_winner_is_compared_by_its_time_and_by_what_it_takes_there() -> None:
    study = fake_study()
    assert study.decision
    winner = study.decision.winner
    moved = scaled(study, 4.0, winner.configuration.id)
    found, *_ = one(study, moved)
    assert found.winner.a == winner.configuration.id
    assert found.winner.b != found.winner.a
    best = min(t.time_ms for t in moved.trials)
    assert found.transfer == pytest.approx(4 * winner.time_ms / best - 1)
    assert found.winner.change == pytest.approx(moved.decision.winner.time_ms / winner.time_ms - 1)  # type: ignore[union-attr]


def test_a_winner_that_is_gone_is_a_regression() -> None:
    study = fake_study()
    failed = tuple(replace(t, state="crashed", reason="it fell", measurement=None) for t in study.trials)
    found, *_ = one(study, replace(study, trials=failed))
    assert found.winner.outcome == "only A"
    assert found.regressions(9.0) == (found.winner,)
    assert found.typical is None
    back, *_ = one(replace(study, trials=failed), study)
    assert back.winner.outcome == "only B"
    assert not back.regressions(0.0)


def test_which_studies_are_compared() -> None:
    def side(workload: str, device: str) -> Side:
        return Side(
            family="f",
            workload=workload,
            device=device,
            times={"x=1": Figure(1.0, 0.0)},
            roles={"winner": "x=1"},
        )

    two = [side("w", "a"), side("w", "b")]
    assert [(c.a, c.b) for c in comparisons(two, two)] == [("a", "a"), ("b", "b")]
    assert [(c.a, c.b) for c in comparisons([side("w", "a")], [side("w", "c")])] == [("a", "c")]
    assert [(c.workload, c.a) for c in comparisons([*two, side("v", "a")], [side("v", "b"), side("w", "b")])] == [
        ("w", "b"), ("v", "a"),
    ]  # fmt: skip
    with pytest.raises(StoreError, match=r"no family and workload in common .*: A has f on w \(a\)"):
        comparisons(two, [side("w", "c")])


def test_a_cpu_is_not_compared_with_a_gpu() -> None:
    study = fake_study()
    with pytest.raises(StoreError, match="devices that can be compared"):
        comparisons(sides_of([study]), sides_of([replace(study, device="cpu-epyc")]))


def policy_study(factor: float = 1.0) -> Study:
    study = scaled(replace(fake_study(), family="walk"), factor)
    about = {
        "features": {"n": 3}, "options": {}, "protocol": {}, "device_kind": "cuda", "driver": "580",
        "compute_capability": "9.0", "device_name": "GPU 1",
    }  # fmt: skip
    return replace(study, about=study.about.update(about))


def test_a_policy_file_and_a_record(tmp_path: Path) -> None:
    written = policyfile_write.update(tmp_path / "policies", [policy_study()])
    (side,) = read_side(str(written))
    table = write_results([policy_study(1.5)], tmp_path / "results.csv")
    (found,) = comparisons([side], read_side(str(table)))
    assert (found.a, found.b) == ("gpu-1", "gpu-1")
    assert found.winner.change == pytest.approx(0.5, rel=1e-5)
    runner_up = next(m for m in found.named if m.role == "runner-up")
    assert runner_up.noise == 0.05  # a policy file does not tell its spread
    assert len(found.every) == len(side.times)


# ---- the command


def test_the_exit_code_says_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = str(write_results([policy_study()], tmp_path / "a" / "results.csv"))
    b = str(write_results([policy_study(1.2)], tmp_path / "b" / "results.csv"))
    assert main(["compare", a, b, "--out", str(tmp_path / "moved.csv")]) == 10
    said = capsys.readouterr()
    assert "error: B is slower than A by more than 5 %: walk on primer: winner +20.0 %" in said.err
    assert "typically +20.0 %" in said.out
    frame = pd.read_csv(tmp_path / "moved.csv")
    study = policy_study()
    assert (frame["kind"] == "configuration").sum() == len(measured(study))
    row = frame[(frame["kind"] == "named") & (frame["role"] == "control")].iloc[0]
    assert row["configuration_a"] == row["configuration_b"] == CONTROL.id
    assert row["change_percent"] == pytest.approx(20)
    assert row["outcome"] == "slower"
    assert main(["compare", a, b, "--threshold", "25"]) == 0
    assert main(["compare", b, a]) == 0
    assert main(["compare", a, str(tmp_path / "b")]) == 10  # the folder of a table is a record too
    assert main(["compare", a, str(tmp_path / "nowhere")]) == 7
    assert main(["compare", a, b, "--out", "moved.txt"]) == 7


def test_a_ratio_of_times_that_no_number_holds_is_compared(tmp_path: Path) -> None:
    a, b = policy_study(1e300), policy_study(1e-30)
    (there,) = comparisons(sides_of([a]), sides_of([b]))
    (back,) = comparisons(sides_of([b]), sides_of([a]))
    assert (there.winner.outcome, back.winner.outcome) == ("faster", "slower")
    nothing = replace(sides_of([b])[0], times=dict.fromkeys(sides_of([b])[0].times, Figure(0.0, 0.0)))
    (zero,) = comparisons(sides_of([a]), [nothing])
    assert (zero.winner.outcome, zero.transfer) == ("faster", None)


def test_tables_for_a_job_s_summary(tmp_path: Path) -> None:
    a = str(write_results([policy_study()], tmp_path / "a" / "results.csv"))
    b = str(write_results([policy_study(1.2)], tmp_path / "b" / "results.csv"))
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n")
    assert main(["compare", a, b, "--markdown", str(summary)]) == 10
    text = summary.read_text()
    assert text.startswith("# Before\n### `walk on primer, gpu-1`: **1 slower by more than 5 %**\n\n| ")
    (winner,) = (line for line in text.splitlines() if line.startswith("| `winner` "))
    assert "| +20.0 % |" in winner
    assert winner.endswith("**slower** |")
    assert "configurations timed in both: " in text
    assert main(["compare", a, a, "--markdown", str(summary)]) == 0
    assert "gpu-1`: no regression" in summary.read_text()
    assert main(["compare", a, a, "--markdown", str(tmp_path)]) == 7


def test_recorded_tables_of_the_h200_with_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(RESULTS / "mummergpu-h200.csv.xz")
    assert main(["compare", table, table, "--every", "--threshold", "0"]) == 0
    assert (
        capsys.readouterr().out.count("0 slower, 0 faster") == read_frame(Path(table))["workload"].nunique()
    )


def test_configurations_are_shown_by_what_tells_them_from_control(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = str(RESULTS / "allpairs-h200.csv.xz")
    assert main(["compare", table, table]) == 0
    shown = capsys.readouterr().out
    assert "in A, as it differs from control" in shown
    assert "accumulate=register_tile, block_size=256, packing=planes2, tile=2, vector_width=2" in shown
    assert "axes=attribute_major" not in shown  # which is control's
