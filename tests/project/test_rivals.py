"""Scripts of benchmarks/ that run programs of others: what those are given, and what is read of what they print."""

import gc
import importlib
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from result_files import read_rows

allpairs = importlib.import_module("allpairs_peers")
stencils = importlib.import_module("reaction_diffusion_stencils")
large = importlib.import_module("mummergpu_large")
commands = importlib.import_module("mummergpu_commands")
engine = importlib.import_module("engine_peers")
quadrants = importlib.import_module("quadrants_run")


@pytest.mark.parametrize("values", [3, 4])
def test_products_and_bits_give_the_distance(values: int) -> None:
    genotypes = np.random.default_rng(values).integers(0, values, (37, 131)).astype(np.int32)
    expected = (genotypes[:, None] != genotypes[None]).sum(2)
    rank = values - 1
    u, w = allpairs.encode_as_products(genotypes, rank)
    assert u.dtype == w.dtype == np.int8
    assert u.shape[0] % 16 == u.shape[1] % 16 == 0  # what CUTLASS's copies ask for
    rest = rank * 131 - u.astype(np.int64) @ w.T.astype(np.int64)
    # As the epilogue of allpairs_cutlass.cu divides: by a product modulo 2^32, or by a shift.
    found = rest % 2**32 * 0xAAAAAAAB % 2**32 if rank == 2 else rest >> 2
    assert np.array_equal(found[:37, :37], expected)
    a, b = allpairs.encode_as_bits(genotypes, values)
    assert 8 * a.shape[1] % 128 == 0
    assert np.array_equal(np.unpackbits(a[:, None] & b[None], axis=2).sum(2)[:37, :37], expected)


def test_a_launch_keeps_the_tensors_that_it_reads() -> None:
    class Tensor:
        def data_ptr(self) -> int:
            return 12

    tensor, seen = Tensor(), []
    left = weakref.ref(tensor)
    launch = allpairs.launcher(
        lambda *words: seen.append([word.value for word in words]) or len(seen) - 1, tensor, 7
    )
    del tensor
    gc.collect()
    assert left() is not None
    launch()
    assert seen == [[12, 7, None]]
    with pytest.raises(RuntimeError, match="CUTLASS says 1"):
        launch()


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    path.with_suffix(".commit").write_text("abc")
    return path


@pytest.mark.parametrize(("error", "is_right"), [("2.4e-05", True), ("3.1e+02", False), ("nan", False)])
def test_what_an5d_prints_is_read_and_a_wrong_result_is_refused(
    tmp_path: Path, error: str, is_right: bool
) -> None:
    made = program(
        tmp_path / "an5d-256-10-256",
        f'echo "Average:  1.0 GFLOPS,     2.5000 ms"; case "$*" in *-c*) echo "Max Error: {error}";; esac',
    )
    rows = stencils.an5d_rows(made, [100], 240, 3)
    if not is_right:
        with pytest.raises(RuntimeError, match="wrong by"):
            list(rows)
        return
    (row,) = rows
    assert (row.commit, row.ms, row.grid) == ("abc", 2.5, 100)
    assert row.updates_per_second == 100 * 100 * 240 / 2.5e-3


@pytest.mark.parametrize(("error", "is_right"), [("1.2e-08", True), ("1.2e-02", False), ("nan", False)])
def test_what_ebisu_prints_is_read_and_a_wrong_result_is_refused(
    tmp_path: Path, error: str, is_right: bool
) -> None:
    line = r"800\t1\t100\t100\t243\t9\t256\t238\t<1,132,1>\t1.000/1\t130.1/227.0\t128/97\t5.000000\t48.5\t\n"
    made = program(
        tmp_path / "ebisu",
        f'printf \'{line}\'; case "$*" in *--check*) echo "[Test] RMS Error : {error}";; esac',
    )
    rows = stencils.ebisu_rows(made, [100], 240)
    if not is_right:
        with pytest.raises(RuntimeError, match="wrong by"):
            list(rows)
        return
    found = list(rows)
    assert {row.program for row in found} == {"EBISU 2d5pt 256 threads", "EBISU 2d5pt 128 threads"}
    assert {(row.grid, row.steps, row.ms) for row in found} == {(100, 243, 5.0)}  # a multiple of its 9 steps


def test_a_program_that_takes_too_long_is_ended_and_has_a_row(tmp_path: Path) -> None:
    slow = program(tmp_path / "copmem2", "exec sleep 600")
    command = commands.Command("copMEM2", "2.1", 32, (str(slow), "-l", "{length}", "-o", "{output}"))
    row = large.run_peer(tmp_path, command, 100, 0)
    assert row["problem"] == "not done in 0 s"
    assert row["matches"] == ""


def test_programs_take_turns_until_the_seconds_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rows = 0.0, []

    def turn(tool: str, seconds: float, problem: str = "") -> Any:
        def ran() -> dict[str, Any]:
            nonlocal now
            now += seconds
            return {"tool": tool, "seconds": seconds, "problem": problem}

        return ran

    monkeypatch.setattr(large, "time", SimpleNamespace(perf_counter=lambda: now))
    large.take_turns([turn("ours", 5), turn("slow", 30, "not done"), turn("peer", 20)], 3, 92, rows.append)
    assert [row["tool"] for row in rows] == ["ours", "slow", "peer", "ours", "peer", "ours"]  # 85 s
    assert large.summary([*rows, {**rows[0], "seconds": 6}]) == [
        "ours: 5.00 s (5.00 to 6.00, 4 runs)",
        "slow: not done",
        "peer: 20.00 s (20.00 to 20.00, 2 runs)",
    ]


