"""What a compiler says of its version is asked once, and again when its program is another file."""

from pathlib import Path

import pytest

from autotune.compile.told_version import told_version


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Asked:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        return f"compiler {self.times}"


def program(path: Path, content: bytes = b"\x7fELF first") -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    "name", ["g++", "c++", "clang++-18", "x86_64-linux-gnu-g++-12", "aarch64-conda-linux-gnu-c++"]
)
def test_a_compiler_is_asked_once(name: str, tmp_path: Path, cache: Path) -> None:
    ask = Asked()
    command = [program(tmp_path / name)]
    assert told_version(command, ask) == told_version(command, ask) == "compiler 1"
    program(tmp_path / name, b"\x7fELF another, longer")
    assert told_version(command, ask) == "compiler 2"
    assert len([*cache.rglob("*.txt")]) == 2


def test_a_name_is_looked_for_on_path(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Asked()
    (tmp_path / "here").mkdir()
    named = Path(program(tmp_path / "here" / "g++"))
    named.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "here"))
    assert [told_version(command, ask) for command in (["g++"], [str(named)], ["g++"])] == ["compiler 1"] * 3
    assert cache.is_dir()


def test_a_name_for_another_program_is_that_program(tmp_path: Path, cache: Path) -> None:
    ask = Asked()
    program(tmp_path / "g++-12")
    program(tmp_path / "ccache")
    for name, target in (("c++", "g++-12"), ("g++", "ccache")):
        (tmp_path / name).symlink_to(target)
    told = [told_version([str(tmp_path / name)], ask) for name in ("c++", "g++-12", "g++", "g++")]
    assert told == ["compiler 1", "compiler 1", "compiler 2", "compiler 3"]
    assert cache.is_dir()


@pytest.mark.parametrize("content", [b"#!/bin/sh\nexec newest-g++\n", b""])
def test_a_script_may_start_any_compiler(content: bytes, tmp_path: Path, cache: Path) -> None:
    ask = Asked()
    command = [program(tmp_path / "g++", content)]
    assert [told_version(command, ask) for _ in range(2)] == ["compiler 1", "compiler 2"]
    assert not cache.exists()


def test_a_command_of_several_words_is_asked(tmp_path: Path, cache: Path) -> None:
    ask = Asked()
    command = [program(tmp_path / "g++"), "-m32"]
    assert [told_version(command, ask) for _ in range(2)] == ["compiler 1", "compiler 2"]
    assert told_version([str(tmp_path / "missing"), ""], ask) == "compiler 3"
    assert not cache.exists()


@pytest.mark.parametrize("damage", [b"", b"two\nlines", b"\xff\xfe", b"x" * 500])
def test_what_is_no_line_is_asked_for_again(damage: bytes, tmp_path: Path, cache: Path) -> None:
    ask = Asked()
    command = [program(tmp_path / "g++")]
    told_version(command, ask)
    (kept,) = cache.rglob("*.txt")
    kept.write_bytes(damage)
    assert [told_version(command, ask) for _ in range(2)] == ["compiler 2", "compiler 2"]


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Asked()
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file")
    monkeypatch.setenv("AUTOTUNE_CACHE", str(in_the_way))
    command = [program(tmp_path / "g++")]
    assert [told_version(command, ask) for _ in range(2)] == ["compiler 1", "compiler 2"]
