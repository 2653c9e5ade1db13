"""The coulomb family on the cpu device: configurations of every kind against float64, analytic cases, properties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st

import autotune
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.errors import CompilerError

FAMILY = families.load_family("coulomb")
assert FAMILY.module is not None
EXACT: Any = import_module(f"{FAMILY.module.__name__}.exact")
LATTICE: Any = import_module(f"{FAMILY.module.__name__}.lattice")

PAPER = FAMILY.space.configurations("paper")
ON_POINTS = ((5, 3, 2), (36, 18, 8), (0, 0, 0))  # column, row, slice
SPACING = 0.75  # times a whole number it is exact
CUBIC = (
    "precalculate=block,staging=shared,points_x=3,points_z=8,points=spread,block_x=8,block_y=4,unroll=2,rsqrt=cubic3,"
    "accumulate=at_end,slices_per_launch=all"
)


@cache
def sample() -> Sequence[Configuration]:
    """Of the whole space, every 41st: each policy's every value is among them."""
    return FAMILY.space.configurations()[::41]


def atoms_of(rows: Any) -> np.ndarray:
    return np.array([tuple(row) for row in rows], LATTICE.ATOM)


def bound(
    atoms: np.ndarray, counts: tuple[int, int, int], spacing: float, precision: str = "float32"
) -> Inputs:
    nx, ny, nz = counts
    given_ = {"atoms": atoms, "nx": nx, "ny": ny, "nz": nz, "spacing": spacing}
    return bind(FAMILY, given_, {"precision": precision}, {})


def protein() -> Inputs:
    """260 atoms of 1a63 on a lattice of odd sizes, and an atom exactly on each of three of its points."""
    shipped = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "1a63-slice"), Path())
    some = shipped.arrays["atoms"][100:360].copy()
    for name in "xyz":
        some[name] -= some[name].min() - 3
    on_points = atoms_of([(SPACING * i, SPACING * j, SPACING * k, 0.5) for i, j, k in ON_POINTS])
    return bound(np.concatenate([some, on_points]), (37, 19, 9), SPACING)


def maps(
    backend: CpuBackend, inputs: Inputs, configurations: Sequence[Configuration], precision: str = "float32"
) -> Iterator[tuple[Configuration, np.ndarray]]:
    variants = [Variant(FAMILY, c, (("precision", precision),)) for c in configurations]
    for variant, found in results(backend, compiled(backend, variants, 24, "-Og"), inputs):
        yield variant.configuration, found["potential"]


@dataclass(frozen=True)
class Exact:
    """In float64, of some inputs: the potential, and the sum of |q| / r."""

    potential: np.ndarray
    sizes: np.ndarray


def exact(inputs: Inputs) -> Exact:
    counts = (int(inputs.scalars["nx"]), int(inputs.scalars["ny"]), int(inputs.scalars["nz"]))
    atoms, spacing = inputs.arrays["atoms"], inputs.scalars["spacing"]
    sizes = atoms.copy()
    sizes["q"] = np.abs(atoms["q"])
    return Exact(EXACT.potential(atoms, counts, spacing), EXACT.potential(sizes, counts, spacing))


def check(expected: Exact, made: np.ndarray, most: float = 1e-6) -> None:
    """Every point within ``most`` of the sum of |q| / r, the whole within 1e-5 of its norm: of few atoms."""
    error = np.abs(made - expected.potential)
    assert (error <= most * expected.sizes).all()
    usual = np.abs(expected.potential) < 1000  # not those that an atom is on
    assert np.linalg.norm(error[usual]) <= 1e-5 * np.linalg.norm(expected.potential[usual])


def test_the_sample_has_every_value_of_every_policy() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in sample()} == set(policy.values)


def test_the_space_is_one_that_a_sweep_can_try() -> None:
    assert len(FAMILY.space.configurations()) < 5000
    assert len(FAMILY.space.configurations("fast")) <= 100
    assert len(PAPER) == 5


def test_sampled_configurations_and_the_papers_agree_with_float64(backend: CpuBackend) -> None:
    inputs = protein()
    expected = exact(inputs)
    tried = list(dict.fromkeys((*sample(), *PAPER)))
    assert len(tried) > 50
    for configuration, made in maps(backend, inputs, tried):
        check(expected, made)
        for i, j, k in ON_POINTS:
            assert made[k, j, i] == pytest.approx(5000, abs=5), configuration.id


@pytest.mark.parametrize(("precision", "most"), [("compensated", 4e-7), ("float64", 6e-8)])
def test_the_other_precisions_are_nearer(backend: CpuBackend, precision: str, most: float) -> None:
    inputs = protein()
    expected = exact(inputs)
    tried = [c for c in sample()[::6] if c["rsqrt"] in ("ieee", "fast")]
    assert len(tried) >= 3
    for _, made in maps(backend, inputs, tried, precision):
        check(expected, made, most)


