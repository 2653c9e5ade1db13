"""What a person reads while a sweep goes on and when it ends: progress, reasons, the lines of a study."""

import io
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from fakes import FakeBackend, FakeToolchain, sweep
from rich.console import Console

from autotune.cli.terminal import HELD, NAMED, print_study
from autotune.engine.sweep import Sweep
from autotune.hardware import Device
from autotune.record.remarks import coverage, describe_move, failures, reasons
from autotune.record.study import Study
from autotune.report.progress_bar import FIRST_SECONDS, LINE_SECONDS, Live, Pace, pace

GPU = Device(kind="cuda", name="Fake GPU", arch="sm_90")


def console() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=200), text


# ---- progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the module reads, to be set."""
    now = [0.0]
    monkeypatch.setattr("autotune.report.progress_bar.monotonic", lambda: now[0])
    return now


def test_no_time_left_before_it_means_something(clock: list[float]) -> None:
    out, text = console()
    steps = Pace("f small", 200, out, None)
    clock[0] = 2 * LINE_SECONDS
    steps.start(1)  # what came before the first says nothing
    steps.step(1, "")
    clock[0] += LINE_SECONDS
    steps.step(5, "best 1 ms")  # long enough, and too few
    clock[0] += LINE_SECONDS
    steps.step(41, "best 1 ms")
    clock[0] += LINE_SECONDS
    steps.step(200, "best 1 ms")
    assert text.getvalue().splitlines() == [
        "f small: 1 of 200",
        "f small: 5 of 200; best 1 ms",
        "f small: 41 of 200, about 80 s left; best 1 ms",
        "f small: 200 of 200; best 1 ms",
    ]


def test_many_quick_steps_say_nothing_in_the_first_seconds(clock: list[float]) -> None:
    out, text = console()
    steps = Pace("f sm_90", 1000, out, None)
    clock[0] = LINE_SECONDS
    steps.start(0)
    clock[0] += FIRST_SECONDS / 2
    steps.step(500, "")
    assert text.getvalue() == "f sm_90: 500 of 1000\n"


def test_a_sweep_that_resumes_reckons_with_its_own_trials(
    clock: list[float], folder: Path, tmp_path: Path
) -> None:
    trial = sweep(folder, tmp_path).run().trials[0]
    out, text = console()
    live = Live(Pace("f small", 100, out, None))
    live.update(trial, 61, 1.0, 0.5)
    clock[0] = LINE_SECONDS
    live.update(trial, 81, 1.0, 0.5)
    assert text.getvalue() == "f small: 81 of 100, about 10 s left; best 1.00 ms, 2 measured, busy 50%\n"


def test_compiling_before_timing_is_told_on_a_pipe_and_where_it_was_left(
    clock: list[float], folder: Path, tmp_path: Path
) -> None:
    out, text = console()
    live = Live(Pace("f small", 1072, out, None))
    live.report_compiled(24, 1072)
    clock[0] = LINE_SECONDS
    live.report_compiled(312, 1072)
    assert text.getvalue() == "f small: compiling 312 of 1,072 (cpu: all are compiled before timing)\n"
    assert live.unfinished == "312 of 1,072 are compiled and kept"
    live.report_compiled(1072, 1072)
    assert live.unfinished == ""


def test_what_goes_on_in_a_thread_tells_nothing_after_the_end(clock: list[float]) -> None:
    out, text = console()
    with pace("f small", 10, out) as steps:
        pass
    clock[0] = 2 * LINE_SECONDS
    steps.tell("compiling")
    assert text.getvalue() == ""


