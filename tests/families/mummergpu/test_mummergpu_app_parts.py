"""The parts of a run: seconds, portions of reads, memory for matches, the index of a page, words for the device."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mummergpu_helpers import _load, sequences

from autotune.declaration import load_family

clock = _load("app.clock")
portions = _load("app.portions")
rooms = _load("app.rooms")
page_index = _load("app.page_index")
text = _load("text")
matches = _load("matches")

# ---- seconds


def test_seconds_add_up_to_what_went_by(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 101.0, 103.0, 107.0])
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    run = clock.Clock()
    for part in ("start", "reading", "search"):
        run.lap(part)
    run.move("search", "output", 0.004)
    assert run.total == pytest.approx(7.0)
    parts = ("start", "reading", "search", "output")
    assert [run.seconds[part] for part in parts] == pytest.approx([1, 2, 3.996, 0.004])
    assert [word.split()[0] for word in str(run).split(", ")] == list(clock.PARTS)


# ---- portions


def blocks_of(lengths: list[list[int]]) -> list[Any]:
    return [
        sequences.ReadBlock(
            [f"{number} {read}" for read in range(len(block))],
            np.arange(sum(block), dtype=np.uint8),
            np.concatenate(([0], np.cumsum(block, dtype=np.int64))),
        )
        for number, block in enumerate(lengths)
    ]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), max_size=5),
    st.integers(1, 30),
    st.booleans(),
    st.integers(0, 50),
)
def test_portions_are_all_reads_in_order(
    lengths: list[list[int]], most: int, adapts: bool, matches_of_base: int
) -> None:
    blocks = blocks_of(lengths)
    cut = portions.Portions(most, adapts)
    made = []
    for portion in cut.of(iter(blocks)):
        cut.found(len(portion.codes), len(portion.codes) * matches_of_base)
        made.append(portion)
        assert len(portion.headers) == 1 or len(portion.codes) <= most
        assert portion.offsets[0] == 0 and portion.offsets[-1] == len(portion.codes)
    assert [header for portion in made for header in portion.headers] == [
        header for block in blocks for header in block.headers
    ]
    assert np.concatenate([[0], *(portion.codes for portion in made)]).tolist() == (
        np.concatenate([[0], *(block.codes for block in blocks)]).tolist()
    )


def test_portions_with_many_matches_are_small() -> None:
    (block,) = blocks_of([[100] * 500])
    sizes = {}
    for matches_of_base in (0, 1, 1000):
        cut = portions.Portions(1 << 24, True)
        cut.found(1 << 20, matches_of_base << 20)
        sizes[matches_of_base] = len(next(cut.of(iter([block]))).codes)
    assert sizes == {0: 50_000, 1: 50_000, 1000: 2000}


# ---- memory for matches


def mems() -> Any:
    return matches.Mems(*np.zeros((4, 1), np.uint32))


def test_memory_is_used_again_once_it_is_released() -> None:
    kept = rooms.Rooms()
    first, second = kept.take(1 << 20), kept.take(3 << 20)
    assert (first.nbytes, second.nbytes) == (1 << 20, 4 << 20)
    found = kept.lend(first, mems())
    kept.release(mems())  # of somebody else
    other = kept.take(5)
    assert other.nbytes == 1 << 20 and other is not first
    kept.release(found)
    kept.release(found)
    assert kept.take(0) is first and kept.take(0) is not first
    kept.release(kept.lend(second, mems()))
    assert kept.take(1) is second


# ---- words for the device


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 3), st.integers(1, 3))
def test_codes_in_words(codes: list[int], spare: int, threads: int) -> None:
    words = np.full(-(-len(codes) // 8) + spare, 0xFFFFFFFF, np.uint32)
    text.packed(np.array(codes, np.uint8), words, threads)
    unpacked = [int(word) >> 4 * place & 15 for word in words for place in range(8)]
    assert unpacked == codes + [4] * (len(unpacked) - len(codes))


def test_codes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="9 codes do not fit into 1 words"):
        text.packed(np.zeros(9, np.uint8), np.empty(1, np.uint32))


# ---- the index of a page


@pytest.mark.parametrize(
    ("configuration", "read"),
    [
        ({"search": "tree", "emit": "walk"}, {"nodes", "children", "tails"}),
        ({"search": "tree", "emit": "ranges"}, {"nodes", "children", "tails", "ranges", "leaves"}),
        ({"search": "fine_table", "emit": "ranges"}, {"leaves", "coarse_table", "fine_table"}),
        ({"search": "coarse_table", "emit": "ranges"}, {"leaves", "coarse_table", "fine_table"}),
    ],
)
def test_only_what_a_configuration_reads_is_made(configuration: dict[str, str], read: set[str]) -> None:
    kernel: Any = SimpleNamespace(kind="cpu", family=load_family("mummergpu"))
    codes = np.append(np.random.default_rng(3).integers(0, 4, 500), 4).astype(np.uint8)
    configuration = {**configuration, "tree_grouping": "split"}
    with_nothing = page_index.index_of(kernel, codes, 12, None)
    made = page_index.index_of(kernel, codes, 12, configuration)
    assert made.suffices_for(configuration) and not with_nothing.suffices_for(configuration)
    filled = {name for name, array in made.arrays.items() if np.asarray(array).view(np.uint8).any()}
    assert filled == read | {"reference"}
    assert {name: array.dtype for name, array in made.arrays.items()} == {
        name: kernel.family.data[name].dtype for name in made.arrays
    }
    assert page_index.index_bytes(1 << 20, 12, configuration) > page_index.index_bytes(
        1 << 10, 12, configuration
    )
