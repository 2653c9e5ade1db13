"""A sweep on a host that ssh reaches: here ssh is a program that runs the command in another home folder."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S, is_gone, wait_for

from autotune import __version__
from autotune.cli import remote
from autotune.cli.commands import main
from autotune.cli.remote import Host
from autotune.declaration import load_family
from autotune.engine import SweepRequest
from autotune.errors import UsageError
from autotune.processes import guard
from autotune.record import read_record

SSH = """#!/bin/sh
[ "$1" = "gpu" ] || { echo "ssh: could not resolve $1" >&2; exit 255; }
shift
export HOME=%s
cd "$HOME"
exec sh -c "$*"
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, importable: None) -> Path:
    """The home folder of the host ``gpu``, in which ./autotune runs autotune."""
    home = tmp_path / "there"
    home.mkdir()
    for path, text in (
        (home / "autotune", f'#!/bin/sh\nexec {sys.executable} -m autotune "$@"\n'),
        (tmp_path / "ssh", SSH % home),
    ):
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("AUTOTUNE_SSH", str(tmp_path / "ssh"))
    monkeypatch.chdir(tmp_path)
    return home


def test_the_family_goes_there_and_record_and_policy_file_come_back(
    folder: Path, there: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(folder), "--on", f"gpu:{there}/autotune", "--device", "cpu"]
    named = ["--out", str(tmp_path / "here"), "--policies", str(tmp_path / "policies")]
    assert main([*words, *named, "--samples", "3"]) == 0
    assert "tried" in capfd.readouterr().out
    (study,) = read_record(str(tmp_path / "here"))
    assert study.decision
    assert {path.suffix for path in (tmp_path / "policies").rglob("*.*")} == {".yaml"}
    assert (tmp_path / "here" / "results.csv").is_file()
    assert not list((there / ".cache/autotune/on").iterdir())  # nothing stays behind


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_record_that_a_lost_connection_left_there_is_gone_on_with(
    is_kept: bool, folder: Path, there: Path, tmp_path: Path
) -> None:
    request = SweepRequest(family=load_family(folder), out=tmp_path / "here")
    (there / "autotune").write_text(f"#!/bin/sh\necho autotune {__version__}\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "store.journal").write_text("sent")
    if is_kept:
        (there / "place" / "out").mkdir(parents=True)
        (there / "place" / "out" / "store.journal").write_text("left there")
    remote._send(Host("gpu", f"{there}/autotune"), "place", request, tmp_path / "policies")
    assert (there / "place" / "out" / "store.journal").read_text() == ("left there" if is_kept else "sent")
    assert (there / "place" / "family" / folder.name / "family.yaml").is_file()


def test_what_cannot_be_swept_there_is_said(
    folder: Path, there: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(folder), "--device", "cpu", "--out", str(tmp_path / "here")]
    assert main([*words, "--on", "nowhere"]) == 5
    assert "cannot sweep on nowhere: ssh: could not resolve nowhere" in capfd.readouterr().err
    assert main([*words, "--on", f"gpu:{there}/autotune5"]) == 5
    assert "autotune5 does not run there" in capfd.readouterr().err
    (there / "autotune").write_text("#!/bin/sh\necho autotune 0.0.1\n")
    assert main([*words, "--on", f"gpu:{there}/autotune"]) == 5
    assert "gpu has autotune 0.0.1, and this is" in capfd.readouterr().err
    assert main([*words, "--on", "gpu", "--store", "elsewhere"]) == 2
    assert main([*words, "--on", "gpu", "--static"]) == 2


def test_an_address_that_ssh_would_take_for_an_option_is_refused() -> None:
    assert Host.parse("me@gpu") == Host("me@gpu")
    assert Host.parse("gpu:/opt/autotune") == Host("gpu", "/opt/autotune")
    for text in ("-oProxyCommand=x", ":autotune"):
        with pytest.raises(UsageError, match="cannot read --on"):
            Host.parse(text)


def test_what_runs_there_ends_with_who_asked(there: Path, tmp_path: Path) -> None:
    """The connection is cut: the guard ends the program on the other side."""
    command = Host("gpu").build_command(guard("TERM"), "sh", "-c", "echo $$; exec sleep 600")
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert running.stdin and running.stdout
    number = int(running.stdout.readline())
    os.kill(number, 0)
    running.stdin.close()
    assert running.wait(PATIENCE_S) == 128 + signal.SIGTERM
    running.stdout.close()
    wait_for(lambda: is_gone(number))
