"""A file is replaced whole: whatever happens while it is written, its name holds the old one or the new one."""

from pathlib import Path

import pytest

from autotune.files import replaced


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "kept.yaml"
    path.write_text("old")
    with replaced(path, 0o600, ".json") as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".json")
        assert temporary.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_ends_badly_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replaced(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said_by_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replaced(tmp_path / "none" / "a"):
        raise AssertionError("nothing is to be written")
