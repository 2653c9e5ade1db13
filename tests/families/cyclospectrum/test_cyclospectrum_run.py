"""``autotune run cyclospectrum``: letters, masses and FASTA in, a file of values out; what is rejected, and how."""

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cyclospectrum import GOLDEN, MODULE, by_hand

from autotune.cli.commands import main
from autotune.errors import AutotuneError, UnknownName, UsageError, WorkloadError

PEPTIDE: Any = __import__(f"{MODULE.__name__}.peptide", fromlist=["peptide"])
TEXT: Any = __import__(f"{MODULE.__name__}.app.text", fromlist=["text"])
TYROCIDINE = "VKLFPWFNQY"  # tyrocidine B1
TYROCIDINE_MASSES = [99, 128, 113, 147, 97, 186, 147, 114, 128, 163]

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file:UserWarning")


def run(tmp_path: Path, *given_: str, output: str = "spectrum.txt") -> tuple[int, Path]:
    path = tmp_path / output
    items = [part for text in given_ for part in ("-i", text)]
    return main(["run", "cyclospectrum", "--device", "cpu", *items, "-o", str(path)]), path


def values(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()]


def test_a_peptide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, path = run(tmp_path, f"peptide={TYROCIDINE}")
    assert status == 0
    assert values(path) == by_hand(TYROCIDINE_MASSES)
    assert "10, total mass 1322; 92 values" in " ".join(capsys.readouterr().out.split())


def test_an_output_that_is_a_link_or_stdout(tmp_path: Path) -> None:
    """Here for all families: what the command does is the same."""
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_text("old")
    assert run(tmp_path, "masses=57,71", output="link")[0] == 0
    assert (tmp_path / "link").is_symlink() and values(tmp_path / "target") == [0, 57, 71, 128]
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    command = [
        sys.executable,
        "-m",
        "autotune",
        "run",
        "cyclospectrum",
        "--device",
        "cpu",
        "-i",
        "masses=57,71",
    ]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "stdout")], capture_output=True, text=True, check=True
    )
    assert done.stdout == (tmp_path / "target").read_text()
    assert "2, total mass 128" in done.stderr and "written" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"link", "target", "stdout"}


def test_masses_sorted_unsorted_and_as_an_array(tmp_path: Path) -> None:
    assert values(run(tmp_path, "masses=57,71,113,113,128")[1]) == GOLDEN
    unsorted = values(run(tmp_path, "masses=57 71 113 113 128", "order=unsorted")[1])
    assert unsorted == by_hand([57, 71, 113, 113, 128], "unsorted")
    _, array = run(tmp_path, "masses=57,71,113,113,128", output="spectrum.npy")
    assert np.load(array).tolist() == GOLDEN


def test_fractions_are_kept_as_decimals(tmp_path: Path) -> None:
    _, path = run(tmp_path, "masses=57.02146,71.03711", "decimals=5")
    assert path.read_text().split() == ["0.00000", "57.02146", "71.03711", "128.05857"]


def test_no_residue_one_and_two(tmp_path: Path) -> None:
    assert values(run(tmp_path, "masses=")[1]) == [0, 0]  # 0 and the total
    assert values(run(tmp_path, "peptide=W")[1]) == [0, 186]
    assert values(run(tmp_path, "peptide=GW")[1]) == [0, 57, 186, 243]


def test_fasta(tmp_path: Path) -> None:
    file = tmp_path / "proteins.fa.gz"
    file.write_bytes(gzip.compress(b">one first\nVKLFP\nwfnqy*\n\n>two\nGW\n"))
    assert values(run(tmp_path, f"fasta={file}", "record=one")[1]) == by_hand(TYROCIDINE_MASSES)
    with pytest.raises(UnknownName, match="two"):
        TEXT.read_fasta(file, "tow")
    with pytest.raises(UsageError, match="record=NAME"):
        TEXT.read_fasta(file)
    for content, words in (
        (b"VKL\n", "before the first header"),
        (b"", "no record"),
        (b">a\nG\n>a\nG\n", "twice"),
        (b">a\n\xff\n", "cannot read"),
    ):
        file.write_bytes(content)
        with pytest.raises(WorkloadError, match=words):
            TEXT.read_fasta(file)


@pytest.mark.parametrize(
    ("texts", "status", "words"),
    [
        (["peptide=VKX"], 4, "residue 'X'"),
        (["peptide=V", "masses=1"], 2, "once"),
        (["pepide=V"], 2, "peptide"),
        (["masses=57.5"], 4, "decimals=N"),
        (["masses=-3"], 4, "outside 0.."),
        (["masses=a,b"], 4, "not a number"),
        (["masses=57,,71"], 4, "mass 2 is missing"),
        (["masses=57, ,71"], 4, "mass 2 is missing"),
        (["masses=,57"], 4, "mass 1 is missing"),
        (["masses=57,71,"], 4, "mass 3 is missing"),
        (["masses=nan"], 4, "decimals"),
        (["masses=2000000000,2000000000"], 4, "add up to"),
        (["masses=1", "decimals=10"], 2, "0 to 9"),
        (["peptide=V", "decimals=1"], 2, "whole masses"),
        (["peptide=V", "record=a"], 2, "fasta"),
        (["peptide=V", "order=none"], 2, "unsorted"),
        (["fasta=missing.fa"], 4, "cannot read"),
    ],
)
def test_what_is_refused(
    texts: list[str], status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    got, path = run(tmp_path, *texts)
    assert got == status
    assert words in " ".join(capsys.readouterr().err.split())
    assert not path.exists()


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_masses_or_an_error_of_ours(text: str) -> None:
    for parse in (PEPTIDE.masses_of, lambda t: TEXT.parsed_masses(t, 2)):
        try:
            masses = parse(text)
        except AutotuneError:
            continue
        assert masses.dtype == np.int32
        assert (masses >= 0).all()
