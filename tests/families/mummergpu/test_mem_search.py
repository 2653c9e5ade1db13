"""Maximal exact matches by equal words: against comparing every letter of a read with every one of the reference."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mem_oracle import OTHER, Mem
from mummergpu_helpers import FOLDER, _load
from numpy.typing import NDArray

from autotune.compile.host_library import library

Codes = NDArray[np.uint8]

mem_search = _load("mem_search")


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    """Even few reads are several pieces of work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mem_search, "_BASES_AT_ONCE", 40)
        yield


def codes(letters: str) -> Codes:
    return np.array(["ACGT-".index(letter) for letter in letters], np.uint8)


def expected(reference: Codes, reads: list[Codes], minimum: int) -> list[Mem]:
    """By read, start and then suffix up to the end of the record, equal ones by position."""
    content = reference.tobytes() + bytes([OTHER])
    after = [content[i : content.index(OTHER, i) + 1] for i in range(reference.size)]
    order = sorted(range(reference.size), key=lambda position: (after[position], position))
    found = []
    for number, read in enumerate(reads):
        # lengths[i][p]: how many bases from i of the read on equal those from p of the reference on.
        lengths = np.zeros((read.size + 1, reference.size + 1), np.int16)
        for start in reversed(range(read.size)):
            equal = (reference == read[start]) & (reference != OTHER)
            lengths[start, :-1] = np.where(equal, lengths[start + 1, 1:] + 1, 0)
        is_wanted = lengths >= minimum
        is_wanted[1:, 1:] &= lengths[:-1, :-1] == 0  # else it is the rest of a longer match
        for start, rank in np.argwhere(is_wanted[:, order]).tolist():
            found.append(Mem(number, order[rank], start, int(lengths[start, order[rank]])))
    return found


def arguments(reference: Codes, reads: list[Codes], minimum: int) -> tuple[Codes, Codes, Any, int]:
    return reference, np.concatenate([codes(""), *reads]), np.cumsum([0, *map(len, reads)]), minimum


def found(reference: Codes, reads: list[Codes], minimum: int, threads: int = 0) -> list[Mem]:
    mems = mem_search.find_mems(*arguments(reference, reads, minimum), threads)
    assert mem_search.count_mems(*arguments(reference, reads, minimum), threads) == mems.reads.size
    columns = (mems.reads, mems.positions, mems.starts, mems.lengths)
    return [Mem(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def texts(most: int) -> st.SearchStrategy[Codes]:
    """Of one to four letters, with ends of records among them or none, and repeats."""
    alphabets = st.sampled_from(["A", "T", "AC", "ACGT", "A-", "AC-", "ACGT-"])
    pieces = alphabets.flatmap(lambda alphabet: st.text(alphabet, max_size=most))
    repeats = st.builds(lambda piece, times, end: piece * times + end, pieces, st.integers(1, 4), pieces)
    return (pieces | repeats).map(codes)


def test_by_hand() -> None:
    reference = codes("GACG-TACG-ACGA-")
    # What goes on with A comes first; two end with their records, the earlier one first.
    everywhere = [Mem(2, position, 0, 3) for position in (10, 1, 6)]
    # In TACG, ACG at 6 is the rest of TACG at 5.
    longer = [Mem(1, 5, 0, 4), Mem(1, 10, 1, 3), Mem(1, 1, 1, 3)]
    assert found(reference, [codes("AC"), codes("TACG"), codes("ACG")], 3) == longer + everywhere


@settings(deadline=None, max_examples=400)
@given(texts(16), st.lists(texts(10), max_size=5), st.integers(1, 8))
def test_small_ones(reference: Codes, reads: list[Codes], minimum: int) -> None:
    assert found(reference, reads, minimum, threads=2) == expected(reference, reads, minimum)


@st.composite
def long_ones(draw: st.DrawFn) -> tuple[Codes, list[Codes]]:
    """A few stretches in many places, each perhaps with one letter changed; reads are pieces of the same kind."""
    stretches = [codes(draw(st.text("ACGT", min_size=9, max_size=50))) for _ in range(2)]
    stretches.append(codes("-"))

    def text() -> Codes:
        chosen = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=1, max_size=8))
        made = np.concatenate([stretches[i] for i in chosen])
        if draw(st.booleans()):
            made[draw(st.integers(0, made.size - 1))] = draw(st.integers(0, OTHER))
        return made[draw(st.integers(0, 20)) :]

    return text(), [text() for _ in range(3)]


@settings(deadline=None, max_examples=200)
@given(long_ones(), st.sampled_from([1, 20, 31, 32, 33, 34, 40, 64, 100]))
def test_words_are_shorter_than_long_matches(given_: tuple[Codes, list[Codes]], minimum: int) -> None:
    assert found(*given_, minimum) == expected(*given_, minimum)


