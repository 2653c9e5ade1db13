"""PLINK filesets: hand-computed bytes, round trips, every refusal, and the slice shipped with the project."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autotune.errors import WorkloadError

ROOT = Path(__file__).parents[3]
SLICE = ROOT / "workloads" / "data" / "hapmap3-slice.bed"


def _load() -> ModuleType:
    # A family folder is not an installed package, so its modules are loaded from their files.
    spec = importlib.util.spec_from_file_location(
        "allpairs_plink", ROOT / "kernels" / "allpairs" / "plink.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plink = _load()


def bim_rows(count: int) -> list[str]:
    return [f"1\trs{number}\t0\t{100 + number}\tA\tC" for number in range(count)]


def write_fileset(path: Path, bed: bytes, individuals: int, variants: int) -> Path:
    """A fileset with these exact .bed bytes, written without the code under test."""
    path.write_bytes(bed)
    path.with_suffix(".fam").write_text("".join(f"F{i} I{i} 0 0 1 2\n" for i in range(individuals)))
    path.with_suffix(".bim").write_text("".join(row + "\n" for row in bim_rows(variants)))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """5 individuals x 2 variants: 3 header bytes and 2 x 2 bytes."""
    return write_fileset(tmp_path / "small.bed", bytes.fromhex("6c1b01 e400 1b03"), 5, 2)


def refusal(path: Path) -> str:
    with pytest.raises(WorkloadError) as caught:
        plink.read_bed(path)
    return str(caught.value)


# ---- what the bytes mean


def test_hand_computed_bytes(small: Path) -> None:
    # Lowest bits first, e4 = 11 10 01 00 reads 00 01 10 11, then 00 from byte 00: 2, missing, 1, 0, 2 copies.
    # Lowest bits first, 1b = 00 01 10 11 reads 11 10 01 00, then 11 from byte 03: 0, 1, missing, 2, 0 copies.
    genotypes = plink.read_bed(small)
    assert genotypes.tolist() == [[2, 0], [3, 1], [1, 3], [0, 2], [2, 0]]
    assert genotypes.dtype == np.int8
    assert genotypes.flags.c_contiguous


def test_worked_example_of_the_format_page(tmp_path: Path) -> None:
    # 6 individuals x 3 variants, first alleles G, 1 and A; the text form of the same calls is in the comment.
    bed = write_fileset(tmp_path / "page.bed", bytes.fromhex("6c1b01 dc0f e70f 6b01"), 6, 3)
    assert plink.read_bed(bed).T.tolist() == [
        [2, 0, 3, 0, 0, 0],  # G/G A/A 0/0 A/A A/A A/A
        [0, 3, 1, 0, 0, 0],  # 2/2 0/0 1/2 2/2 2/2 2/2
        [0, 1, 1, 3, 3, 2],  # C/C A/C A/C 0/0 0/0 A/A
    ]


def test_written_bytes(tmp_path: Path) -> None:
    bed = tmp_path / "out.bed"
    plink.write_bed(bed, np.array([[2, 0], [3, 1], [1, 3], [0, 2], [2, 0]]), list("abcde"), bim_rows(2))
    assert bed.read_bytes() == bytes.fromhex("6c1b01 e400 1b03")
    assert bed.with_suffix(".bim").read_bytes() == b"1\trs0\t0\t100\tA\tC\n1\trs1\t0\t101\tA\tC\n"
    assert bed.with_suffix(".fam").read_bytes().startswith(b"0\ta\t0\t0\t0\t-9\n0\tb\t")


def test_padding_bits_are_ignored(tmp_path: Path) -> None:
    clean = write_fileset(tmp_path / "clean.bed", bytes.fromhex("6c1b01 02"), 1, 1)
    dirty = write_fileset(tmp_path / "dirty.bed", bytes.fromhex("6c1b01 fe"), 1, 1)
    assert plink.read_bed(clean).tolist() == plink.read_bed(dirty).tolist() == [[1]]


def test_ids_in_file_order(small: Path) -> None:
    assert plink.read_fam(small) == ["I0", "I1", "I2", "I3", "I4"]
    assert plink.read_bim(small) == ["rs0", "rs1"]


def test_windows_line_ends_and_no_last_line_end(small: Path) -> None:
    fam = small.with_suffix(".fam")
    fam.write_bytes(fam.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n"))
    assert plink.read_fam(small) == ["I0", "I1", "I2", "I3", "I4"]


def test_unicode_separators_stay_inside_an_id(small: Path) -> None:
    small.with_suffix(".bim").write_text("1 rs\u00a0a 0 1 A C\n1 rs\u2028b 0 2 A C\n", encoding="utf-8")
    assert plink.read_bim(small) == ["rs\u00a0a", "rs\u2028b"]


@given(
    hnp.arrays(
        dtype=st.sampled_from([np.int8, np.uint8, np.int32, np.int64]),
        shape=hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9),
        elements=st.integers(0, 3),
    )
)
def test_round_trip(genotypes: npt.NDArray[Any]) -> None:
    individuals, variants = genotypes.shape
    names = [f"person{number}" for number in range(individuals)]
    with tempfile.TemporaryDirectory() as folder:
        bed = Path(folder) / "trip.bed"
        plink.write_bed(bed, genotypes, names, bim_rows(variants))
        assert np.array_equal(plink.read_bed(bed), genotypes)
        assert plink.read_fam(bed) == names
        assert plink.read_bim(bed) == [f"rs{number}" for number in range(variants)]


def test_a_transposed_view_can_be_written(tmp_path: Path) -> None:
    by_variant = np.arange(12, dtype=np.int8).reshape(2, 6) % 4
    bed = tmp_path / "view.bed"
    plink.write_bed(bed, by_variant.T, list("abcdef"), bim_rows(2))
    assert np.array_equal(plink.read_bed(bed), by_variant.T)


# ---- siblings


def compress(path: Path) -> Path:
    compressed = path.with_name(path.name + ".gz")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return compressed


def test_gz_siblings(small: Path) -> None:
    expected = plink.read_bed(small)
    compress(small.with_suffix(".bim"))
    compress(small.with_suffix(".fam"))
    assert np.array_equal(plink.read_bed(small), expected)
    assert plink.read_bim(small) == ["rs0", "rs1"]


def test_the_plain_sibling_wins(small: Path) -> None:
    small.with_name("small.fam.gz").write_bytes(b"never read")
    assert len(plink.read_fam(small)) == 5


@pytest.mark.parametrize("suffix", [".fam", ".bim"])
def test_missing_sibling(small: Path, suffix: str) -> None:
    small.with_suffix(suffix).unlink()
    message = refusal(small)
    assert f"no {suffix} file beside it" in message
    assert f"small{suffix} and" in message and f"small{suffix}.gz" in message


@pytest.mark.parametrize("suffix", [".fam", ".bim"])
def test_empty_sibling(small: Path, suffix: str) -> None:
    small.with_suffix(suffix).write_bytes(b"")
    assert f"small{suffix} is empty: it has 0 rows" in refusal(small)


@pytest.mark.parametrize("suffix", [".fam", ".bim"])
@pytest.mark.parametrize(("row", "columns"), [("a b c d e", 5), ("a b c d e f g", 7), ("", 0)])
def test_wrong_number_of_columns(small: Path, suffix: str, row: str, columns: int) -> None:
    path = small.with_suffix(suffix)
    lines = path.read_text().splitlines()
    lines[1] = row
    path.write_text("\n".join(lines) + "\n")
    message = refusal(small)
    assert f"small{suffix} line 2 has {columns} columns" in message
    assert f"a {suffix} row has 6" in message


def test_damaged_gz_sibling(small: Path) -> None:
    compressed = compress(small.with_suffix(".bim"))
    whole = compressed.read_bytes()
    for damaged in (whole[:-9], b"plain text", whole[:10] + b"\xff" * 20):
        compressed.write_bytes(damaged)
        assert "cannot read" in refusal(small)


def test_sibling_that_is_not_text(small: Path) -> None:
    small.with_suffix(".fam").write_bytes(b"F \xff\xfe 0 0 1 2\n")
    assert "UTF-8" in refusal(small)


# ---- the .bed itself


def test_no_such_file(tmp_path: Path) -> None:
    message = refusal(tmp_path / "nowhere.bed")
    assert "nowhere.bed" in message and "No such file" in message


def test_a_folder(tmp_path: Path) -> None:
    assert "cannot read" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("1f8b08e4001b03", "[1f 8b]"),
        ("6c1a01e4001b03", "[6c 1a]"),
        ("1b6c01", "[1b 6c]"),
        ("6c", "[6c]"),
        ("", "[]"),
    ],
)
def test_bad_magic(small: Path, content: str, shown: str) -> None:
    small.write_bytes(bytes.fromhex(content))
    message = refusal(small)
    assert f"starts with bytes {shown}" in message and "[6c 1b]" in message


def test_header_cut_short(small: Path) -> None:
    small.write_bytes(bytes.fromhex("6c1b"))
    assert "has 2 bytes and a .bed header has 3" in refusal(small)


def test_sample_major(small: Path) -> None:
    small.write_bytes(bytes.fromhex("6c1b00 e400 1b03"))
    message = refusal(small)
    assert "sample-major (mode byte 00)" in message and "plink --make-bed" in message


@pytest.mark.parametrize("mode", ["02", "10", "30", "ff"])
def test_unknown_mode(small: Path, mode: str) -> None:
    small.write_bytes(bytes.fromhex(f"6c1b{mode} e400 1b03"))
    assert f"unknown mode byte {mode}" in refusal(small)


@pytest.mark.parametrize(
    ("body", "word", "size"), [("e4001b", "short", 6), ("", "short", 3), ("e4001b0300", "long", 8)]
)
def test_wrong_length(small: Path, body: str, word: str, size: int) -> None:
    small.write_bytes(bytes.fromhex("6c1b01" + body))
    message = refusal(small)
    assert f"too {word}: it has {size} bytes, but 5 .fam rows and 2 .bim rows need 7 bytes" in message


def test_looks_like_bed(small: Path, tmp_path: Path) -> None:
    assert plink.looks_like_bed(small)
    assert not plink.looks_like_bed(small.with_suffix(".bim"))
    assert not plink.looks_like_bed(tmp_path)
    assert not plink.looks_like_bed(tmp_path / "nowhere.bed")
    intervals = tmp_path / "ucsc.bed"
    intervals.write_text("chr1\t0\t100\n")
    assert not plink.looks_like_bed(intervals)


# ---- what is not written


@pytest.mark.parametrize(
    ("genotypes", "names", "rows", "message"),
    [
        (np.array([[0, 4]]), ["a"], bim_rows(2), "genotype 4 at individual 0, variant 1"),
        (np.array([[0], [-1]]), ["a", "b"], bim_rows(1), "genotype -1 at individual 1, variant 0"),
        (np.array([[0.0]]), ["a"], bim_rows(1), "dtype float64"),
        (np.array([0, 1]), ["a"], bim_rows(2), "shape (2,)"),
        (np.array([[0]]), ["a", "b"], bim_rows(1), "2 individual ids"),
        (np.array([[0]]), ["a"], bim_rows(2), "2 variant rows"),
        (np.zeros((0, 1), dtype=np.int8), [], bim_rows(1), "neither of them 0"),
        (np.array([[0]]), ["a b"], bim_rows(1), "individual id 1 is 'a b'"),
        (np.array([[0]]), [""], bim_rows(1), "individual id 1 is ''"),
        (np.array([[0]]), ["a"], ["1\trs\t0\t1\tA"], "variant row 1"),
        (np.array([[0]]), ["a"], ["1\trs\t0\n1\tA\tC"], "variant row 1"),
    ],
)
def test_refuses_to_write(
    tmp_path: Path, genotypes: npt.NDArray[Any], names: list[str], rows: list[str], message: str
) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        plink.write_bed(tmp_path / "x.bed", genotypes, names, rows)
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_name_without_bed(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"must end in \.bed"):
        plink.write_bed(tmp_path / "cohort.v2", np.array([[0]]), ["a"], bim_rows(1))


# ---- the shipped slice


def test_slice_counts() -> None:
    genotypes = plink.read_bed(SLICE)
    assert genotypes.shape == (160, 1024)
    assert np.bincount(genotypes.ravel(), minlength=4).tolist() == [57_234, 72_507, 33_866, 233]
    assert len(set(plink.read_fam(SLICE))) == 160
    assert len(set(plink.read_bim(SLICE))) == 1024


@pytest.mark.parametrize("suffix", [".bed", ".bim", ".fam"])
def test_slice_is_the_one_its_readme_describes(suffix: str) -> None:
    digest = hashlib.sha256(SLICE.with_suffix(suffix).read_bytes()).hexdigest()
    readme = SLICE.with_name("README.md").read_text(encoding="utf-8")
    assert re.search(rf"hapmap3-slice\{suffix} \|[^|]*\| {digest}", readme)


def test_slice_is_written_back_byte_for_byte(tmp_path: Path) -> None:
    copy = tmp_path / "copy.bed"
    rows = SLICE.with_suffix(".bim").read_text(encoding="utf-8").splitlines()
    plink.write_bed(copy, plink.read_bed(SLICE), plink.read_fam(SLICE), rows)
    for suffix in (".bed", ".bim", ".fam"):
        assert copy.with_suffix(suffix).read_bytes() == SLICE.with_suffix(suffix).read_bytes()
