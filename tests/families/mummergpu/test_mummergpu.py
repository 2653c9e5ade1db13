"""The mummergpu family on the cpu device: every layout of the paper, brute force."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, check_verified, compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st
from mem_oracle import OTHER, Mem, brute_force

from autotune.compile.cache import Cache, default_root
from autotune.compile.static_pass import static_sweep, static_toolchain
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import run_once
from autotune.errors import UsageError, WorkloadError
from autotune.measure.reference import compute_expected
from autotune.measure.verify import PATTERNS

FAMILY = families.load_family("mummergpu")
ONCE = PATTERNS[:1]  # a whole space; sweeps run each configuration on all of them
MODULE: Any = FAMILY.module
DATA = Path(__file__).parents[3] / "workloads" / "data"
PRESETS = ("control", "mummergpu-1.0", "mummergpu-2.0")
RANGES = ("emit=ranges", "search=coarse_table,emit=ranges,block_size=64", "search=fine_table,emit=ranges")


def inputs(name: str) -> Inputs:
    return workloads.prepare(FAMILY, workloads.load_workload(FAMILY, name), DATA)


def inputs_of(codes: Any, reads: list[Any], minimum: int) -> Inputs:
    offsets = np.cumsum([0, *map(len, reads)])
    queries = np.concatenate([np.array(read, np.uint8) for read in reads])
    return bind(FAMILY, MODULE.arrays_of(np.array(codes, np.uint8), queries, offsets, minimum), {}, {})


def rows(mems: Any) -> list[Mem]:
    """What a kernel or the reference gives, without the element that stands for none."""
    assert mems.size == 1 or (mems["query"] != 2**32 - 1).all()
    found = mems[mems["query"] != 2**32 - 1]
    return [Mem(*row) for row in found[["query", "position", "start", "length"]].tolist()]


def run(backend: CpuBackend, given_: Inputs, preset: str = "control") -> list[Mem]:
    outputs = run_once(FAMILY, FAMILY.space.configuration(preset), given_, backend, Cache(default_root()))
    return rows(outputs["mems"])


def allowed_with(text: str) -> Iterator[Configuration]:
    """``text`` with the paper's search, and with that of the new ones which reads what its policy is about."""
    search = "emit=ranges" if text.startswith("tree_") else "search=fine_table,emit=ranges"
    for others in ("", f"{search},"):
        if ("search=" not in text and "emit=" not in text) or not others:
            with suppress(UsageError):  # a constraint
                yield FAMILY.space.configuration(others + text)


# ---- the policies


def test_the_presets_are_those_of_the_paper() -> None:
    paper = list(FAMILY.space.configurations("paper"))
    assert len(set(paper)) == 128
    assert {configuration["block_size"] for configuration in paper} == {256}
    assert all(FAMILY.space.configuration(preset) in paper for preset in PRESETS)
    one, two = (dict(FAMILY.space.configuration(preset).items()) for preset in PRESETS[1:])
    assert one["reference_dims"] == one["tree_dims"] == "2d"
    assert two["tree_order"] == one["tree_order"] == "reordered"
    assert (two["tree_memory"], two["reference_memory"], two["tree_dims"]) == ("texture", "global", "1d")


@pytest.mark.parametrize("preset", ["paper", "outside"])
def test_every_configuration_gives_the_mems_of_the_reference(backend: CpuBackend, preset: str) -> None:
    """All 128 of the paper; and, one at a time, what is not in it, with every search that allows it."""
    given_ = inputs("phix")
    if preset == "paper":
        configurations = list(FAMILY.space.configurations("paper"))
    else:
        texts = [f"{policy.name}={value}" for policy in FAMILY.space.policies for value in policy.values]
        texts += RANGES
        configurations = [*dict.fromkeys(c for text in texts for c in allowed_with(text))]
        assert {text for c in configurations for text in c.id.split(",")} >= set(texts) - set(RANGES)
    variants = [Variant(FAMILY, configuration) for configuration in configurations]
    expected, _ = compute_expected(FAMILY, given_, default_root() / "references")
    assert len(expected["mems"]) > 100
    check_verified(backend, compiled(backend, variants, 48, "-O0"), given_, expected, ONCE)


