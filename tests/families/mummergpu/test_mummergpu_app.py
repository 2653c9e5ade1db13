"""``autotune run mummergpu -i …`` from files to a file, on the cpu device: against MUMmer, and every way the same."""

import dataclasses
import gzip
import importlib
import lzma
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mem_oracle import run_mummer
from mummergpu_helpers import mums, text_of
from test_mummergpu_pages import NAME, cases, numpy_mems

from autotune.cli.commands import main
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.dispatch import target

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

alignment = importlib.import_module(f"{NAME}.app.run")
search = importlib.import_module(f"{NAME}.app.search")
ROOT = Path(__file__).parents[3]
LAMBDA = ROOT / "workloads" / "data" / "lambda_NC_001416.1.fa.gz"
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def run(output: Path, *, code: int = 0, **given: Any) -> None:
    items = [argument for name, value in given.items() for argument in ("-i", f"{name}={value}")]
    assert main(["run", "mummergpu", "--device", "cpu", "-o", str(output), *items]) == code


def pieces(text: str, count: int, seed: int) -> list[str]:
    """Reads: pieces of both strands with letters changed, some to N."""
    generator = np.random.default_rng(seed)
    reads = []
    for number in range(count):
        length = int(generator.integers(15, 200))
        start = int(generator.integers(0, len(text) - length))
        letters = list(text[start : start + length])
        for place in generator.integers(0, length, length // 40):
            letters[place] = "ACGTN"[generator.integers(5)]
        read = "".join(letters)
        reads.append(read[::-1].translate(COMPLEMENT) if number % 2 else read)
    return reads


def fasta(records: list[tuple[str, str]]) -> str:
    return "".join(f">{header}\n{text}\n" for header, text in records)


def fastq(records: list[tuple[str, str]]) -> str:
    return "".join(f"@{header}\n{text}\n+\n{'I' * len(text)}\n" for header, text in records)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """lambda.fa (one record), records.fa (several, with N, lower case and Windows line ends), reads.fa."""
    folder = tmp_path_factory.mktemp("files")
    text = "".join(gzip.decompress(LAMBDA.read_bytes()).decode().split("\n")[1:])
    (folder / "lambda.fa").write_text(fasta([("lambda", text)]))
    several = [("one of them", text[:900] + "N" * 30 + text[900:3000]), ("two", text[2500:6000].lower()),
               ("a_longer_name x", text[40:90])]  # fmt: skip
    (folder / "records.fa").write_bytes(fasta(several).replace("\n", "\r\n").encode())
    reads = [(f"read{number} of lambda", read) for number, read in enumerate(pieces(text, 400, 1))]
    reads += [(f"near{number}", read) for number, read in enumerate(pieces(text[:6000], 100, 2))]
    (folder / "reads.fa").write_text(fasta(reads))
    (folder / "reads.fq.gz").write_bytes(gzip.compress(fastq(reads).encode()))
    (folder / "reads.fa.xz").write_bytes(lzma.compress(fasta(reads).replace("\n", "\r\n").lower().encode()))
    return folder


# ---- MUMmer


@pytest.mark.mummer
@pytest.mark.parametrize("options", [{}, {"block": 3000}, {"page": "none"}, {"page": "paper"}])
def test_one_record_one_strand_is_mummers_file_byte_for_byte(
    files: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    reference, reads, output = files / "lambda.fa", files / "reads.fa", tmp_path / "out.mems"
    run(output, reference=reference, queries=reads, min_match_length=20, **options)
    expected = run_mummer(reference, reads, 20)
    assert expected.count("\n") > 700
    assert output.read_text() == expected
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.mummer
@pytest.mark.parametrize("reads", ["reads.fa", "reads.fq.gz", "reads.fa.xz"])
@pytest.mark.parametrize("options", [{}, {"page": 2000, "max_read_length": 200, "block": 5000}])
def test_several_records_both_strands_have_mummers_matches(
    files: Path, tmp_path: Path, reads: str, options: dict[str, Any]
) -> None:
    output, expected = tmp_path / "out.mems", tmp_path / "expected.mems"
    reference = files / "records.fa"
    run(
        output,
        reference=reference,
        queries=files / reads,
        min_match_length=12,
        both_strands="true",
        **options,
    )
    content = run_mummer(reference, files / "reads.fa", 12, both_strands=True)
    expected.write_text(content)
    matches = mums.parse(output)
    assert matches == mums.parse(expected)
    assert {(match.record, match.reverse) for match in matches} >= {("one", True), ("two", False)}
    headers = [line for line in content.splitlines() if line.startswith(">")]
    assert [line for line in output.read_text().splitlines() if line.startswith(">")] == headers


EMPTY = ">e0\n>a one\n{0}\n>e1 x\n\n>e2\n>b\n{1}\n>e3\n"


@pytest.mark.mummer
@pytest.mark.parametrize("content", [EMPTY, "\n\n" + EMPTY, EMPTY.replace("\n", "\r\n")])
@pytest.mark.parametrize("options", [{}, {"block": 1}, {"block": 100}, {"page": 500, "max_read_length": 200}])
def test_empty_reads_and_lines_in_front_are_mummers_file(
    files: Path, tmp_path: Path, content: str, options: dict[str, Any]
) -> None:
    text = (files / "lambda.fa").read_text().split("\n")[1]
    (tmp_path / "one.fa").write_text(fasta([("lambda", text[:1200])]))
    reads, output = tmp_path / "reads.fa", tmp_path / "out.mems"
    reads.write_text(content.format(text[100:140], text[500:590]), newline="")
    for both in (False, True):
        given = {"min_match_length": 20, "both_strands": str(both).lower(), **options}
        run(output, reference=tmp_path / "one.fa", queries=reads, **given)
        assert output.read_text() == run_mummer(tmp_path / "one.fa", reads, 20, both_strands=both)


def test_both_files_from_pipes(files: Path, tmp_path: Path) -> None:
    """And where the first blocks are shorter than a match, so that several are read before a search."""
    text = (files / "lambda.fa").read_text().split("\n")[1][:900]
    contents = {
        "reference": gzip.compress(fasta([("r", text)]).encode()),
        "queries": fasta([("short", text[:8]), ("empty", ""), ("long", text[50:99])]).encode(),
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.file").write_bytes(content)
    given = {name: tmp_path / f"{name}.file" for name in contents}
    expected, output = tmp_path / "expected.mems", tmp_path / "out.mems"
    run(expected, **given, min_match_length=20, block=4)
    pipes = {name: tmp_path / f"{name}.pipe" for name in contents}
    with ThreadPoolExecutor(2) as pool:
        for name, pipe in pipes.items():
            os.mkfifo(pipe)
            pool.submit(pipe.write_bytes, contents[name])
        run(output, **pipes, min_match_length=20, block=4)
    assert output.read_bytes() == expected.read_bytes()
    assert output.read_text().endswith("> long\n      51         1        49\n")


@pytest.mark.mummer
@pytest.mark.parametrize(
    "text", ["search=tree,emit=ranges", "search=coarse_table,emit=ranges", "search=fine_table,emit=ranges"]
)
@pytest.mark.parametrize("options", [{}, {"page": 9000, "max_read_length": 200, "block": 9000}])
def test_every_search_has_what_it_reads(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: dict[str, Any]
) -> None:
    configuration = families.load_family("mummergpu").space.configuration(text)
    monkeypatch.setattr(
        target, "choose", lambda listed, _: (dataclasses.replace(listed[-1], configuration=configuration), [])
    )
    reference, reads, output = files / "lambda.fa", files / "reads.fa", tmp_path / "out.mems"
    run(output, reference=reference, queries=reads, min_match_length=14, **options)
    (tmp_path / "expected").write_text(run_mummer(reference, reads, 14))
    assert mums.parse(output) == mums.parse(tmp_path / "expected") != []
    if not options:
        assert output.read_text() == (tmp_path / "expected").read_text()


# ---- pages and blocks


def test_pages_and_blocks_change_nothing(files: Path, tmp_path: Path) -> None:
    given = {"reference": files / "lambda.fa", "queries": files / "reads.fa", "min_match_length": 8}
    whole, cut, blocks, both = (tmp_path / name for name in ("whole", "cut", "blocks", "both"))
    run(whole, **given)
    run(blocks, **given, block=9000)
    assert blocks.read_bytes() == whole.read_bytes()
    run(cut, **given, page=9000, max_read_length=200)
    run(both, **given, page=9000, max_read_length=200, block=2500)
    assert both.read_bytes() == cut.read_bytes()
    assert mums.parse(cut) == mums.parse(whole)
    at = -1, -1
    for line in cut.read_text().splitlines():  # several pages: by start, then position
        position, start = map(int, line.split()[:2]) if line[0] == " " else (-1, -1)
        assert (start, position) > at or start == -1
        at = start, position


class BruteForce:
    """A `Search` without kernels."""

    policy = "brute force"
    lanes = 3

    def __init__(self, text: Any, minimum: int) -> None:
        self.text, self.minimum = text, minimum

    def search(self, codes: Any, offsets: Any) -> Any:
        reads = np.split(codes, offsets[1:-1])
        return numpy_mems(self.text, reads, self.minimum)

    def release(self, _found: Any) -> None:
        pass

    def close(self) -> None:
        pass


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(1, 80), st.integers(1, 60), st.sampled_from([1, 2, 4]), st.booleans())
def test_every_way_through_writes_the_same(
    tmp_path_factory: pytest.TempPathFactory, case: Any, page: int, block: int, minimum: int, both: bool
) -> None:
    codes, starts, reads = case
    if max(map(len, reads)) < minimum:
        return
    folder = tmp_path_factory.mktemp("ways")
    ends = [*starts[1:], len(codes)]
    records = [
        (f"r{a}", text_of(codes[a : b - 1]).replace(".", "N")) for a, b in zip(starts, ends, strict=True)
    ]
    queries = [(f"q{n}", text_of(read).replace(".", "N")) for n, read in enumerate(reads)]
    (folder / "reference").write_text(fasta(records))
    (folder / "reads").write_text(fasta(queries))
    texts = []
    for way in ({"page": "none"}, {"page": str(page), "block": str(block)}):
        request = alignment.parse({
            "reference": str(folder / "reference"),
            "queries": str(folder / "reads"),
            "min_match_length": str(minimum),
            "both_strands": str(both).lower(),
            "max_read_length": "30",
            **way,
        })  # fmt: skip
        reference = alignment.read_reference(request.reference)
        np.testing.assert_array_equal(reference.codes, codes)
        tally = alignment.align(
            request,
            reference,
            alignment.pages(codes, request.page or None, 30),
            alignment.read_blocks(request.queries, request.block, 30),
            lambda text, _: BruteForce(text, minimum),
            BruteForce.close,
            folder / "out",
            alignment.Clock(),
        )
        texts.append((folder / "out").read_text())
        assert (tally.reads, tally.bases) == (len(reads), sum(map(len, reads)))
        assert tally.matches == sum(line[0] != ">" for line in texts[-1].splitlines())
    # Brute force has one order on every page: by start, then position.
    assert texts[0] == texts[1]
    assert texts[0].count(">") == len(reads) * (1 + both)


def test_a_reference_beyond_the_memory_is_cut_by_itself(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"reference": files / "lambda.fa", "queries": files / "reads.fa", "min_match_length": 20,
             "max_read_length": 200}  # fmt: skip
    cpu: Any = SimpleNamespace(kind="cpu")
    assert 2**20 < search.largest_text(cpu, np.zeros(9, np.uint8), 20) < 2**31
    run(tmp_path / "whole", **given)
    assert "1 page\n" in capsys.readouterr().out
    monkeypatch.setattr(alignment, "largest_text", lambda *_: 20_000)
    run(tmp_path / "cut", **given)
    assert "3 pages\n" in capsys.readouterr().out
    assert mums.parse(tmp_path / "cut") == mums.parse(tmp_path / "whole") != []


def test_a_page_is_as_large_as_what_its_configuration_takes_allows() -> None:
    text, family = np.broadcast_to(np.uint8(0), 2**33), families.load_family("mummergpu")  # takes no memory

    def largest(gigabytes: int, **settings: str) -> int:
        chosen = family.space.configuration(",".join(f"{name}={value}" for name, value in settings.items()))
        kernel: Any = SimpleNamespace(
            kind="cuda", memory_bytes=gigabytes * 10**9, family=family, bind=lambda **_: None,
            explain=lambda _: (SimpleNamespace(configuration=chosen),),
        )  # fmt: skip
        return search.largest_text(kernel, text, 20)

    words = {"search": "fine_table", "emit": "ranges"}
    assert [largest(150, **of) // 10**8 for of in ({"emit": "walk"}, {"emit": "ranges"}, words)] == [
        10,
        8,
        34,
    ]
    assert largest(10**4, emit="walk") == 2**31 - 3
    assert largest(10**4, **words) == 2**32 - 3


def test_the_hosts_index_has_room_for_the_seeds_of_either_table() -> None:
    family = families.load_family("mummergpu")
    text = np.append(np.random.default_rng(4).integers(0, 4, 500), 4).astype(np.uint8)
    index_of = importlib.import_module(f"{NAME}.app.page_index").index_of
    kernel: Any = SimpleNamespace(kind="cpu", family=family)
    for search_by in ("coarse_table", "fine_table"):
        chosen = family.space.configuration(f"search={search_by},emit=ranges")
        arrays = index_of(kernel, text, 12, chosen).arrays
        # family.yaml: seeds have room by the words of the finer one.
        assert arrays["fine_table"].size >= arrays["coarse_table"].size > 1


def test_a_read_that_is_long_enough_may_come_late(files: Path, tmp_path: Path) -> None:
    reads = [("a", "ACGT"), ("b", "GGGCGGCGACCTCG"), ("c", "AC")]  # b is where lambda begins
    (tmp_path / "reads").write_text(fasta(reads))
    given = {"reference": files / "lambda.fa", "queries": tmp_path / "reads", "min_match_length": 14}
    run(tmp_path / "one", **given)
    run(tmp_path / "three", **given, block=1)
    assert (tmp_path / "one").read_text() == "> a\n> b\n       1         1        14\n> c\n"
    assert (tmp_path / "three").read_bytes() == (tmp_path / "one").read_bytes()


# ---- the command


def test_what_the_run_says(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = {"reference": files / "lambda.fa", "queries": files / "reads.fa", "min_match_length": 20,
             "both_strands": "true", "block": 20_000, "page": 30_000}  # fmt: skip
    arguments = [text for name, value in items.items() for text in ("-i", f"{name}={value}")]
    output = tmp_path / "out"
    assert main(["run", "mummergpu", "--device", "cpu", "-o", str(output), "--explain", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "mummergpu",
        "mummergpu",
        "reads",
        "matches",
        "seconds",
        "rate",
        "written",
    ]
    assert lines[0].startswith("mummergpu runs block_size=") and "the family's defaults" in lines[0]
    assert lines[1].endswith("(control)") and "tree_order=" in lines[1]
    reads = files / "reads.fa"
    bases = sum(len(line) for line in reads.read_text().splitlines() if line[0] != ">")
    assert lines[2] == f"reads        500 ({bases:,} bases), both strands, 2 pages"
    assert lines[3] == f"matches      {len(mums.parse(output)):,} of at least 20 bases"
    assert all(word in lines[4] for word in ("start", "index", "search", "reading", "output"))
    assert lines[-1] == f"written      {output}"


@pytest.mark.filterwarnings("default:running on the cpu")
def test_without_a_gpu_the_cpu_runs_and_says_so(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    items = [f"reference={files / 'lambda.fa'}", f"queries={files / 'reads.fa'}", "min_match_length=20"]
    arguments = [text for item in items for text in ("-i", item)]
    assert main(["run", "mummergpu", *arguments, "-o", str(tmp_path / "out")]) == 0
    assert "warning: running on the cpu: " in capsys.readouterr().err
    assert mums.parse(tmp_path / "out")


def test_the_example_in_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "results" / "mummergpu.md").read_text()
    content = re.search(r"^cat > (\S+) <<END\n(.*?)^END\n(autotune .*?)\n", text, re.MULTILINE | re.DOTALL)
    expected = re.search(r"<!-- run-output -->\n```text\n(.*?)```", text, re.DOTALL)
    assert content and expected
    monkeypatch.chdir(tmp_path)
    Path(content[1]).write_text(content[2])
    Path("workloads").symlink_to(ROOT / "workloads")
    assert main([*content[3].split()[1:], "--device", "cpu"]) == 0
    assert Path("three.mems").read_text() == expected[1]


def test_every_input_is_in_the_document() -> None:
    text = (ROOT / "docs" / "results" / "mummergpu.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)=", text.partition("## Aligning reads")[2].partition("\n### ")[0], re.MULTILINE
    )
    assert rows == [field.name for field in dataclasses.fields(alignment.Request)]


def test_the_kernels_own_arrays_still_run(files: Path, tmp_path: Path) -> None:
    family = families.load_family("mummergpu")
    assert family.module is not None
    parameters = {
        "reference": str(files / "lambda.fa"),
        "queries": str(files / "reads.fa"),
        "min_match_length": 20,
    }
    inputs = workloads.bind(family, family.module.inputs(parameters, files), {}, {})
    items = [f"{name}={value}" for name, value in inputs.scalars.items()]
    for name, array in inputs.arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        items.append(f"{name}={tmp_path / name}.npy")
    output = tmp_path / "mems.npy"
    arguments = [text for item in items for text in ("-i", item)]
    assert main(["run", "mummergpu", "--device", "cpu", "-o", str(output), *arguments]) == 0
    run(tmp_path / "out", **parameters)
    assert len(np.load(output)) == len(mums.parse(tmp_path / "out"))