ONE_SIGN = ("control", "v4-batched", CUBIC)


@pytest.mark.parametrize("count", [1_000, 10_000, 50_000])
def test_the_error_of_many_atoms_of_one_sign_grows_as_their_root(backend: CpuBackend, count: int) -> None:
    generator = np.random.default_rng(count)
    rows = np.column_stack([generator.uniform(0, 40, (count, 3)), generator.uniform(0.1, 1, count)])
    inputs = bound(atoms_of(rows), (8, 5, 8), 5.0)
    expected = exact(inputs)
    tried = [FAMILY.space.configuration(text) for text in ONE_SIGN]
    for configuration, made in maps(backend, inputs, tried):
        share = np.abs(made - expected.potential) / expected.sizes
        assert share.max() <= 1e-6 + np.sqrt(count) * 2**-24, configuration.id
        allowed = FAMILY.tolerances({**inputs.sizes, **inputs.options})["potential"].relative
        assert share.max() <= allowed / 2, configuration.id
    ((_, made),) = maps(backend, inputs, tried[:1], "compensated")
    assert (np.abs(made - expected.potential) <= 4e-7 * expected.sizes).all()


def test_equal_terms_err_as_far_as_is_said(backend: CpuBackend) -> None:
    count = 100_000
    inputs = bound(atoms_of([(2.3, 1.1, 0.7, 0.3)] * count), (5, 4, 3), 1.0)
    expected = exact(inputs)
    for configuration, made in maps(backend, inputs, [FAMILY.space.configuration(t) for t in ONE_SIGN]):
        share = np.abs(made - expected.potential) / expected.sizes
        assert np.sqrt(count) * 2**-24 < share.max() <= 1e-6 + count * 2**-24, configuration.id


def test_more_atoms_than_constant_memory_holds(backend: CpuBackend) -> None:
    generator = np.random.default_rng(3)
    rows = np.column_stack([generator.uniform(-9, 9, (5000, 3)), generator.uniform(-1, 1, 5000)])
    inputs = bound(atoms_of(rows), (9, 7, 3), 0.5)
    expected = exact(inputs)
    windowed = [FAMILY.space.configuration(name) for name in ("v1", "v3", "v4-batched")]
    for _, made in maps(backend, inputs, windowed):
        check(expected, made)


@pytest.mark.parametrize("counts", [(1, 1, 1), (130, 1, 2), (1, 33, 1), (3, 2, 17)])
def test_lattices_that_fill_no_block(backend: CpuBackend, counts: tuple[int, int, int]) -> None:
    inputs = bound(atoms_of([(0.1, -2.5, 3.25, 1.5), (4, 4, 4, -0.25)]), counts, 0.5)
    expected = exact(inputs)
    deep = "precalculate=thread,points_x=4,points_z=8,accumulate=at_end,slices_per_launch=all,rsqrt=fast"
    tried = [FAMILY.space.configuration(text) for text in ("control", "v4", deep, CUBIC)]
    for _, made in maps(backend, inputs, tried):
        check(expected, made)


def test_a_cubic_is_as_near_at_every_distance(backend: CpuBackend) -> None:
    """One charge of either sign, 9,000 distances: all bits of a mantissa's upper half, exponents even and odd."""
    for charge in (0.7, -1.3):
        inputs = bound(atoms_of([(1.21, -3.37, 0.43, charge)]), (50, 20, 9), 0.3)
        expected = exact(inputs)
        ((_, made),) = maps(backend, inputs, [FAMILY.space.configuration(CUBIC)])
        error = np.abs(made / expected.potential - 1)
        assert 2e-7 < error.max() < 7e-7


def test_what_is_not_charged_adds_nothing_to_a_cubic(backend: CpuBackend) -> None:
    rows = [(1.1, 1, 1, 0.0), (2.2, 0.5, 0, -0.0), (0.1, 0, 0, 1e-20), (5e5, -5e5, 0, 0.0)]
    inputs = bound(atoms_of(rows), (9, 9, 9), 0.5)
    ((_, made),) = maps(backend, inputs, [FAMILY.space.configuration(CUBIC)])
    assert np.abs(made).max() < 1e-9


# ---- analytic cases and properties, by the run time


@pytest.fixture(scope="module")
def kernel() -> Iterator[TunedKernel]:
    with pytest.warns(UserWarning, match="no usable policy file"):
        opened = autotune.load("coulomb", device="cpu", policies="/nowhere")
    with opened:
        yield opened


def potential(
    kernel: TunedKernel, rows: Any, counts: tuple[int, int, int] = (9, 8, 7), spacing: float = 0.5
) -> np.ndarray:
    nx, ny, nz = counts
    made: np.ndarray = kernel(atoms=atoms_of(rows), nx=nx, ny=ny, nz=nz, spacing=spacing)
    return made


