"""The cyclospectrum family on the cpu device: the post's example, every policy value, sizes that have no middle."""

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, check_verified, compiled, results
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.compile.cache import Cache, default_root
from autotune.compile.static_pass import static_sweep, static_toolchain
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FAMILY = families.load_family("cyclospectrum")
MODULE: Any = FAMILY.module
TRANSFORMS: Any = import_module(f"{MODULE.__name__}.transform")
REFERENCE: Any = import_module(f"{MODULE.__name__}.reference")
POST = [57, 71, 113, 113, 128]
# The list that the post's programs print for POST, worked out by hand.
GOLDEN = [
    0, 57, 71, 113, 113, 128, 128, 184, 185, 226, 241, 241, 256, 297, 298, 354, 354, 369, 369, 411, 425, 482,
]  # fmt: skip
PRESETS = ("cyclospec", "cyclospec-opt", "cyclospec-gpu", "cyclospec-opt-gpu")
COUNTING = "generation=prefix,finish=counting,wrap=doubled,outputs_per_thread=8"
TRANSFORM = f"{COUNTING},count_by=transform"
# Every value of every policy, and every generation; the whole space is for a GPU (benchmarks/cyclospectrum_peers.py).
SORTED = (
    *PRESETS,
    "generation=prefix,finish=radix_sort,outputs_per_thread=8,vector_width=4",
    "generation=iterated,finish=radix_sort",
    COUNTING,
    f"{COUNTING},block_size=512,window=8192,tally_blocks=264,vector_width=4",
    f"{COUNTING.replace('=8', '=32')},vector_width=4,tally_blocks=1056,block_size=1024",
    "generation=prefix,finish=counting,wrap=doubled,outputs_per_thread=128,vector_width=4,window=32768",
    f"{TRANSFORM},row_bits=12,prime_size=narrow,vector_width=4,scan=listing,launch=graph",
    f"{COUNTING.replace('=8', '=16')},vector_width=4,find=table,scan=look_back",
    f"{TRANSFORM.replace('=8', '=16')},prime_size=narrow,vector_width=4,find=table,scan=look_back,eviction=hinted",
)
PAIRS = ("control", f"{COUNTING},vector_width=2", f"{TRANSFORM},vector_width=2")
UNSORTED = (
    "outputs_per_thread=4",
    "memory=texture",
    "wrap=doubled",
    "generation=iterated,memory=readonly",
    "generation=iterated,memory=constant",
    "generation=iterated,wrap=doubled",
    "generation=prefix,outputs_per_thread=8,vector_width=4",
    "generation=prefix,wrap=doubled,outputs_per_thread=4",
    "generation=sequential_iterated",
)
PEPTIDES: tuple[list[int], ...] = ([57], [57, 71], [0, 0, 0], [0, 3, 0, 0, 5], [5, 0], POST)
OPTIONS = {
    "sorted": {"order": "sorted", "output": "list"},
    "unsorted": {"order": "unsorted", "output": "list"},
    "pairs": {"order": "sorted", "output": "pairs"},
}


def by_hand(masses: list[int], order: str = "sorted") -> list[int]:
    """The list from its definition, in plain Python."""
    n = len(masses)
    sums = [
        sum(masses[(start + i) % n] for i in range(length)) for length in range(1, n) for start in range(n)
    ]
    found = [*sums, 0, sum(masses)]
    return sorted(found) if order == "sorted" else found


def pairs_by_hand(masses: list[int]) -> list[int]:
    found = Counter(by_hand(masses))
    pairs = [number for mass in sorted(found) for number in (mass, found[mass])]
    return pairs + [0] * (2 * sum(masses) + 2 - len(pairs))


def inputs_of(masses: Any, asked: str = "sorted") -> Inputs:
    return bind(FAMILY, MODULE.arrays_of(np.array(masses)), OPTIONS[asked], {})


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> dict[str, list[Binary]]:
    """By what is asked for."""
    return {
        asked: compiled(
            backend,
            [Variant.make(FAMILY, FAMILY.space.configuration(text), OPTIONS[asked]) for text in texts],
            10,
        )
        for asked, texts in (("sorted", SORTED), ("unsorted", UNSORTED), ("pairs", PAIRS))
    }


# ---- results


def test_the_reference_is_the_definition() -> None:
    assert by_hand(POST) == GOLDEN
    for masses in PEPTIDES:
        for asked in ("sorted", "unsorted"):
            inputs = inputs_of(masses, asked)
            found = MODULE.reference(inputs.arrays, inputs.options)["spectrum"]
            assert found.tolist() == by_hand(masses, asked)
        inputs = inputs_of(masses, "pairs")
        assert MODULE.reference(inputs.arrays, inputs.options)["spectrum"].tolist() == pairs_by_hand(masses)


