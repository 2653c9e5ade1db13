"""What killed runs have left of an output is removed by the next one, and nothing else is."""

import fcntl
import os
from pathlib import Path

import pytest

from autotune.cli.run import lock_output
from autotune.files import write_file

OWN = ".out.mems.0123456789abcdef.partial.mems"
LEFT = ".out.mems.fedcba9876543210.partial.mems"


def old(path: Path) -> Path:
    path.write_text("half")
    os.utime(path, (1e9, 1e9))
    return path


def names_after(folder: Path) -> set[str]:
    own = folder / OWN
    own.write_text("")
    with lock_output(own, ".partial.mems"):
        return {path.name for path in folder.iterdir()}


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    old(tmp_path / LEFT)
    assert names_after(tmp_path) == {OWN}


@pytest.mark.parametrize("name", ["out.npy", "[a]*?.npy", "out.partial", "long" * 30])
def test_whatever_the_outputs_name(name: str, tmp_path: Path) -> None:
    ending = f".partial{Path(name).suffix}"
    with write_file(tmp_path / name, ending) as left, write_file(tmp_path / name, ending) as own:
        os.utime(left, (1e9, 1e9))
        with lock_output(own, ending):
            assert list(tmp_path.iterdir()) == [own]
        left.touch()  # what made it takes it away


@pytest.mark.parametrize(
    "name",
    [
        "out.mems", ".out.mems", ".other.mems.fedcba9876543210.partial.mems", ".out.mems.fedcba9876543210.partial.npy",
        ".out.mems.fedcba987654321.partial.mems", ".out.mems.fedcba9876543210.partial.mems.kept",
        ".out.mems.mine.partial.mems",
    ],
)  # fmt: skip
def test_others_stay(name: str, tmp_path: Path) -> None:
    old(tmp_path / name)
    assert names_after(tmp_path) == {OWN, name}


def test_what_somebody_writes_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT).write_text("begun just now")
    assert names_after(tmp_path) == {OWN, LEFT}
    with lock_output(old(tmp_path / LEFT), ".partial.mems"):
        os.utime(tmp_path / LEFT, (1e9, 1e9))
        assert names_after(tmp_path) == {OWN, LEFT}
    assert names_after(tmp_path) == {OWN}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = old(tmp_path / "mine")
    (tmp_path / LEFT).symlink_to(target)
    assert names_after(tmp_path) == {OWN, LEFT, "mine"}


def test_a_file_system_without_locks_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    old(tmp_path / LEFT)
    assert names_after(tmp_path) == {OWN, LEFT}
