"""``autotune rank`` from the command line."""

from pathlib import Path

import pandas as pd
import pytest
from fakes import write_family

from autotune.cli import main


@pytest.mark.nvrtc
def test_rank_writes_the_static_pass_and_the_ranking(tmp_path: Path) -> None:
    folder, out = write_family(tmp_path / "tiled"), tmp_path / "out"
    command = ["rank", str(folder), "--set", "block_size=128", "--preset", "control", "--out", str(out)]
    assert main(command) == 0
    assert len(pd.read_csv(out / "static.csv")) == 1
    ranked = pd.read_csv(out / "ranking.csv")
    assert list(ranked["rank"]) == [1]
    assert list(ranked["workload"]) == ["small"]


def test_rank_refuses_a_workload_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_family(tmp_path / "tiled")
    assert main(["rank", str(folder), "-w", "gone"]) == 2
    assert "gone" in capsys.readouterr().err
