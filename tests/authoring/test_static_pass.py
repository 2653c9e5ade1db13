"""The static pass of a family that ``new`` wrote, with sizes and without."""

from pathlib import Path

import pandas as pd
import pytest

from autotune.authoring import new_family
from autotune.cli import main


@pytest.fixture
def tiled(tmp_path: Path) -> Path:
    """A family whose shared memory follows from an input's size."""
    folder = new_family("tiled", tmp_path)[0]
    file = folder / "family.yaml"
    text = file.read_text()
    assert text.count("    block: [block_size]") == 1
    file.write_text(
        text.replace("    block: [block_size]", "    block: [block_size]\n    shared_bytes: 4 * fields")
    )
    return folder


@pytest.mark.nvrtc
def test_a_static_pass_takes_sizes_from_a_workload(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tiled.parent / "out"
    command = [
        "sweep",
        str(tiled),
        "--static",
        "--set",
        "block_size=128",
        "--preset",
        "control",
        "--out",
        str(out),
    ]
    assert main(command) == 0  # the default workload's
    assert set(pd.read_csv(out / "static.csv")["dynamic_shared_bytes"]) == {64}
    other = tiled / "workloads" / "other.yaml"
    other.write_text(
        (tiled / "workloads" / "small.yaml").read_text().replace("16", "32").replace("small", "other")
    )
    assert main([*command, "--workload", "other"]) == 0
    assert set(pd.read_csv(out / "static.csv")["dynamic_shared_bytes"]) == {128}
    assert main(["show", str(tiled), "control", "-w", "other"]) == 0
    assert "dynamic_shared_bytes 128" in capsys.readouterr().out
    assert main([*command, "--workload", "other", "--workload", "small"]) == 2
    assert main([*command, "--workload", "gone"]) == 2


@pytest.mark.nvrtc
def test_a_static_pass_without_sizes_leaves_occupancy_blank(
    tiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (tiled / "workloads").iterdir():
        file.unlink()
    out = tiled.parent / "out"
    assert main(["sweep", str(tiled), "--static", "--preset", "control", "--out", str(out)]) == 0
    frame = pd.read_csv(out / "static.csv")
    assert (frame["registers"] > 0).all()
    blank = [
        "block_size",
        "dynamic_shared_bytes",
        "blocks_per_sm",
        "occupancy",
        "limited_by",
        "registers_to_next_block",
    ]
    assert frame[blank].isna().all(axis=None)
    shown = capsys.readouterr()
    assert "blocks depend on fields, which no input gives here" in shown.err
    assert "0%" not in shown.out
    assert main(["show", str(tiled), "control"]) == 0
    shown = capsys.readouterr()
    assert "registers " in shown.out and "occupancy 0" not in shown.out
    assert "give --size fields=N to `autotune show`" in shown.out.replace("\n", " ")
    assert main(["show", str(tiled), "control", "--size", "fields=16"]) == 0
    assert "dynamic_shared_bytes 64" in capsys.readouterr().out
    for wrong, told in (("field=16", "unknown size 'field'"), ("fields", "'fields' is not NAME=N")):
        assert main(["show", str(tiled), "control", "--size", wrong]) == 2
        assert told in capsys.readouterr().err
