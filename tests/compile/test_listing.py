"""PTX and machine code of one configuration."""

import sys
from pathlib import Path

import pytest
from fakes import write_family

from autotune.cli.commands import main

_PROGRAM = f"""\
#!{sys.executable}
import sys
if "fails" in sys.argv[0]:
    sys.exit("it cannot")
print(" ".join(sys.argv[1:4]).replace(sys.argv[3], "SYMBOL"))
print("        /*0000*/   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */")
print("                                             /* 0x000fe20000000800 */")
"""


def dumper(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = folder / "cuobjdump"
    folder.mkdir()
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return program


@pytest.mark.nvrtc
def test_ptx_is_of_the_configuration_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = str(write_family(tmp_path / "doubler"))
    assert main(["show", family, "control", "--ptx", "--arch", "sm_80"]) == 0
    shown = capsys.readouterr().out
    assert ".target sm_80" in shown
    assert shown.count(".entry") == 1


@pytest.mark.nvrtc
def test_machine_code_is_read_by_cuobjdump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    family = str(write_family(tmp_path / "doubler"))
    dumper(tmp_path / "bin", monkeypatch)
    assert main(["show", family, "control", "--sass"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "-sass -fun SYMBOL",
        "        /*0000*/   LDC R1, c[0x0][0x28] ;",
    ]
    dumper(tmp_path / "fails", monkeypatch)
    assert main(["show", family, "control", "--sass"]) == 6
    assert "cuobjdump exited with 1: it cannot" in capsys.readouterr().err


def test_one_listing_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(write_family(tmp_path / "doubler")), "control", "--ptx", "--sass"]) == 2
    assert "ask for one at a time" in capsys.readouterr().err
