"""``autotune worker``: joins what another host asked for."""

import json
import shutil
from pathlib import Path

import pytest

from autotune.cli.commands import main
from autotune.declaration import load_family
from autotune.engine import OPTIONS, NotAsked, request_of
from autotune.record import Store, read_record
from autotune.record.claims import study_of


def asked_only(done: Path, folder: Path) -> None:
    """The record of a sweep as it was when that had only begun."""
    folder.mkdir()
    lines = (done / "store.journal").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if "trial" not in json.loads(line).get("user_attrs", ())]
    (folder / "store.journal").write_bytes(b"".join(kept[:4]))  # begun, study, about, asked


def test_it_tries_what_is_left_and_leaves_the_end_to_who_asked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies"), "--samples", "3"]
    assert main(["sweep", str(folder), "--device", "cpu", "--store", "done", *named]) == 0
    (done,) = read_record("done")
    asked_only(tmp_path / "done", tmp_path / "begun")
    capsys.readouterr()
    join = ["worker", "--store", "begun", "--device", "cpu"]
    assert main([*join, "--family", str(folder)]) == 0
    assert f"{len(done.trials)} recorded, 0 of them before this worker came" in capsys.readouterr().out
    (joined,) = read_record("begun")
    assert {t.configuration for t in joined.trials} == {t.configuration for t in done.trials}
    assert joined.identity == done.identity
    assert not joined.about.finalists  # the sweep's own to choose
    assert not (tmp_path / "autotune-results").exists()
    text = (folder / "family.py").read_text()
    (folder / "family.py").write_text(f"{text}\n# another text, another study\nOTHER = 1\n")
    assert main([*join, "--family", str(folder)]) == 7
    said = capsys.readouterr().err
    assert "has no sweep of doubler on" in said
    assert "as it is on this host: family's family.py changed since" in said
    assert len(Store("begun").studies()) == 1


def test_where_nothing_was_asked_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--store", str(tmp_path / "new"), "--wait", "0"]) == 7
    assert "no sweep began in" in capsys.readouterr().err


def asking(folder: Path, name: str, **asked: object) -> str:
    """The address of a record in which a sweep asks for that, as anybody may write it."""
    plain = {
        **{one.name: one.default for one in OPTIONS.values() if one.shared},
        "family": name,
        "workload": "tiny",
        "data": "",
        "samples": 3,
        **asked,
    }
    store = Store(folder)
    store.storage.set_study_user_attr(study_of(store.storage, "forged"), "asked", plain)
    return str(folder)


def test_a_record_names_no_code_that_runs_here(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "family.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    where = asking(tmp_path / "record", str(folder))
    assert main(["worker", "--store", where, "--device", "cpu"]) == 7
    said = capsys.readouterr().err
    assert f"uses the family in {folder}, whose code would run here" in said
    assert "name the folder doubler of this host with --family" in said
    assert main(["worker", "--store", where, "--device", "cpu", "--family", str(tmp_path)]) == 7
    assert not (tmp_path / "ran").exists()
    command = f"sh -c 'touch {tmp_path / 'ran'}'"
    where = asking(tmp_path / "compiler", "allpairs", compiler=command)
    assert main(["worker", "--store", where, "--device", "cpu"]) == 7
    assert "set CXX to it if that is what you want" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_family_that_ships_and_a_compiler_by_its_usual_name_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "ccache g++")
    own = tmp_path / "elsewhere" / "allpairs"
    asked = {"workload": "w", "data": "", **{one.name: one.default for one in OPTIONS.values()}}
    for compiler in ("", "nvcc", "g++", "clang++-19", "x86_64-linux-gnu-g++-14", "ccache g++"):
        told = {**asked, "family": "allpairs", "compiler": compiler}
        assert request_of(told, "", device="cpu").compiler == compiler
    for compiler in ("./g++", "/tmp/g++", "g++ -wrapper sh", "python3"):
        with pytest.raises(NotAsked, match="uses the compiler"):
            request_of({**asked, "family": "allpairs", "compiler": compiler}, "", device="cpu")
    shutil.copytree(load_family("allpairs").folder, own)
    told = {**asked, "family": "/home/other/allpairs", "compiler": ""}
    assert request_of(told, "", device="cpu", own=(str(own),)).family.folder == own
