"""``autotune worker``: joins what another host asked for."""

import json
from pathlib import Path

import pytest

from autotune.cli.commands import main
from autotune.record import Store, read_record


def asked_only(done: Path, folder: Path) -> None:
    """The record of a sweep as it was when that had only begun."""
    folder.mkdir()
    (folder / "autotune-shared-record").touch()
    for journal in done.glob("*.journal"):
        lines = journal.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["key"] != "trial"]
        (folder / journal.name).write_bytes(b"".join(kept[:4]))  # begun, study, about, asked


def test_it_tries_what_is_left_and_leaves_the_end_to_who_asked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies"), "--samples", "3"]
    assert main(["sweep", str(folder), "--device", "cpu", "--store", "shared:done", *named]) == 0
    (done,) = read_record("done")
    asked_only(tmp_path / "done", tmp_path / "begun")
    capsys.readouterr()
    assert main(["worker", "--store", "begun", "--device", "cpu"]) == 0
    assert f"{len(done.trials)} recorded, 0 of them before this worker came" in capsys.readouterr().out
    (joined,) = read_record("shared:begun")
    assert {t.configuration for t in joined.trials} == {t.configuration for t in done.trials}
    assert joined.identity == done.identity
    assert not joined.about.finalists  # the sweep's own to choose
    assert not (tmp_path / "autotune-results").exists()
    text = (folder / "family.py").read_text()
    (folder / "family.py").write_text(f"{text}\n# another text, another study\nOTHER = 1\n")
    assert main(["worker", "--store", "begun", "--device", "cpu"]) == 7
    said = capsys.readouterr().err
    assert "has no sweep of doubler on" in said
    assert "as it is on this host: family's family.py changed since" in said
    assert len(Store("begun").studies()) == 1


def test_where_nothing_was_asked_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--store", f"shared:{tmp_path / 'new'}", "--wait", "0"]) == 7
    assert "no sweep began in" in capsys.readouterr().err
    assert main(["worker", "--store", str(tmp_path / "nothing")]) == 2
    assert "joins a record that is there" in capsys.readouterr().err