@pytest.mark.parametrize("minimum", [32, 33, 50, 100, 101])
def test_every_place_of_a_long_match_in_the_read(minimum: int) -> None:
    """Not every word of a read is looked up: a match may start between those that are."""
    reference = np.random.default_rng(1).integers(0, 4, 200, np.uint8)
    others = [np.full(start, OTHER, np.uint8) for start in range(120)]
    enough, too_few = (
        [np.append(other, reference[60 : 60 + n]) for other in others] for n in (minimum, minimum - 1)
    )
    assert found(reference, enough, minimum) == [Mem(start, 60, start, minimum) for start in range(120)]
    assert found(reference, too_few, minimum) == []


@pytest.fixture(scope="module")
def repeats() -> tuple[Codes, list[Codes]]:
    """40 records of 300 to 600 bases out of ten stretches, each base changed with 1 %, and reads out of them."""
    generator = np.random.default_rng(7)
    stretches = generator.integers(0, 4, (10, 100), np.uint8)
    records = []
    for number in range(40):
        record = stretches[generator.integers(0, 10, generator.integers(3, 7))].ravel()
        if (
            number % 4
        ):  # one in four repeats the stretches to the letter, so that suffixes are equal to their ends
            changed = generator.random(record.size) < 0.01
            record = np.where(changed, generator.integers(0, 5, record.size), record).astype(np.uint8)
        records += [record, codes("-")]
    reference = np.concatenate(records)
    starts = generator.integers(0, reference.size - 120, 150)
    return reference, [reference[start : start + generator.integers(5, 120)] for start in starts]


@pytest.mark.parametrize("minimum", [8, 14, 32, 60])
def test_many_repeats_in_one_thread_and_in_three(repeats: tuple[Codes, list[Codes]], minimum: int) -> None:
    wanted = expected(*repeats, minimum)
    assert len(wanted) > 500
    for threads in (1, 3):
        assert found(*repeats, minimum, threads) == wanted


def test_the_columns_and_the_arrays_they_come_from() -> None:
    reference, reads, offsets, minimum = arguments(codes("ACGTACG"), [codes("ACGT"), codes("CG")], 2)
    mems = mem_search.find_mems(reference, np.repeat(reads, 2)[::2], offsets.astype(np.uint32), minimum)
    for name in ("reads", "positions", "starts", "lengths"):
        column = getattr(mems, name)
        assert column.dtype == np.uint32 and column.flags.c_contiguous
    assert mems.positions.tolist() == [0, 4, 1, 5]
    assert mems.lengths.tolist() == [4, 3, 2, 2]


@pytest.mark.parametrize("reference", ["", "-", "---", "AC", "-A-C-"])
def test_references_without_words(reference: str) -> None:
    assert found(codes(reference), [codes("ACAC"), codes("---")], 3) == []


def test_a_minimum_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="minimum 0: the least length of a match must be at least 1"):
        mem_search.count_mems(*arguments(codes("ACGT-"), [codes("ACGT")], 0))


@pytest.mark.parametrize(
    ("letters", "wrong"),
    [
        ("CAAT-", [2, 1, 0, 3]),  # AT, AAT
        ("CAAT-", [1, 2, 3, 0]),  # TA, CAAT
        ("CAAT-", [1, 1, 0, 3]),
        ("CAAT-", [1, 2, 0]),
        ("CAAT-", [1, 2, 0, 4]),
        ("CAAT-", [1, 2, 0, 99]),
        ("A-A-", [2, 0]),
        ("A-AC-", [0, 2, 3]),
    ],
)
def test_a_wrong_order_of_suffixes_is_refused(
    letters: str, wrong: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suffix tree has its suffixes from the same sort, so that an error there would show nowhere else."""
    monkeypatch.setattr(mem_search, "_order", lambda text: np.array(wrong, np.uint32))
    with pytest.raises(RuntimeError, match=r"suffix_array.cpp gave a wrong order of the [56] suffixes"):
        found(codes(letters), [codes("ACGT")], 2)


def test_memory_stays_in_proportion() -> None:
    program = f"""
import re, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
from mummergpu_helpers import _load
find_mems = _load("mem_search").find_mems
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
text = np.random.default_rng(1).integers(0, 4, 4_000_000, dtype=np.uint8)
before = peak()
assert find_mems(text, text[:1000], np.array([0, 1000]), 20).reads.tolist() == [0]
print((peak() - before) / text.size)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parents[1], capture_output=True, text=True, check=True
    )
    assert 20 < float(done.stdout) < 45


@pytest.mark.zig
def test_zig_compiles_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang c++")
    library.cache_clear()
    test_by_hand()
    library.cache_clear()
