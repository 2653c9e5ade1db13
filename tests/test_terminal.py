"""What a person reads while a sweep goes on and when it ends: progress, reasons, the lines of a study."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import sweep
from rich.console import Console

from autotune.device import Device
from autotune.live import FIRST_SECONDS, LINE_SECONDS, Live, Pace
from autotune.summary import print_study, reasons
from autotune.sweep import Sweep

GPU = Device(kind="cuda", name="Fake GPU", arch="sm_90")


def console() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=200), text


# ---- progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the module reads, to be set."""
    now = [0.0]
    monkeypatch.setattr("autotune.live.monotonic", lambda: now[0])
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
    assert text.getvalue() == "f small: 81 of 100, about 10 s left; best 1 ms, 2 measured, busy 50%\n"


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
    print_study(done.run(), wall_s, done.phases.seconds, done.before, GPU, out)
    return text.getvalue()


def test_a_sweep_that_resumes_tells_of_its_own_seconds(folder: Path, tmp_path: Path) -> None:
    assert "\n12 measured; 1.0 s wall (" in printed(sweep(folder, tmp_path))
    again = printed(sweep(folder, tmp_path), 0.01)
    assert "\n12 measured, 12 of them recorded before; 0.0 s wall\n" in again
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
    assert "warning: 2 others are behind the winner by no more than its own ± 20.0%" in text.getvalue()
