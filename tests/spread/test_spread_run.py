"""``autotune run`` on several devices, and the kernel on several devices that applications get."""

from pathlib import Path

import numpy as np
import pytest
import walker

from autotune.cli.commands import main
from autotune.declaration import family
from autotune.errors import UsageError
from autotune.spread.spread import SpreadKernel

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")


def test_run_on_several_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = walker.write(tmp_path / "walker")
    alone, spread = tmp_path / "alone.npz", tmp_path / "spread.npz"
    assert main(["run", str(made), "-w", "small", "--device", "cpu", "-o", str(alone)]) == 0
    capsys.readouterr()
    arguments = [
        "spread",
        str(made),
        "-w",
        "small",
        "--device",
        "cpu,cpu",
        "--allocation",
        "contiguous",
        "-o",
        str(spread),
    ]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "walker on cpu, cpu: " in said and "(control" in said
    assert "contiguous, at most 4 units a chunk" in said
    assert "y: int32 (10, 37)" in said
    with np.load(alone) as one, np.load(spread) as other:
        for name in ("y", "total"):
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "cpu", "--allocation", "dynamic"], "spread needs several devices"),
        (["--device", "cpu,cpu", "--allocation", "auto"], "did you mean 'automatic'"),
        (
            ["--device", "cpu,cpu", "--allocation", "cyclic"],
            "unknown allocation 'cyclic' (allowed: automatic, contiguous, dynamic)",
        ),
        (["--device", "cuda:0,0"], "name several GPUs, each once"),
        (["--device", "cpu,gpu"], "unknown device 'gpu'"),
    ],
)
def test_what_cannot_be_asked_for(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = walker.write(tmp_path / "walker")
    assert main(["spread", str(made), "-w", "small", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_family_without_units_stays_on_one_device(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spread", str(folder), "--device", "cpu,cpu"]) == 2
    assert "doubler has no units function" in capsys.readouterr().err


APPLICATION = """

def application(given, output, open_kernel, note):
    kernel = open_kernel()
    arrays = inputs({"items": 5000, "rows": 10, "width": 37}, None)
    found = kernel(**arrays)
    right = reference(arrays, {})
    note(f"{kernel.device}: {(found['y'] == right['y']).all()} {(found['total'] == right['total']).all()}")
"""


def test_an_application_gets_a_kernel_on_all_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = walker.write(tmp_path / "walker")
    (made / "family.py").write_text(walker.PYTHON + APPLICATION)
    assert main(["spread", str(made), "-i", "what=ever", "--device", "cpu,cpu"]) == 0
    said = capsys.readouterr().out
    assert "cpu, cpu: True True" in said
    assert "automatic, at most" in said


def test_the_kernel_on_all_devices_checks_what_it_is_given(tmp_path: Path) -> None:
    loaded = family.load_family(walker.write(tmp_path / "walker"))
    with SpreadKernel(loaded, ["cpu", "cpu"], None) as kernel:
        assert (kernel.kind, kernel.device) == ("cpu", "cpu, cpu")
        one = np.zeros(3, [("a", "f4"), ("b", "f4")])
        with pytest.raises(UsageError, match="'x' is given twice"):
            kernel(one, x=one)
        with pytest.raises(UsageError, match="keeps data on one device"):
            kernel.prepare(kernel.bind(one, np.zeros(3, np.int32), np.zeros((2, 2), np.int32)))
