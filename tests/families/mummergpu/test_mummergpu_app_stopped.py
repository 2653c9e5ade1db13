"""What goes wrong while reads are aligned, and what goes on at the same time."""

import gc
import gzip
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from import_path import import_path
from test_mummergpu_app import LAMBDA, alignment, fasta, run

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")


@pytest.fixture
def way(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Names for `run`, with reads of several MB; afterwards nothing is left of the run."""
    reads = [(f"q{number}", "ACGT" * 50) for number in range(30_000)]
    (tmp_path / "reads").write_text(fasta(reads))
    threads = set(threading.enumerate())
    gc.collect()
    gc.disable()  # threads end with the run, not whenever its traceback is collected
    yield {"reference": LAMBDA, "queries": tmp_path / "reads", "min_match_length": 20}
    gc.enable()
    assert [path.name for path in tmp_path.iterdir()] == ["reads"]
    assert set(threading.enumerate()) <= threads


class Nothing:
    """A `Search` that finds nothing, at once."""

    policy = "nothing"
    lanes = 1
    searches = 0
    closed = 0

    def __init__(self, *_: Any) -> None:
        pass

    def search(self, _codes: Any, _offsets: Any) -> Any:
        type(self).searches += 1
        return alignment.Mems(*np.empty((4, 0), np.int64))

    def release(self, _found: Any) -> None:
        pass

    def close(self) -> None:
        type(self).closed += 1


def replaced(monkeypatch: pytest.MonkeyPatch, search: Callable[..., Any] | None = None) -> type[Nothing]:
    class Replaced(Nothing):
        searches = closed = 0  # whatever another test has counted

    if search:
        monkeypatch.setattr(Replaced, "search", search)
    monkeypatch.setattr(alignment, "Searcher", Replaced)
    return Replaced


@pytest.mark.parametrize("page", ["none", 20_000])
def test_a_file_cut_short_at_its_end(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    page: str | int,
) -> None:  # fmt: skip
    fake = replaced(monkeypatch)
    way["queries"].write_bytes(gzip.compress(way["queries"].read_bytes())[:-10])
    run(tmp_path / "out", **way, page=page, block=500_000, code=4)
    assert capsys.readouterr().err.count("cut short: its compressed data has no end") == 1
    assert fake.searches > 1 and fake.closed == 1


def test_a_disk_that_is_full(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    fake = replaced(monkeypatch)
    monkeypatch.setattr(alignment.Lines, "write", full)
    run(tmp_path / "out", **way, block=100_000, code=7)
    assert capsys.readouterr().err.count("No space left on device") == 1
    assert 1 <= fake.searches <= 3 and fake.closed == 1  # of 60 blocks
    monkeypatch.setattr(alignment.Spill, "put", full)
    run(tmp_path / "out", **way, block=100_000, page=20_000, code=7)


def test_ctrl_c_in_the_middle(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def search(self: Nothing, codes: Any, offsets: Any) -> Any:
        if type(self).searches == 3:
            raise KeyboardInterrupt
        return Nothing.search(self, codes, offsets)

    fake = replaced(monkeypatch, search)
    run(tmp_path / "out", **way, block=100_000, page=20_000, code=130)
    assert fake.searches == 3 and fake.closed == 1


def test_an_earlier_output_stays_when_a_run_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: Any) -> Any:
        raise KeyboardInterrupt

    replaced(monkeypatch, search)
    (tmp_path / "out").write_text("earlier")
    run(tmp_path / "out", reference=LAMBDA, queries=LAMBDA, min_match_length=9, code=130)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out", "earlier")]


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_to_the_program(way: dict[str, Any], tmp_path: Path, sent: int, code: int) -> None:
    program = (
        "import importlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored where tests run in the background
        "from autotune.__main__ import entry_point\nfrom autotune.family import load_family\n"
        "alignment = importlib.import_module(load_family('mummergpu').module.__name__ + '.app.run')\n"
        "class Slow:\n"
        "    policy, lanes = '', 1\n"
        "    def __init__(self, *_): pass\n"
        "    def search(self, *_): print('searching', flush=True); time.sleep(3600)\n"
        "    def close(self): print('closed', flush=True)\n"
        "alignment.Searcher = Slow\n"
        "entry_point()\n"
    )
    items = [text for name, value in way.items() for text in ("-i", f"{name}={value}")]
    arguments = [
        "run",
        "mummergpu",
        "--device",
        "cpu",
        *items,
        "-i",
        "page=20000",
        "-o",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": import_path()},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "searching\n"
        assert list(tmp_path.glob(".out.*.partial"))
        process.send_signal(sent)
        shown, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert shown == "closed\n"
    assert "Traceback" not in said
    assert not list(tmp_path.glob(".out*"))


def test_reads_that_change_between_pages(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = way["queries"].read_text()
    for changed in (
        content + ">more\nACGT\n",
        content[: len(content) // 2],
        ">a\nACGTACGTACGTACGTACGTACGT\n",
    ):
        way["queries"].write_text(content)

        class Changing(Nothing):
            text = changed

            def close(self) -> None:
                way["queries"].write_text(self.text)

        monkeypatch.setattr(alignment, "Searcher", Changing)
        run(tmp_path / "out", **way, block=1_000_000, page=20_000, code=4)
        assert "changed while it was read" in capsys.readouterr().err


# ---- at the same time


def test_reading_building_and_writing_go_on_beside_each_other(tmp_path: Path) -> None:
    """Each step waits for one that can only happen if another thread does it meanwhile."""
    reads = tmp_path / "reads"
    reads.write_text(fasta([(f"q{number}", "ACGTACGT") for number in range(6)]))
    is_read, is_searched = [[threading.Event() for _ in range(6)] for _ in range(2)]
    request = alignment.parse(
        {"reference": "-", "queries": str(reads), "min_match_length": "4", "block": "8"}
    )
    written = []

    def blocks() -> Iterator[Any]:
        for number, block in enumerate(alignment.read_blocks(reads, 8)):
            is_read[number].set()
            yield block

    class Waiting(Nothing):
        def search(self, codes: Any, offsets: Any) -> Any:
            number = type(self).searches
            if number + 1 < 6:
                assert is_read[number + 1].wait(20), "nothing is read during the search"
            is_searched[number].set()
            return Nothing.search(self, codes, offsets)

    def open_page(_block: Any) -> Any:
        assert is_read[0].wait(20), "nothing is read while the tree is built"
        return Waiting()

    def keep(number: int, block: Any, _found: Any) -> None:
        if number + 1 < 6:
            assert is_searched[number + 1].wait(20), "nothing is searched during the output"
        written.append(block.headers)

    (page,) = alignment.pages(np.array([0, 1, 4], np.uint8), None, 8)
    reads_once = alignment.Pass(blocks(), iter, True, Nothing.close)
    alignment._search_page(request, page, reads_once, open_page, keep, alignment.Tally(), alignment.Clock())
    assert written == [[f"q{number}"] for number in range(6)]


def test_only_a_few_blocks_are_in_memory(tmp_path: Path) -> None:
    """As many are read as are ahead, in the search and behind, however slow the output is."""
    reads = tmp_path / "reads"
    reads.write_text(fasta([(f"q{number}", "ACGTACGT") for number in range(40)]))
    request = alignment.parse(
        {"reference": "-", "queries": str(reads), "min_match_length": "4", "block": "8"}
    )
    read = 0
    most = 0

    def blocks() -> Iterator[Any]:
        nonlocal read
        for block in alignment.read_blocks(reads, 8):
            read += 1
            yield block

    def keep(number: int, _block: Any, _found: Any) -> None:
        nonlocal most
        threading.Event().wait(0.005)
        most = max(most, read - number)

    (page,) = alignment.pages(np.array([0, 1, 4], np.uint8), None, 8)
    reads_once = alignment.Pass(blocks(), iter, True, Nothing.close)
    alignment._search_page(request, page, reads_once, Nothing, keep, alignment.Tally(), alignment.Clock())
    assert read == 40
    assert 2 <= most <= 4


def test_calls_that_have_not_begun_are_dropped_when_a_run_fails() -> None:
    begun, go_on = threading.Event(), threading.Event()
    done = []

    def first() -> None:
        begun.set()
        go_on.wait(20)
        done.append(1)

    with pytest.raises(KeyError), alignment.Behind(most=5) as behind:
        behind.do(first)
        behind.do(done.append, 2)
        assert begun.wait(20)
        threading.Timer(0.2, go_on.set).start()
        raise KeyError
    assert done == [1]