def test_matches_in_another_order_have_the_same_sum_and_others_do_not(tmp_path: Path) -> None:
    codes = np.zeros((2, 150), np.uint8)
    reads = large.Read(np.array([0, 1]), np.array([4, 7]), np.array([False, True]), codes)

    def found(text: str) -> Any:
        (tmp_path / "mems").write_text(text)
        return large.found_in(tmp_path / "mems", reads)

    first = found("> r0\n  chr00   5  1  150\n  chr01  9 1 120\n> r1 Reverse\n chr01 8 1 150\n")
    other = found("> r1 Reverse\nchr01\t8\t1\t150\n> r0\nchr01\t9\t1\t120\nchr00\t5\t1\t150\n")
    assert first == other == (3, 2, first.checksum)
    assert (
        found("> r0\n chr00 5 1 150\n chr01 9 1 121\n> r1 Reverse\n chr01 8 1 150\n").checksum
        != first.checksum
    )
    assert (
        found("> r0\n chr00 5 1 150\n chr01 9 1 120\n> r1\n chr01 8 1 150\n").reads == 1
    )  # the other strand


def test_a_peer_that_fails_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no helion here")

    def run(name: str) -> Any:
        return lambda *_: engine.Run(name, 1, 1, 0, 0, 0, 7, {"a=1": 2.0})

    monkeypatch.setattr(engine, "one_process", fail)
    monkeypatch.setattr(engine, "kernel_tuner", run("Kernel Tuner"))
    monkeypatch.setattr(engine, "ours", run("autotune"))
    runs = engine.main(["--peers", "helion,nvcuda", "--out", str(tmp_path / "peers")])
    assert [one.tuner for one in runs] == ["autotune", "autotune", "Kernel Tuner"]
    assert "helion: left out: no helion here" in capsys.readouterr().out


def test_a_peer_is_ended_after_its_seconds_and_ours_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = program(tmp_path / "endless", "exec sleep 3600")
    with pytest.raises(RuntimeError, match=r"endless was ended after 0\.1 s"):
        engine.call([str(endless)], tmp_path, limit_s=0.1)
    limits: list[float] = []

    def end(_command: Any, _folder: Path, _gpu: str = "", limit_s: float = 0) -> float:
        limits.append(limit_s)
        raise RuntimeError("ended") if limit_s else NotImplementedError("ours")

    monkeypatch.setattr(engine, "call", end)
    words = ["--peers", "helion,nvcuda", "--seconds", "20", "--out", str(tmp_path / "peers")]
    with pytest.raises(NotImplementedError, match="ours"):
        engine.main(words)
    monkeypatch.setattr(engine, "ours", lambda *_: engine.Run("autotune", 1, 1, 0, 0, 0, 7, {"a=1": 2.0}))
    engine.main(words)
    assert limits == [0, 20, 20]


def test_what_was_measured_is_kept_when_the_next_tuner_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours comes first: it is what every peer is compared with."""

    def kill(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "ours", lambda *_: engine.Run("autotune", 1, 1, 0, 0, 0, 7, {"a=1": 2.0}))
    monkeypatch.setattr(engine, "kernel_tuner", kill)
    with pytest.raises(KeyboardInterrupt):
        engine.main(["--peers", "nvcuda", "--out", str(tmp_path / "peers")])
    rows = read_rows(tmp_path / "peers.csv")
    assert [(row["tuner"], row["best"]) for row in rows] == 2 * [("autotune", "a=1")]


@dataclass(frozen=True)
class Registered:
    get_implementation2: Any


class Dispatcher:
    """What quadrants_run.py reads of Quadrants' dispatcher: it calls each function twice, and times the second call."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.calls = seconds, 0
        self.registered: list[Registered] = []
        self.times: dict[Registered, list[float]] = {}
        self._times_by_dispatch_impl_by_geometry_hash = {0: self.times}
        self._fastest_dispatch_impl_by_geometry_hash: dict[int, Registered] = {}

    def register(self, function: Any) -> None:
        self.registered.append(Registered(lambda: function))

    def __call__(self) -> None:
        one = self.registered[self.calls % len(self.registered)]
        self.calls += 1
        one.get_implementation2()()
        if self.calls > len(self.registered):
            self.times[one] = [self.seconds[one.get_implementation2().__name__]]
        if len(self.times) == len(self.registered):
            self._fastest_dispatch_impl_by_geometry_hash[0] = min(self.times, key=lambda r: self.times[r])


def test_quadrants_chooses_when_each_function_was_called_twice() -> None:
    done: list[str] = []
    functions = [
        quadrants.waiting(name, lambda _, n=name: done.append(n), lambda: done.append("wait"))
        for name in ("tile=1", "tile=2")
    ]
    chosen, seconds = quadrants.chosen_of(Dispatcher({"tile=1": 0.002, "tile=2": 0.001}), functions)
    assert chosen == "tile=2"
    assert seconds == {"tile=1": [0.002], "tile=2": [0.001]}
    assert done == ["tile=1", "wait", "tile=2", "wait"] * 2
