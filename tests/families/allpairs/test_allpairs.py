"""The all-pairs family: every configuration of the full space on the cpu device against scipy, exactly."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cpu_results import Binary, compiled, covering
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

import autotune
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.family import Family
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident
from autotune.measure.reference import compute_expected
from autotune.measure.verify import PATTERNS, Verifier

FAMILY = families.load_family("allpairs")
ONCE = PATTERNS[:1]  # a whole space; sweeps run each configuration on all of them
CATEGORY, MASKED = (("missing", "category"),), (("missing", "masked"),)


def scipy_distance(genotypes: np.ndarray, masked: bool) -> np.ndarray:
    """scipy's Hamming distance; with ``masked``, of each pair's attributes that both know."""
    if not masked:
        return np.rint(cdist(genotypes, genotypes, "hamming") * genotypes.shape[1]).astype(np.int32)
    n = len(genotypes)
    distance = np.zeros((n, n), np.int32)
    for i in range(n):
        known = (genotypes != 3) & (genotypes[i] != 3)
        distance[i] = ((genotypes != genotypes[i]) & known).sum(1)
    return distance


def inputs(name: str) -> Inputs:
    return workloads.prepare(FAMILY, workloads.load_workload(FAMILY, name), Path())


def variants(options: tuple[tuple[str, str], ...], preset: str) -> list[Variant]:
    return [Variant(FAMILY, c, options) for c in FAMILY.space.configurations(preset)]


def check(
    backend: CpuBackend,
    family: Family,
    given_: Inputs,
    binaries: list[Binary],
    masked: bool,
    once: bool = False,
) -> int:
    """How many configurations ran; each is compared with scipy exactly, twice or ``once``."""
    expected = {"distance": scipy_distance(given_.arrays["genotypes"], masked)}
    resident, verifier = Resident(backend, given_), Verifier(backend, family, expected)
    ran = 0
    for variant, binary in binaries:
        names = given_.names(variant.configuration)
        if variant.explain_exclusion(names, backend.device.limits):
            assert variant.configuration["memory"] == "constant"
            continue
        execution = resident.execution(variant, backend.load(binary))
        reason, _ = verifier.run(execution, False, ONCE, 0.0 if once else math.inf)
        assert not reason, f"{variant.configuration.id}: {reason}"
        ran += 1
    resident.close()
    verifier.close()
    return ran


def is_tile(binary: Binary) -> bool:
    return binary[0].configuration["accumulate"] in ("register_tile", "tensor_tile")


@pytest.mark.parametrize("packing", ["int32", "int8", "planes2"])
def test_the_full_space_equals_scipy_on_both_sizes(backend: CpuBackend, packing: str) -> None:
    """Each configuration on one size; on the other, all values of any three policies that go together."""
    full = FAMILY.space.configurations("full", {"packing": [packing]})
    assert len(full) >= 400
    binaries = compiled(backend, [Variant(FAMILY, c, CATEGORY) for c in full], 48, "-O0")
    assert check(backend, FAMILY, inputs("ragged"), binaries, masked=False, once=True) == len(binaries)
    chosen = set(covering(full, 3))
    binaries = [binary for binary in binaries if binary[0].configuration in chosen]
    assert 80 < len(binaries) < 130
    # The tiles, whose edges fall by the number of people, run on all 112, with whole words of attributes. A block that
    # owns a pair does the same for each pair: 17 people show it in a fortieth of the
    # time, and their words fit in constant memory.
    primer = inputs("primer").arrays["genotypes"]
    tall, wide = (bind(FAMILY, {"genotypes": g}, dict(CATEGORY), {}) for g in (primer[:, :128], primer[:17]))
    tiles, pairs = ([b for b in binaries if is_tile(b) is tile] for tile in (True, False))
    assert check(backend, FAMILY, tall, tiles, masked=False, once=True) == len(tiles)
    assert check(backend, FAMILY, wide, pairs, masked=False, once=True) == len(pairs)


def test_the_primers_own_kernels_equal_scipy_on_its_size(backend: CpuBackend) -> None:
    binaries = compiled(backend, [*variants(CATEGORY, "ladder"), *variants(CATEGORY, "cpu")])
    assert len(binaries) == 7
    assert check(backend, FAMILY, inputs("primer"), binaries, masked=False) == 7


def test_masked_missing_values_on_tiles_and_ladder(backend: CpuBackend) -> None:
    """All values of any three policies that go together; each configuration runs on ``CATEGORY``."""
    tiles = covering(FAMILY.space.configurations("fast"), 3)
    assert 40 < len(tiles) < 100
    masked = [*variants(MASKED, "ladder"), *(Variant(FAMILY, c, MASKED) for c in tiles)]
    binaries = compiled(backend, masked, 48, "-O0")
    assert check(backend, FAMILY, inputs("ragged-masked"), binaries, masked=True) == len(binaries)


@pytest.mark.parametrize("name", ["primer", "ragged", "ragged-masked", "hapmap3-slice"])
def test_the_reference_equals_scipy(name: str, tmp_path: Path) -> None:
    given_ = inputs(name)
    expected, _ = compute_expected(FAMILY, given_, tmp_path)
    masked = given_.options["missing"] == "masked"
    np.testing.assert_array_equal(expected["distance"], scipy_distance(given_.arrays["genotypes"], masked))


@pytest.fixture(scope="module")
def untuned() -> Iterator[autotune.TunedKernel]:
    """What a cpu runs that no policy file is for."""
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load("allpairs", device="cpu", policies="/nowhere")
    with kernel:
        yield kernel


small = arrays(np.int8, st.tuples(st.integers(1, 12), st.integers(1, 70)), elements=st.integers(0, 3))


@settings(max_examples=30, deadline=None)
@given(small)
def test_distances_are_a_metric_and_do_not_care_for_order_or_names(
    untuned: autotune.TunedKernel, genotypes: np.ndarray
) -> None:
    distance = untuned(genotypes)
    assert (distance == distance.T).all()
    assert not distance.diagonal().any()
    assert (distance[:, :, None] <= distance[:, None, :] + distance[None, :, :]).all()
    shuffled = genotypes[:, np.random.default_rng(0).permutation(genotypes.shape[1])]
    np.testing.assert_array_equal(untuned(shuffled), distance)
    np.testing.assert_array_equal(untuned(3 - genotypes), distance)


def test_a_cpu_that_is_not_tuned_counts_in_bit_planes(untuned: autotune.TunedKernel) -> None:
    for sizes, options in (((1, 1), CATEGORY), ((37, 131), MASKED), ((160, 1024), CATEGORY)):
        taken, _ = untuned.explain(untuned.bind(np.zeros(sizes, np.int8), **dict(options)))
        assert taken.match == "preset"
        assert taken.configuration is not None
        assert taken.configuration["packing"] == "planes2"
        assert taken.configuration["accumulate"] == "register_tile"


@pytest.mark.parametrize("options", [CATEGORY, MASKED])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 70), (33, 1), (129, 257)])
def test_what_a_cpu_runs_that_is_not_tuned_equals_scipy(
    untuned: autotune.TunedKernel, sizes: tuple[int, int], options: tuple[tuple[str, str], ...]
) -> None:
    genotypes = np.random.default_rng(sizes).integers(0, 4, sizes)
    expected = scipy_distance(genotypes, options == MASKED)
    np.testing.assert_array_equal(untuned(genotypes, **dict(options)), expected)


def test_the_primers_loop_is_the_first_of_its_ladder() -> None:
    first, *_ = FAMILY.space.configurations("ladder")
    assert first == FAMILY.space.configuration("appendix")
    assert (first["packing"], first["tile"]) == ("int32", 1)