def test_one_charge(kernel: TunedKernel) -> None:
    made = potential(kernel, [(1.25, 1.75, 0.75, -2.0)])
    k, j, i = np.indices(made.shape)
    r = np.sqrt((0.5 * i - 1.25) ** 2 + (0.5 * j - 1.75) ** 2 + (0.5 * k - 0.75) ** 2)
    np.testing.assert_allclose(made, -2 / r, rtol=3e-7)


def test_a_dipoles_middle_plane_is_zero(kernel: TunedKernel) -> None:
    made = potential(kernel, [(0.75, 1.25, 1.0, 1.0), (3.25, 1.25, 1.0, -1.0)])
    assert np.abs(made[:, :, 4]).max() < 1e-7
    assert (made[:, :, :4] > 0).all()
    assert (made[:, :, 5:] < 0).all()


def test_far_away_only_the_net_charge_counts(kernel: TunedKernel) -> None:
    generator = np.random.default_rng(1)
    rows = np.column_stack([generator.uniform(-1, 1, (40, 3)) + 20000, generator.uniform(0, 1, 40)])
    made = potential(kernel, rows, (2, 2, 2))
    np.testing.assert_allclose(made, rows[:, 3].sum() / (20000 * np.sqrt(3)), rtol=1e-4)


sixty_fourths = st.integers(-320, 640).map(lambda n: n / 64)
charges = st.integers(-32, 32).map(lambda n: n / 16)
some_atoms = st.lists(
    st.tuples(sixty_fourths, sixty_fourths, sixty_fourths, charges), min_size=1, max_size=12
)


@settings(max_examples=25, deadline=None)
@given(some_atoms, st.integers(-3, 3))
def test_linear_in_the_charges(kernel: TunedKernel, rows: list[tuple[float, ...]], power: int) -> None:
    scaled = [(x, y, z, q * 2.0**power) for x, y, z, q in rows]
    np.testing.assert_array_equal(potential(kernel, scaled), potential(kernel, rows) * 2.0**power)


@settings(max_examples=25, deadline=None)
@given(some_atoms, some_atoms)
def test_superposition(
    kernel: TunedKernel, first: list[tuple[float, ...]], second: list[tuple[float, ...]]
) -> None:
    apart = potential(kernel, first).astype(np.float64) + potential(kernel, second)
    sizes = potential(kernel, [(x, y, z, abs(q)) for x, y, z, q in first + second])
    assert (np.abs(potential(kernel, first + second) - apart) <= 1e-6 * sizes).all()


@settings(max_examples=25, deadline=None)
@given(some_atoms, st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)))
def test_translation_by_whole_points(
    kernel: TunedKernel, rows: list[tuple[float, ...]], by: tuple[int, int, int]
) -> None:
    a, b, c = by
    moved = [(x + 0.5 * a, y + 0.5 * b, z + 0.5 * c, q) for x, y, z, q in rows]
    here, there = potential(kernel, rows), potential(kernel, moved)
    np.testing.assert_array_equal(there[c:, b:, a:], here[: 7 - c, : 8 - b, : 9 - a])


# ---- the source


@pytest.mark.nvrtc
def test_the_papers_versions_compile_for_a_gpu() -> None:
    from autotune.compile.nvrtc import Nvrtc

    variants = tuple(Variant(FAMILY, c, (("precision", "float32"),)) for c in (*PAPER, *sample()[::9]))
    built = Nvrtc("sm_90").build(batch(FAMILY, variants))
    assert len(built.symbols) == len({variant.source.key for variant in variants})


def test_the_compiled_reference_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = protein()
    atoms, counts = inputs.arrays["atoms"], (13, 7, 5)
    plain = EXACT.potential(atoms, counts, 0.5)
    called = []
    by_compiler = EXACT._by_compiler
    monkeypatch.setattr(EXACT, "_COMPILED_FROM", 0)
    monkeypatch.setattr(EXACT, "_by_compiler", lambda *given: called.append(given) or by_compiler(*given))
    np.testing.assert_allclose(EXACT.potential(atoms, counts, 0.5), plain, rtol=1e-12, atol=1e-12)
    assert called


def test_a_large_reference_without_a_compiler_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = protein().arrays["atoms"]
    plain = EXACT.potential(atoms, (4, 3, 2), 0.5)

    def absent(*_: Any) -> Any:
        raise CompilerError("no C++ compiler")

    monkeypatch.setattr(EXACT, "_COMPILED_FROM", 0)
    monkeypatch.setattr(EXACT, "_by_compiler", absent)
    np.testing.assert_array_equal(EXACT.potential(atoms, (4, 3, 2), 0.5), plain)
