"""A family of the user's own, outside the checkout, with no Python in it: swept by path, then dispatched."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes import write_family

import autotune
from autotune.cli.commands import main


def test_a_folder_with_plain_arrays_and_a_reference_configuration(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "doubler")
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    assert main(["sweep", str(folder), "--device", "cpu", *places]) == 0
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 12
    assert set(frame["state"]) == {"measured"}
    assert not list(folder.rglob("*.py"))
    with autotune.load(folder, device="cpu", policies=tmp_path / "policies") as kernel:
        x = np.linspace(-1, 1, 777, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), 2 * x)
        chosen, _ = kernel.explain(kernel.bind(x))
        assert chosen.match == "nearest"


def test_a_wrong_kernel_is_caught_and_nothing_measured_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_family(tmp_path / "doubler")
    (folder / "family.py").write_text("def reference(arrays, options):\n    return {'y': 3 * arrays['x']}\n")
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    assert main(["sweep", str(folder), "--device", "cpu", *places]) == 9
    assert "12 wrong_result" in capsys.readouterr().err
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert set(frame["state"]) == {"wrong_result"}
    assert frame["reason"].str.contains("elements differ").all()
    assert not list((tmp_path / "policies").rglob("*.yaml"))