def test_orders_move_every_tree_array_and_keep_the_root_first() -> None:
    arrays = inputs("phix").arrays
    assert set(FAMILY.orders) == {("tree_order", "reordered")}  # the other value is how the tree comes
    declared: Any = FAMILY.orders["tree_order", "reordered"]
    order = declared.permutation(arrays, "node", len(arrays["nodes"]))
    assert order[0] == 0 and (order != np.arange(len(order))).any()
    np.testing.assert_array_equal(np.sort(order), np.arange(len(arrays["nodes"])))
    for name in ("nodes", "children", "tails", "ranges"):
        data = FAMILY.data[name]
        assert data.shape == ("node",)
        (dims,) = (p for p in FAMILY.space.policies if p.name == "tree_dims")
        assert name in dims.data
    linked = {field.name for d in FAMILY.data.values() for field in d.fields if field.link == "node"}
    found = {f"node_{i}" for i in range(4)}
    assert linked == {"suffix_link", "parent", "a", "c", "g", "t", "end_child", *found}


# ---- oracles


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Records, and reads that are random, pieces of the records or pieces with one letter changed."""
    letters = draw(st.sampled_from(["A", "AC", "ACGT", "ACGTN", "AN"]))
    records = draw(st.lists(st.text(letters, min_size=1, max_size=80), min_size=1, max_size=3))
    records[0] += "A"
    whole = "".join(records)
    random = st.text(letters, min_size=1, max_size=30)
    pieces = st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 60)).map(
        lambda place: whole[place[0] :][: place[1]]
    )
    changed = st.tuples(pieces, st.integers(0, 59), st.sampled_from(letters)).map(
        lambda change: change[0][: change[1]] + change[2] + change[0][change[1] + 1 :]
    )
    return records, draw(st.lists(st.one_of(random, pieces, changed), min_size=1, max_size=12))


def codes_of(text: str) -> Any:
    return np.array(["ACGT".find(letter) % 5 for letter in text], np.uint8)


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> dict[str, Binary]:
    texts = PRESETS + RANGES
    variants = [Variant(FAMILY, FAMILY.space.configuration(text)) for text in texts]
    return dict(zip(texts, compiled(backend, variants, optimize="-Og"), strict=True))


@settings(max_examples=300, deadline=None)
@given(cases(), st.sampled_from([1, 1, 2, 3, 5, 10, 33, 40]), st.sampled_from(PRESETS + RANGES))
def test_small_cases_equal_brute_force(
    backend: CpuBackend,
    binaries: dict[str, Binary],
    case: tuple[list[str], list[str]],
    minimum: int,
    preset: str,
) -> None:
    records, texts = case
    codes = np.concatenate([codes_of(f"{record}.") for record in records])
    starts = np.cumsum([0, *(len(record) + 1 for record in records)])[:-1].tolist()
    reads = [codes_of(text) for text in texts]
    if max(map(len, reads)) < minimum:
        with pytest.raises(WorkloadError, match="longer than every read"):
            inputs_of(codes, reads, minimum)
        return
    given_ = inputs_of(codes, reads, minimum)
    expected = brute_force(codes, starts, reads, minimum)
    ((_, outputs),) = results(backend, [binaries[preset]], given_)
    found = rows(outputs["mems"])
    # The arrays have exactly the room that is needed; four starts of a read are written at once.
    assert given_.sizes["mem"] == max(1, len(expected))
    starting = [max(0, len(read) - minimum + 1) for read in reads]
    assert given_.sizes["slot"] == sum(-(-count // 4) * 4 for count in starting)
    made = MODULE.reference(given_.arrays, given_.scalars)["mems"]
    assert found == rows(made)
    assert sorted(found) == sorted(expected)
    if OTHER not in codes[:-1]:  # what follows a separator orders MUMmer's matches, not these
        assert found == expected


def test_long_repeats_and_words_beyond_one_number(backend: CpuBackend) -> None:
    unit = np.random.default_rng(3).integers(0, 4, 50)
    codes = np.concatenate([np.tile(unit, 8), [OTHER], np.tile(unit[::-1], 3), np.zeros(70, int), [OTHER]])
    reads = [np.tile(unit, 3), np.zeros(60, int), unit[::-1], np.tile(unit[::-1], 2)]
    for minimum in (7, 31, 32, 33, 60):
        given_ = inputs_of(codes, reads, minimum)
        expected = brute_force(codes.astype(np.uint8), [0, 401], reads, minimum)
        assert sorted(run(backend, given_)) == sorted(expected)
        assert given_.sizes["mem"] == len(expected)


@pytest.mark.parametrize("search", ["control", *RANGES])
def test_matches_come_in_passes_of_as_many_as_there_is_room_for(backend: CpuBackend, search: str) -> None:
    given_ = inputs("phix")
    expected = run(backend, given_, search)
    room = 50
    for first in range(0, len(expected), room):
        scalars = {**given_.scalars, "mem_count": room, "first_mem": first}
        part = bind(FAMILY, given_.arrays, {}, scalars)
        found = run_once(FAMILY, FAMILY.space.configuration(search), part, backend, Cache(default_root()))[
            "mems"
        ]
        assert rows(found[: len(expected) - first]) == expected[first : first + room]


@pytest.mark.parametrize("pieces", [100, 1200])
def test_matches_of_one_word_begin_at_many_starts(backend: CpuBackend, pieces: int) -> None:
    """They are put in order where a block gathers them; of more than it can, those of each start are counted first."""
    generator = np.random.default_rng(5)
    core = generator.integers(0, 4, 40)
    parts = [np.append(core[cut:], OTHER) for cut in generator.integers(0, 20, pieces)]
    given_ = inputs_of(np.concatenate(parts), [core, core[3:], np.append(core[10:], core)], 20)
    expected = rows(MODULE.reference(given_.arrays, given_.scalars)["mems"])
    assert len({mem.start for mem in expected}) > 20
    for search in RANGES:
        assert run(backend, given_, search) == expected


@pytest.mark.parametrize("minimum", [20, 100])
def test_reads_of_a_long_tandem_repeat(backend: CpuBackend, minimum: int) -> None:
    """One word has tens of thousands of matches; for matches of 100 letters they may begin at more starts than a block
    of 64 has threads. All of them are wanted, and then some from the middle."""
    generator = np.random.default_rng(7)
    repeat = np.tile([0, 2, 1], 33_334)[:100_000]
    changed = generator.choice(repeat.size, 1000, replace=False)
    repeat[changed] = (repeat[changed] + generator.integers(1, 4, changed.size)) % 4
    clean = np.tile(repeat[:3], 60)[:150]
    given_ = inputs_of(
        np.append(repeat, OTHER), [repeat[500:650], clean, generator.integers(0, 4, 150)], minimum
    )
    expected = rows(MODULE.reference(given_.arrays, given_.scalars)["mems"])
    assert len({mem.start for mem in expected}) > 40 and len(expected) > 30_000
    part = bind(FAMILY, given_.arrays, {}, {**given_.scalars, "mem_count": 1000, "first_mem": 12_345})
    for search in RANGES[1:]:
        assert run(backend, given_, search) == expected
        assert run(backend, part, search) == expected[12_345:13_345]


# ---- inputs


def test_every_workload_is_well_formed() -> None:
    known = workloads.workloads(FAMILY)
    assert {"lambda", "phix"} <= known.keys()
    for name in ("hsill", "ssuis", "lmono", "cbrigg"):
        assert {name, f"{name}-small"} <= known.keys()
        full, small = (workloads.load_workload(FAMILY, which).parameters for which in (name, f"{name}-small"))
        assert {key: value for key, value in small.items() if key != "reads"} == full
        assert "simulated" in workloads.load_workload(FAMILY, name).doc
        with pytest.raises(WorkloadError, match="does not exist"):
            inputs(name)
    assert "substitute" in workloads.load_workload(FAMILY, "cbrigg").doc
    assert FAMILY.default_workload == "lambda"


def test_reads_from_a_file_up_to_a_limit(backend: CpuBackend, tmp_path: Path) -> None:
    (tmp_path / "r.fa").write_text(">a\nACGTTACG\nGATTACA\n>b\nCCNGATTAC\n")
    (tmp_path / "q.fq").write_text("@1\nGATTACA\n+\nIIIIIII\n@2\nAC\n+\nII\n@3\nGATTAC\n+\nIIIIII\n")
    parameters = {"reference": "r.fa", "queries": "q.fq", "min_match_length": 6}
    found = []
    for limit in ({}, {"reads": 3}, {"reads": 2}, {"reads": 1}):
        arrays = MODULE.inputs({**parameters, **limit}, tmp_path)
        found.append(run(backend, bind(FAMILY, arrays, {}, {})))
    first, both = [Mem(0, 8, 0, 7), Mem(0, 19, 0, 6)], [Mem(2, 8, 0, 6), Mem(2, 19, 0, 6)]
    assert found[2] == found[3] == first
    assert sorted(found[0]) == sorted(found[1]) == sorted(first + both)


def test_no_match_at_all_is_one_empty_row(backend: CpuBackend) -> None:
    given_ = inputs_of([0, 0, 0, OTHER], [[1, 2, 1, 2]], 2)
    assert given_.sizes["mem"] == 1
    assert run(backend, given_) == []
    assert rows(MODULE.reference(given_.arrays, given_.scalars)["mems"]) == []


PHIX = {"reference": "phiX174_dada2.fa.gz", "min_match_length": 12, "reads": 5, "read_length": [9, 20]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reads": 0}, "reads must be a whole number of at least 1"),
        ({"reads": True}, "reads must be a whole number"),
        ({"min_match_length": 0}, "min_match_length must be a whole number of at least 1"),
        ({"min_match_length": 21}, "longer than every read"),
        ({"read_length": 9}, r"must be \[low, high\]"),
        ({"read_length": [9, 6000]}, "end within the reference"),
        ({"read_length": [9, 8]}, "must ascend"),
        ({"queries": "reads.fa"}, "do not make an input"),
        ({"error": 1}, "do not make an input"),
        ({"reference": "nothing.fa"}, "'nothing.fa' does not exist"),
    ],
)
def test_parameters_that_make_no_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        MODULE.inputs({**PHIX, **change}, DATA)


def test_simulated_reads_depend_on_the_seed_alone() -> None:
    made = [MODULE.inputs({**PHIX, "seed": seed, "substitutions": 0.5}, DATA) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(made[0]["queries"], made[1]["queries"])
    assert not np.array_equal(made[0]["queries"], made[2]["queries"])
    exact = MODULE.inputs(PHIX, DATA)
    found = MODULE.reference(bind(FAMILY, exact, {}, {}).arrays, exact)["mems"]
    lengths = np.diff(exact["offsets"]["base"])
    assert {0, 2, 4} - set(np.flatnonzero(lengths < 12)) <= set(found["query"])  # those of the same strand


# ---- the GPU's compiler


@pytest.mark.nvrtc
def test_all_searches_compile_for_hopper_with_hardly_a_spill() -> None:
    # Of the 64 programs every fourth, so that any three policies come in all their combinations; the order of the tree
    # is the host's. All of them run on the cpu above.
    paper = list(FAMILY.space.configurations("paper", {"tree_order": ["construction"]}))
    chosen = [name for name in paper[0] if len({c[name] for c in paper}) == 2]
    configurations = [*map(FAMILY.space.configuration, PRESETS)]
    for c in paper:
        differs = [c[name] != FAMILY.space.control[name] for name in chosen]
        if sum(differs[:4]) % 2 == sum(differs[2:]) % 2 == 0:
            configurations.append(c)
    configurations += map(FAMILY.space.configuration, RANGES)
    cache = Cache(default_root())
    profiles = list(static_sweep(FAMILY, configurations, static_toolchain("sm_90"), "sm_90", cache, 2))
    assert len(profiles) == len(configurations) >= 16
    for profile in profiles:
        assert not profile.message, profile.message
        assert [kernel.kernel for kernel in profile.kernels] == list(FAMILY.kernels)
        for kernel in profile.kernels:
            # With 32 registers the compiler keeps every warp and may put two values aside.
            assert kernel.local_bytes <= (8 if kernel.registers <= 32 else 0)
            assert kernel.registers <= (32 if kernel.kernel == "print_emit" else 64)