def test_on_a_cpu_the_sweep_tells_how_far_compiling_is(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    cpu = FakeBackend(device=Device(kind="cpu", name="Some", arch=""))
    done = sweep(folder, tmp_path, cpu, compiled=lambda *far: told.append(far))
    done.run()
    assert told[0] == (0, 12) and told[-1] == (12, 12)
    assert [far for far, _ in told] == sorted(far for far, _ in told)


# ---- reasons


def test_the_most_frequent_reasons_come_first_with_the_compilers_lines() -> None:
    def message(line: int) -> str:
        return f"In file included from a.cpp:3:\nk.cu:{line}: error: no \x1b[31m'x'\n  x = 1;\n  ^\nmore\n"

    failures = [
        ("wrong_result", "y: 3 of 9 elements differ", "a=1"),
        ("compile_failed", message(7), "a=2"),
        ("compile_failed", message(12), "a=3"),
        ("excluded", "tile is too wide", "a=4"),
        ("crashed", "killed by SIGSEGV", "a=5"),
    ]
    assert reasons(failures).splitlines() == [
        "2 compile_failed, one of them a=2:",
        "    k.cu:7: error: no \\x1b[31m'x'",
        "      x = 1;",
        "      ^",
        "1 wrong_result, one of them a=1:",
        "    y: 3 of 9 elements differ",
        "1 excluded, one of them a=4:",
        "    tile is too wide",
        "1 for other reasons",
    ]
    assert reasons([("crashed", "", "a=1")]) == "1 crashed, one of them a=1:"


# ---- a study's lines


def printed(done: Sweep, wall_s: float = 1.0) -> str:
    out, text = console()
    print_study(done.run(), wall_s, done.phases, done.before, GPU, out)
    return text.getvalue()


def test_a_sweep_that_resumes_tells_of_its_own_seconds(folder: Path, tmp_path: Path) -> None:
    assert "\n12 of 12 tried: 12 measured; 1.0 s wall (" in printed(sweep(folder, tmp_path))
    again = printed(sweep(folder, tmp_path), 0.01)
    assert "\n12 of 12 tried: 12 measured, 12 of them recorded before; 0.0 s wall\n" in again
    assert "kernels ran" not in again


def test_a_tied_runner_up_and_a_winner_by_chance_are_said(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    some = [replace(t.measurement, retimed_ms=1.0 + i / 1000, spread=0.2) for i, t in enumerate(study.trials[:3])
            if t.measurement]  # fmt: skip
    trials = tuple(replace(t, measurement=m) for t, m in zip(study.trials, some, strict=False))
    out, text = console()
    print_study(replace(study, trials=trials), 1.0, {}, 0, GPU, out)
    assert "3 in the tie set" in text.getvalue()
    assert " tied, 1.00 x the winner" in text.getvalue()
    assert (
        "warning: 2 others are slower than the winner by no more than its interval ± 20.0%" in text.getvalue()
    )


def told(study: Study) -> str:
    out, text = console()
    print_study(study, 1.0, {}, 0, GPU, out)
    return text.getvalue()


def test_each_state_of_failure_is_named_with_its_first_reason(folder: Path, tmp_path: Path) -> None:
    tools = FakeToolchain(broken=("block_size = 256",))
    wrong = lambda c: c["memory"] == "texture"  # noqa: E731
    study = sweep(folder, tmp_path, FakeBackend(wrong=wrong, tools=tools)).run()
    lines = failures(study)
    assert [line.partition(":")[0] for line in lines] == [
        "3 compile_failed, the first block_size=256",
        "3 wrong_result, the first block_size=32, memory=texture",
    ]
    assert "is broken by block_size = 256" in lines[0] and "elements differ" in lines[1]
    assert all(f"\n{line}\n" in told(study) for line in lines)
    assert failures(replace(study, trials=tuple(t for t in study.trials if t.measurement))) == []


@pytest.mark.parametrize(
    ("searched", "trials", "said"),
    [
        ({"tried": 12, "of": 12, "space": 12, "by": "exhaustive"}, 12, "12 of 12 tried"),
        ({"tried": 5, "of": 12, "space": 12, "by": "exhaustive", "budget": "time limit 6 s"}, 5,
         "5 of 12 tried (time limit 6 s, exhaustive order)"),
        ({"tried": 4, "of": 12, "space": 768, "by": "tpe", "seed": 3, "budget": "4 trials"}, 4,
         "4 of 768 tried (12 selected, 4 trials, search tpe, seed 3)"),
        ({"tried": 3, "of": None, "space": None, "by": "auto", "seed": 0}, 3,
         "3 tried of more than can be listed (search auto, seed 0)"),
        ({}, 12, ""),
    ],
)  # fmt: skip
def test_how_much_of_the_space_was_tried(
    searched: dict[str, object], trials: int, said: str, folder: Path, tmp_path: Path
) -> None:
    study = sweep(folder, tmp_path).run()
    study = replace(study, about=study.about.update({"searched": searched}), trials=study.trials[:trials])
    assert str(coverage(study) or "") == said
    assert f"\n{said}: {trials} measured;" in told(study) if said else f"\n{trials} measured;" in told(study)


def test_what_is_excluded_was_not_tried_and_an_interruption_is_said(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    about = replace(study.about, searched={"tried": 8, "of": 12, "space": 12}, interrupted=True)
    trials = (replace(study.trials[0], state="excluded", reason="no", measurement=None), *study.trials[1:8])
    study = replace(study, about=about, trials=trials)
    assert str(coverage(study)) == "7 of 12 tried, 1 excluded (interrupted)"
    assert "\n7 of 12 tried, 1 excluded (interrupted): 7 measured;" in told(study)


def test_margins_have_intervals_and_a_control_that_is_not_beaten_is_said(
    folder: Path, tmp_path: Path
) -> None:
    study = sweep(folder, tmp_path).run()
    assert "4.50 x the winner (4.50 to 4.50)" in told(study)
    assert "reliably" not in told(study)
    times = {study.control: (661.0, 0.03)}
    noisy = tuple(
        replace(t, measurement=replace(t.measurement, median_ms=ms, retimed_ms=0.0, spread=spread))
        for t in study.trials
        if t.measurement
        for ms, spread in (times.get(t.configuration, (622.0 + 300 * (t is not study.trials[1]), 0.162)),)
    )
    assert study.trials[1].configuration != study.control
    said = told(replace(study, trials=noisy))
    assert "1.06 x the winner (0.91 to 1.27)" in said
    assert (
        "no configuration is reliably faster than control: it takes 1.06 x the winner (0.91 to 1.27)" in said
    )


def test_a_winner_with_an_interval_wider_than_its_time_is_doubted(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    assert study.decision is not None
    far = tuple(
        replace(t, measurement=replace(t.measurement, retimed_ms=ms, spread=4.17 if ms == 1 else 0.01))
        for t in study.trials
        if t.measurement
        for ms in (1.0 if t is study.decision.winner else 100.0,)
    )
    assert "warning: the winner has ± 417.0%: noise may have chosen it" in told(replace(study, trials=far))
    assert "noise" not in told(study)


@pytest.mark.parametrize(
    ("factor", "said"), [(1.6, "1.6 times slower"), (0.5, "2.0 times faster"), (1.05, ""), (0.95, "")]
)
def test_a_machine_that_was_another_one_when_finalists_were_timed_is_said(
    factor: float, said: str, folder: Path, tmp_path: Path
) -> None:
    study = sweep(folder, tmp_path).run()
    trials = tuple(
        replace(t, measurement=replace(t.measurement, retimed_ms=factor * t.measurement.median_ms))
        for t in study.trials
        if t.measurement
    )
    if said:
        assert f"warning: the machine was {said} when finalists were timed" in told(
            replace(study, trials=trials)
        )
    else:
        assert describe_move(trials) == ""


def test_configurations_are_shown_by_what_tells_them_from_control(folder: Path, tmp_path: Path) -> None:
    said = told(sweep(folder, tmp_path).run())
    row = next(line for line in said.splitlines() if line.startswith("winner"))
    assert row.split("tie set")[1].strip() == "block_size=64, memory=readonly"
    assert next(line for line in said.splitlines() if line.startswith("control")).split()[-1] == "control"


def test_what_is_left_to_gain_and_a_control_that_was_not_reached(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    assert "left to gain" not in told(study)  # all was tried
    searched = {"tried": 5, "of": 12, "space": 12, "by": "auto", "seed": 0, "budget": "budget 6 s"}
    early = replace(study, about=study.about.update({"searched": {**searched, "left_to_gain": 0.0312}}))
    assert (
        "\nleft to gain at most 3.1 % of the time, by the model; such a figure held in 90% of recorded cases\n"
        in told(early)
    )
    assert "control was not measured" not in told(early)
    without = replace(early, trials=tuple(t for t in study.trials if t.configuration != study.control))
    assert "\ncontrol was not measured (budget 6 s): nothing says how much the winner gains\n" in told(
        without
    )


def test_what_is_said_of_recorded_spaces_is_what_is_recorded() -> None:
    results = Path(__file__).parents[2] / "benchmarks" / "results"
    said = pd.read_csv(results / "regret-stated.csv", comment="#")
    assert round((said["true"] <= said["stated"] + 1e-9).mean(), 2) == HELD
    for source, name, column, kept in (
        ("ranking", "static-ranking.csv", "best_of_five", {"model": "static ranking"}),
        ("records", "transfer.csv", "regret", {"method": "named"}),
    ):
        frame = pd.read_csv(results / name, comment="#")
        ((key, value),) = kept.items()
        lost = frame[frame[key] == value][column]
        assert (len(lost), round(lost.median(), 3), round(lost.quantile(0.9), 3)) == NAMED[source]
