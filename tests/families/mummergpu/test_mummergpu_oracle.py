"""`autotune run mummergpu` on the cpu device against MUMmer itself, on more than a few reads: a whole bacterium,
repeats upon repeats, records that share them, both strands. Small and odd cases are in test_mummergpu_app.py."""

import gzip
import itertools
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mem_oracle import reverse_complement, run_mummer
from mummergpu_helpers import mums, text_of
from shared_data import SHARED

from autotune.cli.commands import main

pytestmark = [pytest.mark.mummer, pytest.mark.filterwarnings("ignore:no usable policy file")]

LARGE = SHARED / "data"
READS = 20_000

Codes = np.ndarray[Any, np.dtype[np.uint8]]


def ours(folder: Path, reference: Path, reads: Path, minimum: int, **options: str) -> Path:
    """The file that the command writes."""
    given = {"reference": reference, "queries": reads, "min_match_length": minimum, **options}
    items = [argument for name, value in given.items() for argument in ("-i", f"{name}={value}")]
    output = folder / f"{reads.stem}.mems"
    assert main(["run", "mummergpu", "--device", "cpu", "-o", str(output), *items]) == 0
    return output


def theirs(folder: Path, reference: Path, reads: Path, minimum: int, both_strands: bool = False) -> Path:
    output = folder / f"{reads.stem}.expected"
    output.write_text(run_mummer(reference, reads, minimum, both_strands))
    return output


def same(folder: Path, reference: Path, reads: Path, minimum: int, **options: str) -> list[Any]:
    """One record, one strand: the same records, and the same bytes in the same order. Returns the records."""
    written = ours(folder, reference, reads, minimum, **options)
    expected = theirs(folder, reference, reads, minimum)
    found = mums.parse(written)
    assert found == mums.parse(expected)
    assert written.read_bytes() == expected.read_bytes()
    return found


def fasta(path: Path, name: str, texts: list[str]) -> Path:
    path.write_text("".join(f">{name}{number} words\n{text}\n" for number, text in enumerate(texts)))
    return path


# ---- real references


@pytest.mark.shared
def test_20000_reads_of_listeria(tmp_path: Path) -> None:
    packed = LARGE / "genomes" / "lmono_EGDe_NC_003210.1.fa.gz"
    reference, reads = tmp_path / "listeria.fa", tmp_path / "reads.fa"
    reference.write_bytes(gzip.decompress(packed.read_bytes()))
    with lzma.open(LARGE / "reads" / "lmono_sim_1M_454_116bp.fa.xz") as lines:
        taken = list(itertools.takewhile(lambda line: line != b">l%d\n" % (READS + 1), lines))
    assert sum(line.startswith(b">") for line in taken) == READS
    reads.write_bytes(b"".join(taken))
    found = same(tmp_path, reference, reads, 20)
    # About half of the reads match, as many of their strands do.
    assert READS * 0.4 < len({match.read for match in found}) < READS * 0.6


# ---- repeats


def changed(codes: Codes, share: float, random: np.random.Generator) -> Codes:
    places = random.random(codes.size) < share
    return np.where(places, (codes + random.integers(1, 4, codes.size)) % 4, codes).astype(np.uint8)


def repetitive(seed: int) -> Codes:
    """Tandem repeats of units of 1 to 171 bases up to 3,000 long, exact and worn, and 60 copies of a 700-base element
    in either direction, some within others, in random sequence: a deep tree with long chains of suffix links."""
    random = np.random.default_rng(seed)

    def unrepeated(length: int) -> Codes:
        return random.integers(0, 4, length).astype(np.uint8)

    parts = []
    for unit, length in ((1, 500), (2, 1500), (3, 900), (7, 3000), (31, 3000), (171, 3000)):
        tandem = np.resize(unrepeated(unit), length)
        parts += [tandem, changed(tandem, 0.01, random)]
    element = unrepeated(700)
    nested = np.concatenate([element[:350], parts[3][:60], element[350:]])
    for copy in range(60):
        one = changed(nested if copy % 5 == 0 else element, 0.02 * (copy % 3), random)
        one = one[: int(random.integers(100, one.size))]
        parts.append(reverse_complement(one) if copy % 2 else one)
    order = random.permutation(len(parts))
    return np.concatenate([piece for number in order for piece in (unrepeated(200), parts[number])])


def pieces(codes: Codes, count: int, seed: int) -> list[Codes]:
    """Reads of both strands, 20 to 400 bases, in a third of them 2 % changed, in a third letters that are none."""
    random = np.random.default_rng(seed)
    reads = []
    for number in range(count):
        length = int(random.integers(20, 400))
        start = int(random.integers(0, codes.size - length))
        read = changed(codes[start : start + length], 0.02 * (number % 3 == 1), random)
        if number % 3 == 2:
            read[random.integers(0, length, 2)] = 4
        reads.append(reverse_complement(read) if number % 2 else read)
    return reads


def texts(reads: list[Codes]) -> list[str]:
    return [text_of(read).replace(".", "N") for read in reads]


@pytest.mark.parametrize("minimum", [11, 24, 150])
def test_a_reference_of_repeats(tmp_path: Path, minimum: int) -> None:
    codes = repetitive(5)
    reference = fasta(tmp_path / "repeats.fa", "repeats", [text_of(codes)])
    reads = fasta(tmp_path / "reads.fa", "read", texts(pieces(codes, 600, 6)))
    found = same(tmp_path, reference, reads, minimum)
    assert len(found) > {11: 250_000, 24: 150_000, 150: 4_000}[minimum]


def test_repeats_in_several_records_on_both_strands(tmp_path: Path) -> None:
    codes = repetitive(7)
    cuts = [0, 9000, 9003, 9040, 20_000, codes.size]
    records = [text_of(codes[a:b]) for a, b in itertools.pairwise(cuts)]
    # A record twice, one that is the other's end, one of the other strand, and one shorter than any match.
    records += [records[3], records[3][-3000:], text_of(reverse_complement(codes[20_000:26_000])), "ACGT"]
    reference = fasta(tmp_path / "records.fa", "record", records)
    across = codes[8900:9200]  # the shortest records are within it
    reads = [*pieces(codes, 120, 8), across, reverse_complement(across)]
    forward = fasta(tmp_path / "reads.fa", "read", texts(reads))
    expected = mums.parse(theirs(tmp_path, reference, forward, 16, both_strands=True))
    found = mums.parse(ours(tmp_path, reference, forward, 16, both_strands="true"))
    assert found == expected
    assert len(found) > 300_000
    assert {match.record for match in found} == {f"record{number}" for number in (0, 2, 3, 4, 5, 6, 7)}
    # The other strand is that of the reads turned by hand.
    turned = fasta(tmp_path / "turned.fa", "read", texts([reverse_complement(read) for read in reads]))
    by_hand = [match._replace(reverse=True) for match in mums.parse(ours(tmp_path, reference, turned, 16))]
    assert by_hand == [match for match in expected if match.reverse] != []
