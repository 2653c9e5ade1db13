"""The lookup example: every configuration on the cpu device against numpy.searchsorted, and its orders by what they
promise."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "lookup"))
MADE: Any = FAMILY.module
NONE = 0xFFFFFFFF
CONFIGURATIONS = FAMILY.space.configurations()


def searched(inputs: Inputs) -> np.ndarray:
    values = np.append(inputs.arrays["values"], np.uint32(NONE))
    return values[np.searchsorted(inputs.arrays["keys"], inputs.arrays["queries"], side="left")]


def of(keys: Any, queries: Any) -> Inputs:
    """A table of ``keys`` whose values are their numbers."""
    table = MADE.table(np.array(keys, np.uint32), np.arange(len(keys), dtype=np.uint32))
    return bind(FAMILY, table | {"queries": np.array(queries, np.uint32)}, {}, {})


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, c) for c in CONFIGURATIONS], 16)


def check(backend: CpuBackend, binaries: list[Binary], inputs: Inputs) -> None:
    expected = searched(inputs)
    for variant, found in results(backend, binaries, inputs):
        np.testing.assert_array_equal(found["found"], expected, err_msg=variant.configuration.id)


def test_the_constraints_leave_every_value_of_every_policy() -> None:
    assert len(CONFIGURATIONS) == 126
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in CONFIGURATIONS} == set(policy.values), policy.name
    assert {(c["order"], c["walk"]) for c in CONFIGURATIONS} == {
        ("sorted", "bisect"), ("sorted", "links"), ("eytzinger", "links"), ("van_emde_boas", "links"),
        ("eytzinger", "nodes"), ("nodes4", "nodes"), ("nodes8", "nodes"), ("nodes16", "nodes"),
    }  # fmt: skip


def test_every_configuration_equals_searchsorted(backend: CpuBackend, binaries: list[Binary]) -> None:
    check(backend, binaries, workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "ragged"), Path()))


@pytest.mark.parametrize(
    ("keys", "queries"),
    [
        ([5], [0, 4, 5, 6, NONE]),
        ([0, NONE], [0, 1, NONE]),
        ([7] * 40, [6, 7, 8]),
        ([0, 0, 3, 3, 3, 3, 3, 9, 9, NONE, NONE], [0, 1, 3, 4, 9, 10, NONE]),
        (range(0, 34, 2), range(36)),
        (range(1, 2 * 4913, 2), range(0, 9830, 7)),  # 17 ** 3: the widest nodes have their third level
    ],
    ids=["one", "ends", "equal", "repeated", "one-more", "deep"],
)
def test_tables_at_the_edges(backend: CpuBackend, binaries: list[Binary], keys: Any, queries: Any) -> None:
    check(backend, binaries, of(keys, queries))


def ordered(name: str, entries: int) -> list[int]:
    order: Any = FAMILY.orders["order", name]
    arrays = MADE.table(np.arange(entries, dtype=np.uint32), np.zeros(entries, np.uint32))
    made: list[int] = order.permutation(arrays, "slot", entries).tolist()
    return made


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 700))
def test_the_tree_is_the_one_that_eytzinger_stores(entries: int) -> None:
    order = ordered("eytzinger", entries)
    children = MADE.table(np.arange(entries, dtype=np.uint32), np.zeros(entries, np.uint32))["children"]
    for k, entry in enumerate(order):
        below = [order[2 * k + i] if 2 * k + i < entries else NONE for i in (1, 2)]
        assert children[entry].tolist() == tuple(below)
    assert sorted(ordered("van_emde_boas", entries)) == list(range(entries))


def test_van_emde_boas_of_15_entries_is_the_textbook_one() -> None:
    """The upper two levels, then the four subtrees of three entries."""
    assert ordered("van_emde_boas", 15) == [7, 3, 11, 1, 0, 2, 5, 4, 6, 9, 8, 10, 13, 12, 14]


def test_the_reference_counts_smaller_keys() -> None:
    inputs = of([2, 4, 4, 6], [0, 2, 3, 4, 5, 6, 7])
    assert MADE.reference(inputs.arrays, {})["found"].tolist() == [0, 0, 1, 1, 3, 3, NONE]


def test_a_table_that_does_not_ascend_is_refused() -> None:
    with pytest.raises(WorkloadError, match="sort them first"):
        MADE.table(np.array([2, 1], np.uint32), np.zeros(2, np.uint32))
    with pytest.raises(WorkloadError, match="give entries and queries"):
        MADE.inputs({"entries": 3}, Path())


def test_a_table_too_large_for_wide_nodes_is_excluded_with_the_reason(backend: CpuBackend) -> None:
    sizes = {"slot": 300_000_000, "query": 1, "one": 1}
    reasons = {c["node_width"]: FAMILY.space.explain_exclusion({**sizes, **c}) for c in CONFIGURATIONS}
    assert not reasons[1] and not reasons[8]
    assert "narrower node" in reasons[16]
