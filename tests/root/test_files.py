"""A file is replaced whole: whatever happens while it is written, its name holds the old one or the new one. What a
user names may be a link, a pipe or a device, which stays what it is."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from import_path import import_path

from autotune.errors import StoreError
from autotune.files import replace_file, write_file, write_text


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "kept.yaml"
    path.write_text("old")
    with replace_file(path, 0o600, ".json") as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".json")
        assert temporary.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_ends_badly_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replace_file(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said_by_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replace_file(tmp_path / "none" / "a"):
        raise AssertionError("nothing is to be written")


# -- what a user has named


def put(path: Path, text: str) -> Path:
    """Where the file was written first."""
    with write_file(path, ".part.txt") as temporary:
        assert temporary.suffix == ".txt"
        temporary.write_text(text)
    assert not temporary.exists()
    return temporary


@pytest.mark.parametrize("old", ["old", None], ids=["a file", "nothing yet"])
def test_a_link_stays_and_its_target_is_replaced(old: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if old:
        (folder / "target").write_text(old)
    (tmp_path / "second").symlink_to(folder / "target")
    (tmp_path / "first").symlink_to("second")
    before = (folder / "target").stat().st_ino if old else 0
    assert put(tmp_path / "first", "new").parent == folder
    assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert (folder / "target").read_text() == "new" and not (folder / "target").is_symlink()
    assert (folder / "target").stat().st_ino != before
    assert [path.name for path in folder.iterdir()] == ["target"]


def test_text_for_a_file_that_a_user_has_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("table")
    assert write_text(tmp_path / "link", "new", write_file) == tmp_path / "link"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "table").read_text() == "new"
    with pytest.raises(StoreError, match=r"cannot write .*link"):
        write_text(tmp_path / "link" / "below", "new", write_file)


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"), write_file(tmp_path / "a"):
        raise AssertionError("nothing is to be written")


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_pipe_gets_all_and_stays_a_pipe(is_linked: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = tmp_path / "link" if is_linked else pipe
    if is_linked:
        path.symlink_to(pipe)
    text = "more than a pipe holds at once\n" * 10_000
    with ThreadPoolExecutor(1) as reader:
        got = reader.submit(pipe.read_text)
        assert put(path, text).parent == Path(tempfile.gettempdir())
        assert got.result() == text
    assert stat.S_ISFIFO(pipe.stat().st_mode) and path.is_symlink() == is_linked


def test_a_pipe_ends_empty_when_the_block_ends_badly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        got = reader.submit(pipe.read_text)
        with pytest.raises(KeyboardInterrupt), write_file(pipe) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt
        assert got.result() == ""
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.root
def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    """Devices of this folder that are as /dev/null and /dev/full."""
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(tmp_path / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        (tmp_path / "null").write_text("")
    except OSError as problem:
        pytest.skip(f"devices cannot be made or opened in {tmp_path}: {problem.strerror}")
    put(tmp_path / "null", "new")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        put(tmp_path / "full", "new")
    assert all(stat.S_ISCHR(path.stat().st_mode) for path in tmp_path.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"null", "full"}


PROGRAM = """
import sys
from pathlib import Path
from autotune.files import write_file
with write_file(Path(sys.argv[1])) as temporary:
    temporary.write_text("new\\n")
"""


@pytest.mark.parametrize("name", ["stdout", "fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_open_is_written_to_where_it_stands(name: str, is_file: bool, tmp_path: Path) -> None:
    """A shell that has written to the same file before and writes to it behind. The links are as those in /dev, which
    a mistake would replace there for all programs."""
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    (tmp_path / "fd").symlink_to("/proc/self/fd")
    (tmp_path / "link").symlink_to("stdout")
    command = [sys.executable, "-c", PROGRAM, name]
    shell = '(echo before; "$@"; echo behind)' + (" > out" if is_file else "")
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *command], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": import_path()},
    )  # fmt: skip
    got = (tmp_path / "out").read_text() if is_file else done.stdout
    assert got == "before\nnew\nbehind\n"
