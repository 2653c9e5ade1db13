"""One call spread over the ranks of an MPI program."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import walker
from mpi_program import launcher
from numpy.typing import NDArray

from autotune.cli.commands import main
from autotune.declaration import Family, load_family
from autotune.errors import UsageError
from autotune.spread import RankSpread, ranks
from autotune.spread.ranks import device_of


@pytest.mark.mpi
@pytest.mark.usefixtures("importable")
def test_ranks_have_the_result_whole_and_in_pieces_and_say_who_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, library = launcher() or ("", "")
    monkeypatch.setenv("MPI4PY_LIBMPI", library)
    folder = walker.write(tmp_path / "walker", items=3000, rows=41)
    script = Path(__file__).parents[1] / "support" / "rank_process.py"
    ended = subprocess.run(
        [program, "-n", "4", sys.executable, str(script), str(folder), "stops"],
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.stdout.count("all right") == 4, (
        ended.stderr
    )  # lines of four processes may lie within each other
    assert "error: rank 3 on " in ended.stdout
    assert "one of 4, did not respond for 1 s" in ended.stdout
    assert "ended well" not in ended.stdout
    assert ended.returncode  # 5, or what mpiexec says of the rank that it had to kill


@pytest.mark.parametrize(
    ("name", "local", "environment", "device"),
    [
        ("cuda", 2, {}, "cuda:2"),
        ("cuda", 2, {"CUDA_VISIBLE_DEVICES": "4,5,6"}, "cuda:2"),
        ("cuda", 2, {"CUDA_VISIBLE_DEVICES": "6"}, "cuda:0"),
        ("cuda:0", 2, {}, "cuda:0"),
        ("cpu", 2, {}, "cpu"),
        ("auto", 1, {}, "cuda:1"),
    ],
)
def test_each_rank_takes_the_next_gpu_of_its_host(
    name: str, local: int, environment: Mapping[str, str], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "has_driver", lambda: True)
    assert device_of(name, local, environment) == device


def test_without_a_driver_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "has_driver", lambda: False)
    assert device_of("auto", 1, {}) == "cpu"


def test_what_ranks_cannot_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = walker.write(tmp_path / "walker")
    assert main(["spread", str(made), "-w", "small", "--device", "cpu,cpu", "--mpi"]) == 2
    assert "--mpi is a rank for each device: name one" in capsys.readouterr().err


def test_without_mpi4py_the_message_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    made = walker.write(tmp_path / "walker")
    assert main(["spread", str(made), "-w", "small", "--device", "cpu", "--mpi"]) == 5
    assert "need mpi4py, which is not installed" in capsys.readouterr().err


def test_what_a_rank_says_goes_to_stderr_where_the_output_goes_to_stdout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class FirstRank:
        ranks = SimpleNamespace(is_first=True)
        match, calibrate = "control", lambda _self: None

        def __init__(self, family: Family, *_given: object, **_named: object) -> None:
            self.family = family

        def __enter__(self) -> "FirstRank":
            return self

        def __exit__(self, *_: object) -> None: ...

        def run(self, _allocation: str) -> SimpleNamespace:
            return SimpleNamespace(shares=(), configuration="control", elapsed_s=0.0, lines=list)

        def outputs(self) -> dict[str, NDArray[Any]]:
            return {"y": np.zeros(3, np.int32), "total": np.zeros(2)}

    monkeypatch.setattr("autotune.spread.rank_spread.RankSpread", FirstRank)
    made = walker.write(tmp_path / "walker")
    words = ["spread", str(made), "-w", "small", "--device", "cpu", "--mpi", "-o", "/dev/stdout"]
    assert main(words) == 0
    assert "y: int32 (3,)" in capfd.readouterr().err


def test_ranks_with_other_code_share_no_call(tmp_path: Path) -> None:
    family = load_family(walker.write(tmp_path / "walker"))
    spread: Any = object.__new__(RankSpread)
    spread.family = family
    spread.ranks = SimpleNamespace(gather=lambda told: [told, {**told, "layouts": "other"}])
    with pytest.raises(
        UsageError, match=r"walker is not the same on all ranks: layouts: \w+ on rank 0; other"
    ):
        spread._choose()
