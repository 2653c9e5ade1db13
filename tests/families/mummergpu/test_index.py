"""The index made on a device: the same arrays as the host's, node for node. Here the device is the cpu, or a GPU that
is the cpu; test_index_gpu.py has a real one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_oracle import BUILDER, INDEX, assert_is_the_index, program_on, repeats
from lending import make_world, tuned
from mummergpu_helpers import _load
from suffix_tree_oracle import Text, codes, texts

from autotune.device import CpuBackend, LaunchError
from autotune.errors import WorkloadError

SMALL = {"block_size": 32, "items": 1}  # so that a few hundred characters are many tiles
FAMILY, TABLES = _load("family"), _load("tables")


@pytest.fixture(scope="module")
def program() -> Any:
    return program_on(CpuBackend(1), SMALL)


def long_texts() -> st.SearchStrategy[Text]:
    """Repeats of up to 300 characters: many tiles, several rounds of doubling."""
    return st.lists(texts(), min_size=1, max_size=3).flatmap(
        lambda parts: st.integers(1, 300 // sum(part.size for part in parts)).map(
            lambda times: np.tile(np.concatenate(parts), times)
        )
    )


@settings(deadline=None, max_examples=40)
@given(texts() | long_texts(), st.booleans())
def test_it_is_the_index_that_the_host_makes(program: Any, text: Text, merged: bool) -> None:
    assert_is_the_index(program, text, merged=merged)


@pytest.mark.parametrize(
    "letters", ["A-", "-A-", "A-A-A-A-", "ACGTACGT--ACGT-", "A" * 700 + "-", "AC" * 350 + "-"]
)
def test_edge_cases(program: Any, letters: str) -> None:
    for merged in (False, True):
        assert_is_the_index(program, codes(letters), merged=merged)


def test_prefixes_that_one_thread_does_not_compare(program: Any) -> None:
    unit = np.random.default_rng(2).integers(0, 4, 1500).astype(np.uint8)
    assert_is_the_index(program, np.concatenate((unit, codes("-"), unit, codes("A-"))))
    assert_is_the_index(program, repeats(5000, 900))


def test_only_what_is_wanted_is_made(program: Any) -> None:
    text = codes("ACGTACCA-ACGT-")
    words = BUILDER.build(
        program, text, BUILDER.Wanted(tree=False, tables={"coarse_table": 2}), lambda *_: None
    )
    assert set(words.rooms) == {"reference", "coarse_table"} and words.nodes == 0
    tree = BUILDER.build(program, text, BUILDER.Wanted(), lambda *_: None)
    assert set(tree.rooms) == {"reference", "nodes", "children", "tails"} and tree.letters == 12


def test_progress_is_told_in_order(program: Any) -> None:
    told: list[tuple[str, float]] = []
    BUILDER.build(program, codes("ACGT-"), BUILDER.Wanted(), lambda step, share: told.append((step, share)))
    steps, shares = zip(*told, strict=True)
    assert steps == ("suffix array", "common prefixes", "nodes", "suffix links", "done")
    assert list(shares) == sorted(shares) and shares[0] == 0 and shares[-1] == 1


# ---- as the kernels' input


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INDEX, "SIZES", SMALL)


def given_arrays() -> dict[str, Any]:
    text = repeats(700, 90)
    queries, offsets = FAMILY._simulated(text, 40, {"read_length": [30, 50], "substitutions": 0.02})
    arrays: dict[str, Any] = FAMILY.arrays_of(text, queries, offsets, 12)
    return arrays


@pytest.mark.parametrize(
    ("chosen", "stays"),
    [
        ({"tree_grouping": "merged", "emit": "ranges"}, True),
        ({"tree_dims": "2d"}, True),
        ({"tree_memory": "texture", "tree_dims": "2d", "tree_grouping": "merged"}, False),
        ({"search": "fine_table", "emit": "ranges"}, False),
        ({"search": "coarse_table", "emit": "ranges", "leaf_records": "soa"}, False),
    ],
    ids=["merged", "plane", "texture", "fine", "coarse"],
)
def test_kernels_read_it_where_it_was_made(
    monkeypatch: pytest.MonkeyPatch, small: None, chosen: dict[str, Any], stays: bool
) -> None:
    gpu, arrays = make_world(monkeypatch).gpu, given_arrays()
    kernel = tuned("mummergpu")
    monkeypatch.setattr(kernel._target, "explain", configured(kernel, chosen))
    letters = TABLES.table_letters(arrays["reference"].size, 12)
    configuration = {**kernel.family.space.configuration("control"), **chosen}
    wanted = INDEX.wanted_for(configuration, dict(zip(("coarse_table", "fine_table"), letters, strict=True)))
    with kernel, INDEX.build_index(kernel, arrays["reference"], wanted) as index:
        made = {name: array for name, array in index.arrays.items() if name in arrays}
        inputs = kernel.bind(**{**arrays, **made})
        on_gpu = kernel.prepare(inputs)
        gpu.seen.clear()
        beside = on_gpu.prepare_other(kernel.bind(**{**arrays, **made}))
        assert gpu.seen.count("place") == 0  # what was given to both is there once
        expected = kernel.prepare(kernel.bind(**arrays))()
        assert len(expected) > 10
        for handle in (on_gpu, beside):
            np.testing.assert_array_equal(handle(), expected)
        assert isinstance(on_gpu._kept.arrays["nodes"], np.ndarray) != stays


def configured(kernel: Any, chosen: dict[str, Any]) -> Any:
    control = kernel.family.space.configuration("control")
    configuration = type(control)({**control, **chosen})
    explain = kernel._target.explain
    return lambda inputs: (replace(explain(inputs)[0], configuration=configuration), [])


def test_what_is_not_wanted_has_one_element(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    make_world(monkeypatch)
    with tuned("mummergpu") as kernel:
        configuration = {"search": "fine_table", "emit": "ranges", "tree_grouping": "split"}
        wanted = INDEX.wanted_for(configuration, {"coarse_table": 1, "fine_table": 2})
        assert wanted == INDEX.Wanted(tree=False, leaves=True, tables={"fine_table": 2})
        with INDEX.build_index(kernel, codes("ACGTACCA-ACGT-"), wanted) as index:
            shapes = {
                name: np.shape(array) or (array.__cuda_array_interface__["shape"])
                for name, array in index.arrays.items()
            }
    assert shapes == {
        "nodes": (1,), "children": (1,), "tails": (1,), "ranges": (1,), "leaves": (12,), "coarse_table": (1,),
        "fine_table": (17,), "reference": (14,),
    }  # fmt: skip


@pytest.mark.parametrize(("tree", "most"), [(True, "2,147,483,646"), (False, "4,294,967,294")])
def test_more_than_can_be_numbered_is_refused(
    tree: bool, most: str, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    gpu, wanted = make_world(monkeypatch).gpu, INDEX.Wanted(tree=tree)
    text = np.broadcast_to(np.uint8(4), INDEX.most_characters(wanted) + 1)
    with (
        tuned("mummergpu") as kernel,
        pytest.raises(WorkloadError, match=rf"it can have {most}; give page=N"),
    ):
        INDEX.build_index(kernel, text, wanted)
    assert not gpu.seen


def test_too_little_memory_is_said_with_what_to_do_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    gpu, text = make_world(monkeypatch).gpu, repeats(700, 90)
    held: set[int] = set()
    place, most, seen = gpu.place, 99, 0

    def placed(*arguments: Any) -> Any:
        nonlocal seen
        if len(held) == most:
            raise LaunchError("out of memory")
        made = place(*arguments)
        held.add(id(made))
        seen = max(seen, len(held))
        free = made.free
        monkeypatch.setattr(made, "free", lambda: (held.discard(id(made)), free()))
        return made

    monkeypatch.setattr(gpu, "place", placed)
    with tuned("mummergpu") as kernel:
        INDEX.build_index(kernel, text, INDEX.Wanted()).close()
        for most in range(seen):  # noqa: B007  # placed reads it
            with pytest.raises(
                WorkloadError, match=r"takes about \d+ bytes for each, .* give page=N, with fewer"
            ):
                INDEX.build_index(kernel, text, INDEX.Wanted())
            assert not held
