"""What ``autotune run mummergpu`` does ahead and at the same time: opens, compiles, searches both strands."""

import gzip
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lending import make_world, tuned
from mummergpu_helpers import _load, mums
from test_mummergpu_app import LAMBDA, alignment, fasta, fastq, run, search

from autotune.cli.commands import main
from autotune.dispatch import TunedKernel
from autotune.dispatch import target as targets
from autotune.errors import CompilerError, WorkloadError

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

ahead, stages = _load("app.expected"), _load("app.stages")

# ---- sizes


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.booleans())
def test_what_is_expected_of_a_small_file_is_what_it_has_and_its_line_ends(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], is_fasta: bool
) -> None:
    path = tmp_path_factory.mktemp("sizes") / "file"
    path.write_text((fasta if is_fasta else fastq)([("r", "A" * length) for length in lengths]))
    assert ahead.expected(path) == (sum(lengths), len(lengths))


def test_a_large_file_is_as_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "reads"
    path.write_text(fasta([(f"read{number:05}", "ACGT" * 25) for number in range(20_000)]))
    letters, records = ahead.expected(path)
    assert letters == pytest.approx(2_000_000, rel=0.01) and records == pytest.approx(20_000, rel=0.01)


def test_nothing_is_expected_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "gzip").write_bytes(gzip.compress(b">a\nACGT\n"))
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")  # which nobody writes to: opening it would wait
    for name in ("gzip", "empty", "pipe", "nowhere", ".", "n" * 300):
        assert ahead.expected(tmp_path / name) is None


# ---- compilers


def test_what_was_compiled_ahead_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(monkeypatch)
    compiled: list[str] = []
    compile_module = targets.compile_module

    def counted(backend: Any, cache: Any, variant: Any, *more: Any) -> Any:
        compiled.append(variant.configuration.id)
        return compile_module(backend, cache, variant, *more)

    monkeypatch.setattr(targets, "compile_module", counted)
    programs: list[Any] = []
    program = TunedKernel.program

    def noted(kernel: TunedKernel, *of: Any) -> Any:
        programs.append(of)
        return program(kernel, *of)

    monkeypatch.setattr(TunedKernel, "program", noted)
    text = np.append(np.random.default_rng(1).integers(0, 4, 300), 4).astype(np.uint8)
    with tuned("mummergpu") as kernel:
        search.compile_ahead(kernel, 310, 20, 1000, 11)
        assert len(compiled) == 1 and len(programs) == 1
        searcher = search.Searcher(kernel, text, 20, 900, 10)
        found = searcher.search(text[:-1], np.array([0, 300]))
        searcher.close()
    assert len(compiled) == 1 and len(programs) == 2 and programs[0] == programs[1]  # from the cache
    assert found.lengths.tolist() == [300]


