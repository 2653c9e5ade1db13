"""benchmarks/mummergpu_end_to_end.py: its checksum against sorted matches, its commands and its table."""

import gzip
import importlib
import lzma
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mummergpu_helpers import mums
from result_files import read_frame

from autotune.declaration import family as families
from autotune.declaration import workload as workloads

outputs = importlib.import_module("mummergpu_outputs")
commands = importlib.import_module("mummergpu_commands")
benchmark = importlib.import_module("mummergpu_end_to_end")

LAMBDA = Path(__file__).parents[3] / "workloads" / "data" / "lambda_NC_001416.1.fa.gz"

# ---- the checksum

Rows = list[tuple[int, int, int]]


def text_of(reads: list[tuple[str, Rows]], width: int = 8) -> bytes:
    lines = []
    for name, rows in reads:
        lines.append(f"> {name}")
        lines += ["  ".join(f"{number:{width}}" for number in row) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


rows = st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 70_000), st.integers(1, 70_000)), max_size=4)
some_reads = st.lists(rows, min_size=1, max_size=6).map(
    lambda all_rows: [(f"read{number} words", rows) for number, rows in enumerate(all_rows)]
)


@settings(deadline=None)
@given(some_reads, st.randoms(use_true_random=False), st.integers(1, 16))
def test_order_width_and_empty_reads_make_no_difference(reads: Any, random: Any, width: int) -> None:
    other = [(name, random.sample(rows, len(rows))) for name, rows in reads if rows or random.random() < 0.5]
    random.shuffle(other)
    found = outputs.found_in_text(text_of(reads))
    assert found == outputs.found_in_text(text_of(other, width))
    assert found.matches == sum(len(rows) for _, rows in reads)


@settings(deadline=None, max_examples=300)
@given(some_reads, some_reads)
def test_equal_exactly_where_sorted_matches_are(
    tmp_path_factory: pytest.TempPathFactory, first: Any, second: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "one"
    both = []
    for reads in (first, second):
        path.write_bytes(text_of(reads))
        both.append((outputs.found_in(path), mums.parse(path)))
    assert (both[0][0] == both[1][0]) == (both[0][1] == both[1][1])


@pytest.mark.parametrize(
    "other",
    [
        [("a", [(1, 2, 3), (4, 5, 7)]), ("b", [])],  # a number
        [("a", [(1, 2, 3), (5, 4, 6)]), ("b", [])],  # a column for another
        [("a", [(4, 2, 3), (1, 5, 6)]), ("b", [])],  # a number of one row in another
        [("a", [(1, 2, 3)]), ("b", [(4, 5, 6)])],  # the read
        [("c", [(1, 2, 3), (4, 5, 6)])],  # its name
        [("a", [(1, 2, 3), (4, 5, 6), (4, 5, 6)])],  # a match twice
        [("a", [(1, 2, 3)])],
        [],
    ],
)
def test_what_makes_a_difference(other: Any) -> None:
    whole = outputs.found_in_text(text_of([("a", [(1, 2, 3), (4, 5, 6)]), ("b", [])]))
    found = outputs.found_in_text(text_of(other))
    assert found.checksum != whole.checksum


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
@pytest.mark.parametrize("size", [1, 7, 100, 10**6])
def test_pieces_of_a_file_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, pool: type[Executor] | None
) -> None:
    random = np.random.default_rng(1)
    reads = [
        (f"r{n}", [tuple(row) for row in random.integers(1, 10**6, (n % 4, 3)).tolist()]) for n in range(90)
    ]
    path = tmp_path / "mems"
    path.write_bytes(text_of(reads))
    expected = outputs.found_in_text(path.read_bytes())
    monkeypatch.setattr(outputs, "_PIECE", size)
    if pool is None:
        assert outputs.found_in(path) == expected
    else:
        with pool() as opened:
            assert outputs.found_in(path, opened) == expected


def test_the_name_of_the_one_record_makes_no_difference() -> None:
    assert outputs.found_in_text(b"> a\n ref|1\t12\t2\t31\n> b\n ref|1\t4\t5\t6\n> c\n") == (
        outputs.found_in_text(b"> a\n 12 2 31\n> b\n 4 5 6\n")
    )


def test_an_empty_output_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"")
    assert outputs.found_in(tmp_path / "none") == (0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 2 3\n", "begins with '>'"),
        (b"> a\n 1 2 3\n 4 5\n", "2 rows of three numbers are 5 numbers"),
        (b"> a\n record 1 2 3\n other 1 2 3\n", "a reference of one record"),
        (b"> a\n 1 2 -3\n", "a reference of one record"),
    ],
)
def test_other_files_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        outputs.found_in_text(text)


# ---- inputs


def test_workloads_are_those_of_the_family() -> None:
    family = families.load_family("mummergpu")
    for name, workload in benchmark.WORKLOADS.items():
        assert workload._asdict() == workloads.load_workload(family, name).parameters


