"""What needs the package that only mummergpu needs, and what says so where it is not installed."""

import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.cli import main
from autotune.compile.cache import Cache, default_root
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import run_once

FAMILY = families.load_family("mummergpu")
DATA = Path(__file__).parents[3] / "workloads" / "data"


def test_what_is_missing_is_said_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)
    phage = DATA / "phiX174_dada2.fa.gz"
    given = [f"reference={phage}", f"queries={phage}", "min_match_length=20"]
    items = [word for text in given for word in ("-i", text)]
    assert main(["run", "mummergpu", "--device", "cpu", *items, "-o", str(tmp_path / "out")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "needs pydivsufsort, which is not installed: pip install" in said and "[mummergpu]'" in said
    assert list(tmp_path.iterdir()) == []


def test_the_kernels_themselves_run_without_it(backend: CpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "phix"), DATA)
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)
    control = FAMILY.space.configuration("control")
    found = run_once(FAMILY, control, inputs, backend, Cache(default_root()))["mems"]
    assert len(found) > 100 and (found["length"] >= inputs.scalars["min_match_length"]).all()
    assert np.unique(found).size == found.size