def test_compilers_run_while_the_block_does(monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(monkeypatch)
    begun, go_on = threading.Event(), threading.Event()

    def load(*_: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        raise CompilerError("does not compile")

    chosen: Any = SimpleNamespace()
    inputs: Any = SimpleNamespace()
    with tuned("mummergpu") as kernel:
        monkeypatch.setattr(kernel._target, "load", load)
        loaded = threading.Event()
        monkeypatch.setattr(kernel._target.layout_transform, "load", loaded.set)
        compilers = kernel.compilers(chosen, inputs)
        with pytest.raises(CompilerError, match="does not compile"), stages.Together(compilers):
            assert begun.wait(20) and loaded.wait(20)
            go_on.set()
        with pytest.raises(WorkloadError, match="of the block"), stages.Together(compilers):
            raise WorkloadError("of the block")  # is what matters


@pytest.mark.parametrize(("page", "characters"), [("none", 1011), ("200", 251), ("5000", 1011)])
def test_what_is_compiled_ahead_is_for_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, characters: int
) -> None:
    (tmp_path / "reference").write_text(fasta([("one", "ACGT" * 250)] + [("more", "A")] * 5))
    (tmp_path / "reads").write_text(fasta([("read", "ACGT" * 10)] * 30))
    request = alignment.parse({
        "reference": str(tmp_path / "reference"), "queries": str(tmp_path / "reads"), "min_match_length": "20",
        "page": page, "max_read_length": "50", "block": "400",
    })  # fmt: skip
    compiled: list[Any] = []
    monkeypatch.setattr(alignment, "compile_ahead", lambda *given: compiled.append(given))
    alignment._compile_ahead(request, None)
    assert compiled == [(None, characters, 20, 400, 13)]


# ---- the command on a GPU that is the cpu


def test_the_device_stays_open_while_something_compiles_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_world(monkeypatch)
    (tmp_path / "sequence").write_text(fasta([("one", "ACGTTGCAAC" * 5)]))
    searched, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    had_ended: list[bool] = []
    close_search, close_kernel = search.Searcher.close, TunedKernel.close

    def compile_ahead(*_: Any) -> None:
        assert go_on.wait(20)
        ended.set()

    def closed(searcher: Any) -> None:
        close_search(searcher)
        searched.set()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *arguments: Any, **named: Any) -> None:
            if searched.is_set():
                go_on.set()
            super().shutdown(*arguments, **named)

    def close(kernel: TunedKernel) -> None:
        had_ended.append(ended.is_set())
        close_kernel(kernel)

    monkeypatch.setattr(alignment, "compile_ahead", compile_ahead)
    monkeypatch.setattr(search.Searcher, "close", closed)
    monkeypatch.setattr(alignment, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(TunedKernel, "close", close)
    items = ["-i", f"reference={tmp_path / 'sequence'}", "-i", f"queries={tmp_path / 'sequence'}"]
    command = ["run", "mummergpu", "--device", "cuda", "-o", str(tmp_path / "found"), *items]
    assert main([*command, "-i", "min_match_length=20"]) == 0
    assert had_ended and all(had_ended)


def test_a_gpu_writes_what_the_cpu_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(gzip.decompress(LAMBDA.read_bytes()).decode().split("\n")[1:])[:900]
    (tmp_path / "reference").write_text(fasta([("one", text[:500]), ("two", text[400:])]))
    reads = [(f"q{number}", text[30 * number : 30 * number + 60]) for number in range(12)]
    reads += [("turned", text[100:180][::-1].translate(str.maketrans("ACGT", "TGCA")))]
    (tmp_path / "reads").write_text(fasta(reads))
    files = {"reference": tmp_path / "reference", "queries": tmp_path / "reads"}
    given_ = {**files, "min_match_length": 20, "both_strands": "true", "block": 200}
    run(tmp_path / "cpu", **given_)
    world = make_world(monkeypatch)
    items = [text for name, value in given_.items() for text in ("-i", f"{name}={value}")]
    assert main(["run", "mummergpu", "--device", "cuda", "-o", str(tmp_path / "gpu"), *items]) == 0
    assert world.opened == ["cuda"]
    assert (tmp_path / "gpu").read_bytes() == (tmp_path / "cpu").read_bytes()
    assert {match.reverse for match in mums.parse(tmp_path / "gpu")} == {False, True}


# ---- strands


class Meeting:
    """A `Search` whose searches wait for so many others, and find the first base of every read."""

    policy = "nothing"
    lanes = 2

    def __init__(self, at_once: int) -> None:
        self._others = threading.Barrier(at_once)
        self.codes: list[Any] = []

    def search(self, codes: Any, offsets: Any) -> Any:
        self._others.wait(20)
        self.codes.append(codes.tolist())
        reads = np.arange(len(offsets) - 1, dtype=np.uint32)
        return alignment.Mems(reads, codes[offsets[:-1]].astype(np.uint32), reads * 0, reads * 0 + 1)

    def release(self, _found: Any) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("both", "at_once"), [("false", 2), ("true", 4)])
def test_two_portions_on_every_strand_are_searched_at_once(tmp_path: Path, both: str, at_once: int) -> None:
    reads = tmp_path / "reads"
    reads.write_text(fasta([(f"q{number}", "ACCC") for number in range(4)]))
    given_ = {
        "reference": "-",
        "queries": str(reads),
        "min_match_length": "1",
        "block": "4",
        "both_strands": both,
    }
    request, meeting = alignment.parse(given_), Meeting(at_once)
    kept: list[Any] = []

    def keep(number: int, block: Any, found: Any) -> None:
        kept.append((number, [*block.headers], [mems.positions.tolist() for mems in found]))

    (page,) = alignment.pages(np.array([0, 1, 4], np.uint8), None, 8)
    reads_once = alignment.Pass(alignment.read_blocks(reads, 4), iter, True, Meeting.close)
    alignment._search_page(
        request, page, reads_once, lambda _: meeting, keep, alignment.Tally(), alignment.Clock()
    )
    strands = [[0], [2]] if both == "true" else [[0]]  # ACCC turned is GGGT
    assert kept == [(number, [f"q{number}"], strands) for number in range(4)]