@pytest.mark.parametrize(("suffix", "packed"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize(("most", "counted"), [(None, (3, 11)), (2, (2, 9)), (9, (3, 11))])
def test_inputs_become_plain(
    tmp_path: Path, suffix: str, packed: Any, most: int | None, counted: Any
) -> None:
    text = b">a\nACGT\nAC\n>b x\nGGG\n>c\nTT\n"
    source, target = tmp_path / f"reads.fa{suffix}", tmp_path / "plain"
    source.write_bytes(packed(text))
    assert benchmark.plain(source, target, most) == counted
    assert target.read_bytes() == (text[: text.index(b">c")] if most == 2 else text)


def test_reads_are_pieces_of_both_strands_with_few_changes(tmp_path: Path) -> None:
    reference, target = tmp_path / "reference.fa", tmp_path / "reads.fa"
    letters = np.frombuffer(b"ACGT", np.uint8)[np.random.default_rng(5).integers(0, 4, 5000)].tobytes()
    reference.write_bytes(b">one\n" + letters[:60] + b"\n" + letters[60:] + b"\n")
    assert benchmark.write_reads(reference, target, 50) == (50, 7500)
    lines = target.read_bytes().splitlines()
    assert lines[::2] == [b">r%d" % number for number in range(1, 51)]
    strands = letters, letters.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]
    whole = [read in strands[number % 2] for number, read in enumerate(lines[1::2])]
    assert 10 < sum(whole) < 40  # 0.995 ** 150 of them
    assert all(
        any(read[at : at + 12] in strands[n % 2] for at in range(139)) for n, read in enumerate(lines[1::2])
    )


# ---- commands


def program(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def test_a_run_is_timed_and_its_output_read_and_removed(tmp_path: Path) -> None:
    path = program(tmp_path, "prints", 'echo "> $1"; echo "1 2 3"')
    command = commands.Command("t", "1", 1, (str(path), "{length}"))
    result = benchmark.run(command, {"length": "20"}, tmp_path, 60, None)
    assert result.found == outputs.found_in_text(b"> 20\n1 2 3\n")
    assert result.seconds > 0
    assert 500 < result.peak_kib < 50_000  # a shell's, not this process's
    assert result.problem == ""
    assert list(tmp_path.iterdir()) == [path]


def test_every_cold_run_finds_an_empty_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = program(tmp_path, "caches", f'[ -e {cache} ] && exit 3; mkdir {cache}; echo "> a"; echo "1 2 3"')
    cold, warm = commands.ours(2, cache, "cpu", None, 4)
    assert (cold.emptied, cold.most_runs, warm.emptied, warm.most_runs) == (cache, 4, None, None)
    for number in range(2):
        command = commands.Command("t", "1", 1, (str(path),), emptied=cache)
        assert benchmark.run(command, {}, tmp_path, 60, None).problem == "", number
    assert cache.exists()
    assert benchmark.run(commands.Command("t", "1", 1, (str(path),)), {}, tmp_path, 60, None).problem


def test_a_command_that_writes_its_file_may_talk(tmp_path: Path) -> None:
    path = program(tmp_path, "writes", "echo seconds 1.0: index 0.25", 'printf "> a\\n1 2 3\\n" > "$1"')
    result = benchmark.run(commands.Command("t", "1", 1, (str(path), "{output}")), {}, tmp_path, 60, None)
    assert result.found.matches == 1
    assert benchmark.phases(result.said) == "index 0.25"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["echo broken >&2", "exit 3"], "exit code 3 broken"),
        (["kill -9 $$"], "exit code -9"),
        (["true"], "No such file"),
        (['echo words > "$1"'], "begins with '>'"),
        (["sleep 60 & sleep 60"], "not done in 1 s"),
    ],
)
def test_a_run_that_fails_says_how(tmp_path: Path, lines: list[str], problem: str) -> None:
    path = program(tmp_path, "fails", *lines)
    result = benchmark.run(commands.Command("t", "1", 1, (str(path), "{output}")), {}, tmp_path, 1, None)
    assert result.found is None
    assert problem in result.problem


