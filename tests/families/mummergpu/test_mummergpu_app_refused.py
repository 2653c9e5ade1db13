"""What ``autotune run mummergpu`` refuses: before the device does anything, with one message, and nothing is left."""

import gzip
import lzma
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from autotune.cli import run as running
from autotune.cli.commands import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Small good files; a device that must not be asked for anything; and afterwards the same files as before."""
    Opened.asked, Opened.made, Opened.are_open = [], 0, 0
    monkeypatch.setattr(running, "TunedKernel", Opened)
    (tmp_path / "reference").write_text(">r\nACGTACGTTTGACCA\n")
    (tmp_path / "queries").write_text(">q1\nACGTACG\n>q2\nTTTGACC\n")
    threads = set(threading.enumerate())
    yield tmp_path
    assert {path.name for path in tmp_path.iterdir()} <= {"reference", "queries"}
    assert set(threading.enumerate()) <= threads
    assert set(Opened.asked) <= {"family"}, "no more than what there is to compile ahead"
    assert not Opened.are_open


class Opened:
    """A kernel on a device that is opened, and closed again."""

    kind = "cuda"
    asked: ClassVar[list[str]] = []
    made = are_open = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        type(self).made += 1

    def __enter__(self) -> None:
        type(self).are_open += 1

    def __exit__(self, *_: object) -> None:
        type(self).are_open -= 1

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise AssertionError(f"the device was asked for {name}")


def refused(folder: Path, capsys: pytest.CaptureFixture[str], code: int, **changes: str | None) -> str:
    given: dict[str, str | None] = {
        "reference": str(folder / "reference"), "queries": str(folder / "queries"), "min_match_length": "4",
        "output": str(folder / "out"), **changes,
    }  # fmt: skip
    output = given.pop("output")
    items = [text for name, value in given.items() if value is not None for text in ("-i", f"{name}={value}")]
    arguments = ["run", "mummergpu", "--device", "cpu", *(["-o", output] if output else []), *items]
    assert main(arguments) == code
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("error: ") == 1
    return said


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"min_match_length": None}, 2, "-i min_match_length=N is needed"),
        ({"reference": None}, 2, "-i reference=FILE is needed"),
        ({"queries": ""}, 2, "-i queries=FILE is needed"),
        ({"min_match_length": "0"}, 2, "a whole number from 1 to"),
        ({"min_match_length": "-3"}, 2, "a whole number from 1 to"),
        ({"min_match_length": "2.5"}, 2, "a whole number from 1 to"),
        ({"min_match_length": "many"}, 2, "-i min_match_length=many"),
        ({"min_match_length": "8"}, 4, "longer than every read"),
        ({"min_match_length": "8", "block": "1"}, 4, "the longest has 7 bases"),
        ({"page": "0"}, 2, "none, paper or a whole number"),
        ({"page": "papr"}, 2, "none, paper or a whole number"),
        ({"block": "x"}, 2, "-i block=x"),
        ({"max_read_length": "6"}, 4, "a read may have 6"),
        ({"both_strands": "tru"}, 2, "did you mean 'true'?"),
        ({"min_match_lenght": "4"}, 2, "unknown input 'min_match_lenght' in family mummergpu; did you mean"),
        ({"nodes": "nodes.npy"}, 2, "unknown input 'nodes'"),
        ({"output": None}, 2, "name it with -o FILE"),
        ({"reference": "nowhere.fa"}, 4, "cannot read nowhere.fa"),
        ({"queries": "nowhere.fa"}, 4, "cannot read nowhere.fa"),
    ],
)
def test_a_bad_command_line_is_refused_before_the_device_is_used(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], code: int, said: str
) -> None:
    assert said in refused(folder, capsys, code, **changes)
    if code == 2 or "nowhere" in said:
        assert not Opened.made, "a device was opened for what cannot be right"


@pytest.mark.parametrize("which", ["reference", "queries"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"hello\n", "neither FASTA nor FASTQ"),
        (b"@a\nACGTACGT\n+\nIII\n", "8 bases and 3 qualities"),
        (b"@a\nACGTACGT\n+\n", "is cut short"),
        (b">a\nACGT\x00ACGT\n", "a byte that is not sequence"),
        (gzip.compress(b">a\nACGTACGT\n", mtime=0)[:-9], "is cut short"),
        (gzip.compress(b">a\nACGTACGT\n", mtime=0)[:-8] + b"\0" * 8, "is damaged"),
        (b"\x1f\x8bnot gzip at all", "is damaged"),
        (lzma.compress(b">a\nACGTACGT\n")[:-5], "is cut short"),
    ],
)
def test_bad_files_are_refused_before_the_device_is_used(
    folder: Path, capsys: pytest.CaptureFixture[str], which: str, content: bytes, said: str
) -> None:
    (folder / which).write_bytes(content)
    assert said in refused(folder, capsys, 4)


def test_a_record_of_a_reference_without_sequence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "reference").write_text(">a\nACGTACGT\n>b\n>c\nACGT\n")
    assert "record 2 ('b') has no sequence" in refused(folder, capsys, 4)


def test_reads_without_any_sequence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "queries").write_text(">a\n>b\n\n")
    assert "the longest has 0 bases" in refused(folder, capsys, 4)


def test_reads_from_a_pipe_need_one_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = folder / "queries"
    pipe.unlink()
    os.mkfifo(pipe)
    said = refused(folder, capsys, 4, page="8")
    assert "is a pipe" in said and "each of 2 pages" in said and "page=none" in said


def test_a_reference_of_n_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "reference").write_text(">r\nNNNNNNNN\n")
    assert "none of A, C, G and T" in refused(folder, capsys, 4)


def test_bad_places_for_the_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder" in refused(folder, capsys, 7, output=str(folder))
    assert "does not exist" in refused(folder, capsys, 7, output=str(folder / "no" / "out"))
    for length in (256, 300):  # the file system's names have at most 255 bytes
        assert "File name too long" in refused(folder, capsys, 7, output=str(folder / ("x" * length)))
    content = (folder / "queries").read_bytes()
    assert "would replace it" in refused(folder, capsys, 2, output=str(folder / "queries"))
    assert (folder / "queries").read_bytes() == content
    arguments = ["run", "mummergpu", "-i", "queries=a", "-i", "queries=b"]
    assert main(arguments) == 2
    assert "given twice" in capsys.readouterr().err
