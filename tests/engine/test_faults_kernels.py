"""Kernels that do the worst they can, for real: every other configuration is measured."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from children import children
from fakes import write_family
from waiting import PATIENCE_S

from autotune.cli.commands import main
from autotune.device.open import device_names
from autotune.record.store import Store

FAMILY = """\
schema: 1
family: doubler
source: doubler.cu
default_workload: small
data:
  x: {role: input, type: float32, shape: [n]}
  y: {role: output, type: float32, shape: [n]}
kernels:
  doubler:
    arguments: [x, y]
    grid: ["ceil_div(n, block_size)"]
    block: [block_size]
    shared_bytes: "1000000000000 if fault == 6 else 0"
policies:
  fault: {values: [0, 1, 2, 3, 4, 5, 6], default: 0}
  block_size: {values: [64, 128], default: 128}
constraints:
  - {require: "fault == 0 or block_size == 64", reason: "each fault once"}
reference: control
"""
SOURCE = """\
#include "autotune/array.cuh"
#ifdef AUTOTUNE_CPU
extern "C" int usleep(unsigned);
#define REST usleep(1000)  // others need the processor
#else
#define REST asm volatile("" ::: "memory")  // a loop without effect may be left out
#endif
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) doubler(typename Policy::x x, typename Policy::y y) {
  static_assert(Policy::fault != 1, "this one is not to compile");
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  const unsigned zero = x.extent(0) - 1000;
  if constexpr (Policy::fault == 3) *reinterpret_cast<volatile unsigned*>(static_cast<unsigned long long>(zero)) = i;
  if constexpr (Policy::fault == 4) {
    while (zero != 1) REST;
  }
  if constexpr (Policy::fault == 5) {
    if (i == 5) __trap();
  }
  if (i < x.extent(0)) y.store((Policy::fault == 2 ? 3 : 2) * x.load(i), i);
}
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return write_family(tmp_path / "doubler", FAMILY, SOURCE)


def places(tmp_path: Path) -> list[str]:
    return ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_kind_of_fault_in_one_sweep(
    device: str, faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", str(faulty), "--device", device, "--trial-seconds", "5", *places(tmp_path)]
    trapped = "launch_failed" if device == "cpu" else "crashed"  # a GPU loses its context
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "winner" in shown.out
    frame = pd.read_csv(tmp_path / "out" / "results.csv", keep_default_na=False)
    states = {(row.fault, row.block_size): row.state for row in frame.itertuples()}
    assert states == {
        (0, 64): "measured", (0, 128): "measured", (1, 64): "compile_failed", (2, 64): "wrong_result",
        (3, 64): "crashed", (4, 64): "timed_out", (5, 64): trapped, (6, 64): "excluded",
    }  # fmt: skip
    reasons = {row.fault: row.reason for row in frame.itertuples()}
    for fault, said in (
        (1, "this one is not to compile"),
        (2, "1000 of 1000 elements differ"),
        (3, "SIGSEGV" if device == "cpu" else "illegal"),
        (4, "no end within 5 s"),
        (5, "the kernel trapped" if device == "cpu" else ""),
        (6, "bytes of shared memory a block pass"),
    ):
        assert said in reasons[fault]
    # Once more: nothing that harmed is tried again, and what was measured stays.
    before = {t.configuration: t for t in Store(tmp_path / "out").studies()[0].trials}
    assert main(arguments) == 0
    after = {t.configuration: t for t in Store(tmp_path / "out").studies()[0].trials}
    assert {c: t.state for c, t in after.items()} == {c: t.state for c, t in before.items()}
    final = [c for c, t in before.items() if t.state in ("measured", "crashed", "timed_out", "wrong_result")]
    assert all(after[c].phases_ms == before[c].phases_ms for c in final)


@pytest.mark.filterwarnings("default")
def test_an_unwritable_cache_costs_a_compilation_and_nothing_else(
    faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["sweep", str(faulty), "--device", "cpu", "--set", "fault=0,2", *places(tmp_path)]) == 0
    assert "cannot be written" in capsys.readouterr().err
    (study,) = Store(tmp_path / "out").studies()
    assert study.states() == {"measured": 2, "wrong_result": 1}


def test_two_processes_on_the_cpu_and_one_of_them_killed(faulty: Path, tmp_path: Path) -> None:
    """For real: the command, its two measuring processes, SIGKILL to one of them."""
    command = [
        sys.executable,
        "-m",
        "autotune",
        "sweep",
        str(faulty),
        "--device",
        "cpu,cpu",
        "--set",
        "fault=0",
    ]
    running = subprocess.Popen(
        [*command, *places(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    started: list[int] = []
    while len(started) < 2 and running.poll() is None:
        started = [int(pid) for pid in children(running.pid)]
        time.sleep(0.02)
    os.kill(started[-1], signal.SIGKILL)
    said, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said
    (study,) = Store(tmp_path / "out").studies()
    assert study.states().get("measured", 0) >= 1
    assert len(study.trials) == 2


def test_where_there_is_no_terminal_lines_tell_how_far_it_is(
    faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("autotune.report.progress_bar.LINE_SECONDS", 0.0)
    assert main(["sweep", str(faulty), "--device", "cpu", "--set", "fault=0,2", *places(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "doubler small: 3 of 3; best" in said
    assert "2 measured, 1 wrong_result, busy" in said


def test_where_everything_fails_the_terminal_says_why(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", str(faulty), "--device", "cpu", "--set", "fault=1,2,6", *places(tmp_path)]
    assert main(arguments) == 9
    shown = capsys.readouterr()
    results = tmp_path / "out" / "results.csv"
    states = "1 compile_failed, 1 excluded, 1 wrong_result"
    assert f"error: no configuration could be measured: {states}; all reasons are in {results}\n" in shown.err
    assert "1 compile_failed, one of them block_size=64,fault=1:\n" in shown.err
    assert "this one is not to compile" in shown.err
    assert "1 wrong_result, one of them block_size=64,fault=2:\n    y: " in shown.err
    assert "effects" not in shown.out
    assert results.is_file()
    assert not list((tmp_path / "policies").rglob("*.yaml"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("auto", ["auto"]),
        ("cpu,cpu", ["cpu", "cpu"]),
        ("cuda:0,1,3", ["cuda:0", "cuda:1", "cuda:3"]),
        ("cuda:0,cuda:2", ["cuda:0", "cuda:2"]),
    ],
)
def test_devices_are_named_one_by_one(text: str, names: list[str]) -> None:
    assert device_names(text) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu", "unknown device 'gpu'"),
        ("cpu:1", "unknown device 'cpu:1'"),
        ("0,1", "unknown device '0'"),
        ("cuda:0,0", "each once"),
        ("cuda,cuda:0", "each once"),
        ("cpu,cuda:0", "name several GPUs"),
        ("auto,cpu", "name several GPUs"),
    ],
)
def test_devices_that_cannot_sweep_together_are_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "allpairs", "--device", text, *places(tmp_path)]) == 2
    assert said in capsys.readouterr().err