def test_peers_are_told_apart_and_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, path = tmp_path / "peers", tmp_path / "bin"
    folder.mkdir()
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    program(path, "mummer", "echo 4.0.1")
    made, missing = commands.peers(4, None, 20)
    assert [(c.tool, c.version, c.threads) for c in made] == [
        ("MUMmer4", "4.0.1", 1),
        ("MUMmer4", "4.0.1", 4),
    ]
    assert made[1].arguments[1:4] == ("-maxmatch", "-qthreads", "4")
    assert missing == ["mummer 3", "copMEM2", "E-MEM", "essaMEM -k 1", "essaMEM -k 4"]
    program(folder, "mummer", "echo unknown option; exit 1")
    program(folder, "e-mem", "echo; echo E-MEM Version 1.0.1, Dec. 12, 2017")
    program(folder, "essamem", "touch lock.txt")
    program(folder, "copmem2", "echo copMEM 2.1, by its authors, April 2023.")
    (folder / "versions.txt").write_text("mummer 3.23\nother 1\n")
    made, missing = commands.peers(1, folder, 50)
    assert [(c.tool, c.version) for c in made[:3]] == [
        ("mummer 3", "3.23"),
        ("copMEM2", "2.1"),
        ("E-MEM", "1.0.1"),
    ]
    assert [c.tool for c in made[3:]] == ["essaMEM -k 1", "essaMEM -k 4"]
    assert made[3].version.startswith("untold, sha256 ")
    assert missing == ["MUMmer4"]
    assert not (Path.cwd() / "lock.txt").exists()
    shorter, _ = commands.peers(1, folder, 49)
    assert {c.tool for c in made} - {c.tool for c in shorter} == {"copMEM2"}
    assert [c.threads for c in commands.peers(8, folder, 49, [3])[0]] == [3, 3, 3]


# ---- the table


def test_a_row_has_the_median_and_whether_all_runs_agree() -> None:
    right, wrong = outputs.Found(2, 77), outputs.Found(2, 78)
    command = commands.Command("t", "1", 4, ("/usr/bin/t", "-n"))
    runs = [benchmark.Run(s, 2048, "", "", right) for s in (3.0, 1.0, 1.5)]
    row = benchmark.row(command, runs, ("mummer 3", right), {"cores": 4})
    assert (row["seconds_median"], row["seconds_min"], row["seconds_max"], row["runs"]) == (1.5, 1.0, 3.0, 3)
    assert (row["agrees"], row["matches"], row["peak_rss_mib"], row["command"]) == ("yes", 2, 2.0, "t -n")
    odd = benchmark.Run(1.2, 0, "", "", wrong)
    assert benchmark.row(command, [*runs, odd], ("mummer 3", right), {})["agrees"] == "no"
    failed = benchmark.Run(9.0, 0, "exit code 1", "", None)
    row = benchmark.row(command, [failed], ("mummer 3", right), {})
    assert (row["seconds_median"], row["agrees"], row["problem"]) == (None, "", "exit code 1")


def test_what_mummer_found_earlier_of_the_same_reads_is_what_outputs_are_compared_with(
    tmp_path: Path,
) -> None:
    reads = {"workload": "w", "reads": 5, "bases": 60, "length": 10}
    rows = [{"tool": "MUMmer4", "checksum": "01"}, {"tool": "mummer 3", "checksum": ""}]
    rows += [
        {"tool": "mummer 3", "checksum": f"{77:016x}"},
        {"tool": "mummer 3", "checksum": "02", "reads": 6},
    ]
    table = pd.DataFrame([{**reads, "version": "3.23", "matches": 2.0, **row} for row in rows])
    table.to_csv(tmp_path / "known.csv", index=False)
    found = benchmark.canonical(tmp_path / "known.csv", reads)
    assert found == ("mummer 3 3.23, earlier", outputs.Found(2, 77))
    assert benchmark.canonical(tmp_path / "known.csv", {**reads, "length": 11}) is None
    assert benchmark.canonical(None, reads) is None


@pytest.mark.mummer
def test_the_whole_on_lambda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(gzip.decompress(LAMBDA.read_bytes()).decode().split("\n")[1:])
    reads = [f">r{n}\n{text[n * 40 : n * 40 + 70]}\n" for n in range(1000)]
    (tmp_path / "reads.fa.xz").write_bytes(lzma.compress("".join(reads).encode()))
    table = tmp_path / "table.csv"
    monkeypatch.setattr(sys, "argv", [
        "x", "--given", str(LAMBDA), str(tmp_path / "reads.fa.xz"), "12", "--reads", "900", "--device", "cpu",
        "--tool", "mummer 3", "--tool", "autotune", "--runs", "2", "--out", str(table), "--scratch", str(tmp_path),
    ])  # fmt: skip
    with pytest.raises(SystemExit) as left:
        benchmark.main()
    found = read_frame(table)
    assert left.value.code == 0, found["problem"].tolist()
    assert found["tool"].tolist() == [
        "mummer 3",
        "autotune, cold cache",
        "autotune, warm cache",
        "copy of the output",
    ]
    assert found["runs"].tolist() == [2, 1, 2, 2]
    assert found["agrees"].tolist() == ["yes"] * 4
    assert found["matches"].nunique() == 1 and found["matches"][0] > 900
    assert (found["reads"] == 900).all() and (found["bases"] == 63_000).all()
    assert found["phases"].notna().tolist() == [False, True, True, False]
    assert "search" in found["phases"][1] and "tree_order=" in found["configuration"][2]
    assert "autotune, warm cache" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reads.fa.xz", "table.csv"]
