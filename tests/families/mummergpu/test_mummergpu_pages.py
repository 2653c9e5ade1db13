"""Pages of a reference: whatever their size, together they give the matches of one tree, none twice, none lost."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mem_oracle import OTHER, Mem, brute_force

from autotune.declaration import family as families
from autotune.errors import WorkloadError

NAME = families.load_family("mummergpu").module.__name__  # type: ignore[union-attr]
pages = importlib.import_module(f"{NAME}.app.pages")
matches = importlib.import_module(f"{NAME}.matches")


def numpy_mems(text: Any, reads: list[Any], minimum: int) -> Any:
    """The matches in `text`, by read, start and position: lengths of equal pieces, a whole row of the text at once."""
    found = []
    for number, read in enumerate(reads):
        lengths = np.zeros((len(read) + 1, len(text) + 1), np.int64)
        for start in reversed(range(len(read))):
            equal = (text == read[start]) & (text != OTHER)
            lengths[start, :-1] = np.where(equal, lengths[start + 1, 1:] + 1, 0)
        before = np.zeros_like(lengths)
        before[1:, 1:] = lengths[:-1, :-1]
        for start, position in np.argwhere((lengths >= minimum) & (before == 0)).tolist():
            found.append((number, position, start, lengths[start, position]))
    return matches.Mems(*np.array(found, np.int64).reshape(-1, 4).T)


def rows(mems: Any) -> list[Mem]:
    columns = (mems.reads, mems.positions, mems.starts, mems.lengths)
    return [Mem(*map(int, row)) for row in zip(*columns, strict=True)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[int], list[Any]]:
    """A reference of several records, where they begin, and reads: random, or pieces of the reference, with or
    without a change. Few letters make for repeats that every page cuts."""
    letters = st.sampled_from(draw(st.sampled_from([[0], [0, 1], [0, 1, 2, 3], [0, 1, OTHER]])))
    records = draw(st.lists(st.lists(letters, min_size=1, max_size=25), min_size=1, max_size=3))
    records[0].append(0)
    codes = np.array([code for record in records for code in (*record, OTHER)], np.uint8)
    starts = np.cumsum([0, *(len(record) + 1 for record in records)])[:-1].tolist()
    piece = st.tuples(st.integers(0, len(codes) - 1), st.integers(1, 30)).map(
        lambda place: codes[place[0] :][: place[1]].tolist()
    )
    changed = st.tuples(piece, st.integers(0, 29), letters).map(
        lambda change: [*change[0][: change[1]], change[2], *change[0][change[1] + 1 :]]
    )
    reads = draw(st.lists(st.one_of(piece, changed, st.lists(letters, min_size=1, max_size=20)), min_size=1,
                          max_size=5))  # fmt: skip
    return codes, starts, [np.array(read, np.uint8) for read in reads]


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers(1, 80), st.integers(0, 5), st.sampled_from([1, 2, 3, 6]))
def test_pages_of_any_size_find_what_one_tree_finds(
    case: tuple[Any, list[int], list[Any]], size: int, more: int, minimum: int
) -> None:
    codes, starts, reads = case
    expected = brute_force(codes, starts, reads, minimum)
    parts = []
    for page in pages.pages(codes, size, max(map(len, reads)) + more):
        text = page.text(codes)
        assert text[-1] == OTHER
        parts.append(page.placed(page.owned(numpy_mems(text, reads, minimum))))
    found = rows(pages.merged(parts))
    assert found == sorted(expected, key=lambda mem: (mem.read, mem.start, mem.position))


def test_a_page_has_the_base_before_and_a_read_behind() -> None:
    codes = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, OTHER], np.uint8)
    parts = pages.pages(codes, 4, 3)
    assert parts == [pages.Page(0, 0, 4, 7), pages.Page(3, 4, 8, 10), pages.Page(7, 8, 10, 10)]
    assert [page.text(codes).tolist() for page in parts] == [
        [0, 1, 2, 3, 0, 1, 2, OTHER],
        [3, 0, 1, 2, 3, 0, OTHER],
        [3, 0, OTHER],
    ]


@pytest.mark.parametrize("size", [None, 10, 11, 1000])
def test_a_reference_within_a_page_is_one_and_is_not_copied(size: int | None) -> None:
    codes = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, OTHER], np.uint8)
    (page,) = pages.pages(codes, size, 3)
    assert page == pages.Page(0, 0, 10, 10)
    assert np.shares_memory(page.text(codes), codes)
    found = numpy_mems(codes, [codes[:4]], 2)
    assert page.owned(found) is found


def test_pages_in_which_nothing_can_begin_are_left_out() -> None:
    codes = np.array([OTHER, OTHER, OTHER, 0, 1, OTHER, OTHER, OTHER, OTHER, 2, OTHER], np.uint8)
    assert [page.begin for page in pages.pages(codes, 2, 5)] == [2, 4, 8]


@pytest.mark.parametrize(("size", "read"), [(None, 1), (2**32 - 10, 9), (10**9, 2**32)])
def test_a_page_beyond_its_positions_is_refused(size: int | None, read: int) -> None:
    codes = np.broadcast_to(np.uint8(0), 2**32 + 1)
    with pytest.raises(WorkloadError, match=r"it can have 4,294,967,293, .* give a smaller page"):
        pages.pages(codes, size, read)


numbers = st.integers(0, 2**32 - 1)


@given(
    st.dictionaries(st.integers(0, 9), st.lists(st.tuples(numbers, numbers, numbers, numbers)), min_size=1)
)
def test_what_is_put_aside_comes_back_and_leaves_no_file(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[int, list[tuple[int, ...]]]
) -> None:
    folder = tmp_path_factory.mktemp("spill")
    with pages.Spill(folder) as spill:
        for key, values in kept.items():
            spill.put(key, matches.Mems(*np.array(values, np.int64).reshape(-1, 4).T))
        for key in reversed(list(kept)):
            assert rows(spill.take(key)) == [Mem(*row) for row in kept[key]]
        assert not list(Path(folder).iterdir())
        with pytest.raises(KeyError):
            spill.take("nothing")