def test_the_reference_of_long_lists_counts_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = inputs_of([1, 2, 0, 5] * 23)
    by_sorting = MODULE.reference(inputs.arrays, inputs.options)["spectrum"]
    monkeypatch.setattr(REFERENCE, "_FEW", 1000)  # of 8,374 values, none above 184
    monkeypatch.setattr(REFERENCE, "_AT_ONCE", 1000)
    np.testing.assert_array_equal(MODULE.reference(inputs.arrays, inputs.options)["spectrum"], by_sorting)


def test_pairs_with_a_total_beyond_the_room_that_a_result_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is as large as its extent, from a total of 2^28 on no larger; most of it is never written here."""
    for masses in ([1 << 27, (1 << 27) - 1], [1 << 27, 1 << 27], [2_000_000_000, 7, 0]):
        sizes = FAMILY.sizes({"residues": (len(masses),)}, {"output": "pairs", "total": sum(masses)})
        pairs = REFERENCE.pairs_of(np.array(masses, np.int64))
        assert pairs.size == sizes["outputs"]
        some = pairs[:32].reshape(-1, 2)
        listed = REFERENCE.list_of(np.array(masses, np.int64), "sorted").tolist()
        assert {mass: count for mass, count in some.tolist() if count} == Counter(listed)
    monkeypatch.setattr(REFERENCE, "_FEW", 1)
    with pytest.raises(WorkloadError, match="the total has to be below 268,435,456; take fewer decimals"):
        REFERENCE.pairs_of(np.array([1 << 27, 1 << 27], np.int64))


def test_the_pairs_of_long_lists_are_correlated_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for masses in ([1, 2, 0, 5] * 23, [0] * 40, *PEPTIDES):
        expected = REFERENCE.pairs_of(np.array(masses, np.int64))
        with monkeypatch.context() as patched:
            patched.setattr(REFERENCE, "_FEW", 0)
            np.testing.assert_array_equal(REFERENCE.pairs_of(np.array(masses, np.int64)), expected)


@pytest.mark.parametrize("asked", OPTIONS)
def test_every_policy_is_exact(backend: CpuBackend, binaries: dict[str, list[Binary]], asked: str) -> None:
    drawn = MODULE.inputs({"residues": 37, "seed": 2}, Path())["residues"]
    heavy = np.random.default_rng(1).integers(0, 5000, 70)  # more tiles of bins than a block has threads
    for masses in (*PEPTIDES, drawn, heavy):
        inputs = inputs_of(masses, asked)
        expected = MODULE.reference(inputs.arrays, inputs.options)
        check_verified(backend, binaries[asked], inputs, expected)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_ring_is_transformed_to_its_spectrum(
    backend: CpuBackend, binaries: dict[str, list[Binary]], masses: list[int]
) -> None:
    for asked, expected in (("sorted", by_hand(masses)), ("pairs", pairs_by_hand(masses))):
        some = [both for both in binaries[asked] if both[0].configuration["count_by"] == "transform"]
        assert some
        for _, found in results(backend, some, inputs_of(masses, asked)):
            assert found["spectrum"].tolist() == expected


def test_two_passes_over_columns(
    backend: CpuBackend, binaries: dict[str, list[Binary]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TRANSFORMS, "_MOST_STAGES", 6)
    inputs = inputs_of(np.random.default_rng(7).integers(0, 5000, 70))
    assert len(TRANSFORMS.Transform.of(inputs.scalars["total"], 12).columns) == 2
    some = [both for both in binaries["sorted"] if both[0].configuration["row_bits"] == 12]
    check_verified(backend, some, inputs, MODULE.reference(inputs.arrays, inputs.options))


@given(st.integers(0, 2**28 - 1), st.sampled_from([12, 13]))
def test_passes_make_up_the_whole_transform(total: int, row_bits: int) -> None:
    transform = TRANSFORMS.Transform.of(total, row_bits)
    assert max(2 * total - 1, 2**6) <= 2**transform.bits < max(4 * total, 2**6 + 1)
    span = transform.bits
    for begin, stages in transform.columns:
        assert begin == span
        assert 6 <= stages <= 9
        span -= stages
        assert span >= 5  # 32 columns a block
    assert 6 <= span == transform.row_stages <= row_bits
    for prime in TRANSFORMS.PRIMES.values():
        assert transform.scale(prime) * 2**transform.bits * pow(2, -64, prime) % prime == 1


def test_what_is_tried_above_has_every_value_of_every_policy() -> None:
    tried = [FAMILY.space.configuration(text) for text in (*SORTED, *UNSORTED, *PAIRS)]
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in tried} == set(policy.values), policy.name


def test_a_spectrum_is_symmetric_and_adds_up() -> None:
    inputs = bind(FAMILY, MODULE.inputs({"residues": 50, "seed": 5}, Path()), {}, {})
    total, n = inputs.scalars["total"], 50
    found = MODULE.reference(inputs.arrays, inputs.options)["spectrum"]
    assert found.sum(dtype=np.int64) == total * (1 + n * (n - 1) // 2)
    np.testing.assert_array_equal(found, (total - found)[::-1])
    for moved in (np.roll(inputs.arrays["residues"], 7), inputs.arrays["residues"][::-1]):
        np.testing.assert_array_equal(
            MODULE.reference({"residues": moved}, inputs.options)["spectrum"], found
        )


# ---- the space


def test_the_posts_programs_are_presets() -> None:
    post = {preset: FAMILY.space.configuration(preset) for preset in PRESETS}
    assert list(FAMILY.space.configurations("post")) == list(post.values())
    assert [c["generation"] for c in post.values()] == [
        "sequential_brute", "sequential_iterated", "brute", "iterated",
    ]  # fmt: skip
    assert {c["finish"] for c in post.values()} == {"host_sort"}
    kernel = FAMILY.kernels["brute"]
    names = {**inputs_of(POST).sizes, **post["cyclospec-gpu"]}
    assert Variant(FAMILY, post["cyclospec-gpu"]).geometry(kernel, names).block == (16, 16, 1)


def exclusion(text: str, inputs: Inputs, backend: CpuBackend) -> str:
    configuration: Configuration = FAMILY.space.configuration(text)
    variant = Variant.make(FAMILY, configuration, inputs.options)
    names = inputs.names(configuration)
    return variant.explain_exclusion(names, backend.device.limits)


def test_what_cannot_be_right_is_excluded(backend: CpuBackend) -> None:
    long = bind(FAMILY, {"residues": np.zeros(46_342, np.int32), "total": 0}, {}, {})
    assert "46,341" in exclusion("control", long, backend)
    most = bind(FAMILY, {"residues": np.zeros(46_341, np.int32), "total": 0}, {}, {})
    assert not exclusion("generation=prefix", most, backend)
    heavy = inputs_of([2**30, 2**30 - 1])
    assert "2^26" in exclusion(COUNTING, heavy, backend)
    assert not exclusion("control", heavy, backend)
    assert "not finished" in exclusion(COUNTING, inputs_of(POST, "unsorted"), backend)


@pytest.mark.nvrtc
def test_a_gpu_compiler_takes_every_generation_and_finish() -> None:
    (generations,) = (p.values for p in FAMILY.space.policies if p.name == "generation")
    texts = [*(f"generation={value}" for value in generations), COUNTING, SORTED[-1]]
    configurations = [FAMILY.space.configuration(text) for text in texts]
    cache = Cache(default_root() / "cyclospectrum")
    profiles = list(static_sweep(FAMILY, configurations, static_toolchain("sm_90"), "sm_90", cache, 1))
    assert len(profiles) == len(texts)
    for profile in profiles:
        assert not profile.message, profile.message
        assert [kernel.kernel for kernel in profile.kernels] == list(FAMILY.kernels)
        assert all(kernel.local_bytes == 0 for kernel in profile.kernels)


# ---- inputs


@pytest.mark.parametrize(
    ("masses", "words"),
    [
        ([57, -1], "negative"),
        ([57.5, 71.0], "fractional"),
        ([float("nan")], "NaN"),
        ([2**31], "add up to 2,147,483,648"),
        ([2**30, 2**30], "add up to"),
        ([1] * 46_342, "at most 46,341"),
        ([], "no masses"),
        ([[1, 2]], "1 needed"),
        (["57"], "whole numbers"),
    ],
)
def test_masses_that_are_refused(masses: Any, words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        MODULE.arrays_of(masses)


def test_the_heaviest_ring_is_exact() -> None:
    inputs = inputs_of([2**30, 2**30 - 1, 0])
    expected = MODULE.reference(inputs.arrays, inputs.options)["spectrum"]
    assert expected.tolist() == by_hand([2**30, 2**30 - 1, 0])
    assert expected[-1] == 2**31 - 1


def test_workloads(tmp_path: Path) -> None:
    small = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "small"), tmp_path)
    assert small.arrays["residues"].tolist() == POST
    assert small.scalars["total"] == 482
    for name in workloads.workloads(FAMILY):
        assert workloads.prepare(FAMILY, workloads.load_workload(FAMILY, name), tmp_path).sizes["n"] >= 5
    for parameters in (
        {},
        {"residues": 0},
        {"residues": True},
        {"peptide": "VK", "seed": 1},
        {"peptide": "VKX"},
    ):
        with pytest.raises(WorkloadError):
            MODULE.inputs(parameters, tmp_path)
