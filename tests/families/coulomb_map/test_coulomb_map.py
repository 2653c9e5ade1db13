"""The coulomb map family on the cpu device: every kind of configuration against float64, and bounds that hold."""

import ctypes
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, executions, outputs
from hypothesis import given, settings
from hypothesis import strategies as st
from shim_library import AS_A_KERNEL, shim_library

import autotune
from autotune.cli.commands import main
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import AutotuneError, WorkloadError
from autotune.family import family_module
from autotune.files import find_bundled
from autotune.policy.file import read_policy_file
from autotune.policy.selection import Policies, candidates, choose

FAMILY = families.load_family("coulomb_map")
EXACT: Any = family_module("coulomb_map", "exact")
RUN: Any = family_module("coulomb_map", "app.run")
COULOMB: Any = partial(family_module, "coulomb")
ATOM = COULOMB("lattice").ATOM

# Every value of every policy but those that bound loops or registers.
TRIED = (
    "control", "method=direct,cell=8,memory=texture", "method=direct,cell=8,memory=readonly",
    "method=expansions,cell=8,order=8,separation=30", "method=expansions,cell=16,order=10,separation=27,point_blocks=2",
    "method=expansions,cell=12,records=soa,terms=term_major",
)  # fmt: skip
DIRECT = 13.7 * 2**-24  # of the sum of |q| / r: what rounding can do to sums of single atoms
LOOSE = 1e-2  # so much may be off that all expansions are taken


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    options = (("bounds", "points"),)
    return compiled(
        backend, [Variant(FAMILY, FAMILY.space.configuration(text), options) for text in TRIED], 3, "-Og"
    )


def atoms_of(rows: Any) -> np.ndarray:
    return np.array([tuple(row) for row in rows], ATOM)


def bound(atoms: np.ndarray, counts: tuple[int, int, int], spacing: float, accuracy: float = 1e-6) -> Inputs:
    nx, ny, nz = counts
    made = {"atoms": atoms, "nx": nx, "ny": ny, "nz": nz, "spacing": spacing, "accuracy": accuracy}
    return bind(FAMILY, made, {"bounds": "points"}, {})


def sums(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """In float64 at every point: the potential, and the sum of |q| / r."""
    counts = tuple(int(inputs.scalars[name]) for name in ("nx", "ny", "nz"))
    atoms, spacing = inputs.arrays["atoms"], inputs.scalars["spacing"]
    sizes = atoms.copy()
    sizes["q"] = np.abs(atoms["q"])
    exact = COULOMB("exact").potential
    return exact(atoms, counts, spacing), exact(sizes, counts, spacing)


def checked(
    backend: CpuBackend, binaries: Sequence[Binary], inputs: Inputs
) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """Of each configuration the error and the bound of each point as shares of the sum of |q| / r, and the largest
    share of what is asked. No error is above its bound, no bound above what is asked."""
    values, sizes = sums(inputs)
    accuracy = inputs.scalars["accuracy"]
    for execution in executions(backend, binaries, inputs):
        name, made = execution.variant.configuration.id, outputs(execution, inputs)
        error = np.abs(made["potential"] - values)
        assert (error <= made["bound"]).all(), name
        assert (made["bound"] <= accuracy * sizes).all(), name
        (share,) = made["share"].tolist()
        assert (made["bound"] / sizes).max() <= share * accuracy <= accuracy, name
        yield name, error / sizes, made["bound"] / sizes, share


def random_atoms(count: int, low: float, high: float, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows = np.column_stack([generator.uniform(low, high, (count, 3)), generator.uniform(-1, 1, count)])
    return atoms_of(rows)


def test_every_value_of_every_policy_that_chooses_code_is_tried() -> None:
    chosen = [FAMILY.space.configuration(text) for text in TRIED]
    for policy in FAMILY.space.policies:
        if policy.name not in ("order", "separation", "tile", "expand_blocks", "point_blocks"):
            assert {c[policy.name] for c in chosen} == set(policy.values)


def test_the_space_is_one_that_a_sweep_can_try() -> None:
    assert len(FAMILY.space.configurations()) < 150


def test_every_kind_of_configuration_on_a_map_with_atoms_on_points(
    backend: CpuBackend, binaries: list[Binary]
) -> None:
    on_points = atoms_of(
        [(0.5 * i, 0.5 * j, 0.5 * k, 0.5) for i, j, k in ((0, 0, 0), (25, 8, 16), (7, 7, 7))]
    )
    inputs = bound(np.concatenate([random_atoms(700, -4, 20), on_points]), (26, 9, 17), 0.5)
    seen = {name: share for name, _, _, share in checked(backend, binaries, inputs)}
    assert len(seen) == len(TRIED)


def test_expansions_are_bounded_where_they_leave_much_out(
    backend: CpuBackend, binaries: list[Binary]
) -> None:
    """With so much allowed no cube goes back to single atoms, and what expansions leave out is most of the error."""
    inputs = bound(random_atoms(500, -12, 30), (33, 18, 17), 0.5, LOOSE)
    for name, error, bounds, share in checked(backend, binaries, inputs):
        if "order=8" in name:
            assert bounds.max() > 3 * DIRECT, name
            assert error.max() > bounds.max() / 200, name
            assert share > DIRECT / LOOSE


def test_small_separations_are_for_loose_accuracies(backend: CpuBackend) -> None:
    variant = Variant(
        FAMILY,
        FAMILY.space.configuration("method=expansions,cell=8,order=10,separation=16"),
        (("bounds", "points"),),
    )
    atoms = random_atoms(500, -12, 30)
    *strict, loose = (bound(atoms, (33, 18, 17), 0.5, accuracy) for accuracy in (9e-6, 1e-3, LOOSE))
    for inputs in strict:
        reason = variant.explain_exclusion(inputs.names(variant.configuration), backend.device.limits)
        assert "leaves out too much" in str(reason)
    ((_, error, bounds, _),) = checked(backend, compiled(backend, [variant], 1, "-Og"), loose)
    assert bounds.max() > 3 * DIRECT
    assert error.max() > bounds.max() / 1000


def test_a_call_that_asks_for_more_does_not_get_what_was_fast_for_less() -> None:
    """The entry of a loose accuracy has the sizes of such a call, and its cubes would take all atoms one by one."""
    file = read_policy_file(find_bundled("policies") / "coulomb_map" / "nvidia-h200.yaml")
    (entry,) = [e for e in file.entries.values() if e.features["accuracy"] > 1e-3]
    policies = Policies(file.device, file)
    for accuracy, is_taken in ((2e-3, True), (1e-3, False), (1e-6, False)):
        inputs = bound(random_atoms(9, 0, 9), (9, 8, 7), 0.37, accuracy)
        listed = candidates(FAMILY, policies, {**entry.features, "accuracy": accuracy}, {"bounds": "largest"})
        taken, _ = choose(listed, lambda one, at=inputs: FAMILY.space.explain_exclusion(at.names(one)))
        assert (dict(taken.configuration or {}) == dict(entry.configuration)) == is_taken, accuracy


def test_a_cube_whose_bound_is_above_what_is_asked_takes_all_atoms_one_by_one(
    backend: CpuBackend, binaries: list[Binary]
) -> None:
    (low,) = [binary for binary in binaries if "order=8" in binary[0].configuration.id]
    atoms = random_atoms(300, 6, 30)
    (loose,) = checked(backend, [low], bound(atoms, (16, 16, 16), 0.5, LOOSE))
    (strict,) = checked(backend, [low], bound(atoms, (16, 16, 16), 0.5))
    assert loose[2].max() > 3 * DIRECT
    assert strict[2].max() <= DIRECT
    assert strict[3] == pytest.approx(DIRECT / 1e-6, rel=1e-3)


@pytest.mark.parametrize("text", TRIED[3:5])
def test_the_bound_is_no_more_than_an_atom_needs(
    backend: CpuBackend, binaries: list[Binary], text: str
) -> None:
    """An atom on the line from a cube's middle to its corner, where the terms that are left out all have one sign."""
    configuration = FAMILY.space.configuration(text)
    (binary,) = [b for b in binaries if b[0].configuration == configuration]
    corner = np.full(3, (configuration["cell"] - 1) / 2)
    away = corner * (1 + configuration["separation"] / 10 * 1.001)
    inputs = bound(atoms_of([(*away, 1.0)]), (configuration["cell"],) * 3, 1.0, LOOSE)
    ((_, error, bounds, _),) = checked(backend, [binary], inputs)
    assert error[-1, -1, -1] == pytest.approx(bounds[-1, -1, -1], rel=0.02)


TAKE = """
#include "HEADER"
template <int SEPARATION> struct Policy { static constexpr int separation = SEPARATION; };
extern "C" double take(double error, double least, unsigned atoms, double accuracy, double* made) {
  Far far;
  far.take<Policy<24>>(error, least, atoms, accuracy);
  made[0] = far.error, made[1] = far.least, made[2] = far.most, made[3] = far.largest_share(atoms, accuracy);
  return far.is_used;
}
"""


def test_what_a_cube_takes_from_its_expansion_is_bounded(tmp_path: Path) -> None:
    """The largest sum of |q| / r from the least, of atoms 2.4 radii away or more; what the expansion leaves out and
    float64 rounds; and none of it where that, with the result's rounding, is more than what is asked."""
    source = TAKE.replace("HEADER", str(FAMILY.folder / "map.cuh"))
    library = shim_library(source, tmp_path, "-O1", *AS_A_KERNEL)
    library.take.restype = ctypes.c_double
    made = (ctypes.c_double * 4)()
    generator = np.random.default_rng(1)
    seen = set()
    for _ in range(2000):
        least, count = 10 ** generator.uniform(-9, 9), int(10 ** generator.uniform(0, 9))
        accuracy, error = 10 ** generator.uniform(-6, -3), least * 10 ** generator.uniform(-11, -3)
        most = least * (2.4 + 1) / (2.4 - 1)
        rounded = error + (1e-9 + 1e-16 * count) * most
        whole = (rounded + 2**-24 * most) / (accuracy * least)
        is_used = library.take(*map(ctypes.c_double, (error, least)), count, ctypes.c_double(accuracy), made)
        assert is_used == (whole <= 1) or abs(whole - 1) < 1e-4
        seen.add(is_used)
        expected = np.array([rounded, least, most]) if is_used else np.zeros(3)
        assert (np.array(made[:3]) >= expected * (1 - 1e-12)).all()
        assert (np.array(made[:3]) <= expected * 1.0001).all()
        assert made[3] >= whole * is_used
    assert len(seen) == 2


def test_the_preset_always_needs_no_single_atoms() -> None:
    """Where every atom is as near as may be, what its expansion leaves out and the result's rounding are below 1e-6."""
    chosen = FAMILY.space.configuration("always")
    apart = chosen["separation"] / 10
    most = (apart + 1) / (apart - 1)
    assert most * (apart ** -(chosen["order"] + 1) + 2**-24 + 2e-9) < 1e-6


positions = st.floats(-40, 60, width=32)
charges = st.integers(-32, 32).filter(bool).map(lambda n: n / 16)


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.tuples(positions, positions, positions, charges), min_size=1, max_size=9),
    cluster=st.tuples(positions, positions, positions),
    counts=st.tuples(st.integers(1, 19), st.integers(1, 9), st.integers(1, 17)),
    spacing=st.sampled_from([0.01, 0.37, 2.0]),
    accuracy=st.sampled_from([1e-6, 1e-4, LOOSE]),
)
def test_bounds_hold_for_any_atoms(
    backend: CpuBackend,
    binaries: list[Binary],
    rows: Any,
    cluster: Any,
    counts: Any,
    spacing: float,
    accuracy: float,
) -> None:
    """Single atoms, and forty within an angstrom of a place."""
    near = random_atoms(40, -0.5, 0.5)
    for name, at in zip("xyz", cluster, strict=True):
        near[name] += np.float32(at)
    inputs = bound(np.concatenate([atoms_of(rows), near]), counts, spacing, accuracy)
    some = [binary for binary in binaries if "order=8" in binary[0].configuration.id]
    assert list(checked(backend, some, inputs))


@pytest.mark.parametrize(
    ("place", "charge", "spacing"), [(1e18, 1e18, 1.0), (-1e18, 1e-15, 1e16), (1.0, -1e18, 1e15)]
)
def test_bounds_hold_at_the_ends_of_what_is_allowed(
    backend: CpuBackend, binaries: list[Binary], place: float, charge: float, spacing: float
) -> None:
    rows = [(place, 0, place, charge), (place, place, place, -charge), (0, place, 1, charge)]
    assert list(checked(backend, binaries, bound(atoms_of(rows), (17, 9, 13), spacing)))


@pytest.mark.parametrize("row", [(1e20, 0, 0, 1), (0, 0, 0, 1e36), (np.nan, 0, 0, 1), (0, 0, 0, -np.inf)])
def test_atoms_whose_bounds_would_not_hold_are_refused(row: tuple[float, ...]) -> None:
    with pytest.raises(WorkloadError, match=r"atoms: value .* is outside the allowed -1e\+18\.\.1e\+18"):
        bound(atoms_of([row]), (2, 2, 2), 1.0)


@pytest.mark.parametrize("spacing", [1e20, np.nan])
def test_a_lattice_whose_bounds_would_not_hold_is_refused(spacing: float) -> None:
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel = autotune.load("coulomb_map", device="cpu", policies="/nowhere")
    with kernel, pytest.raises(AutotuneError, match="larger distances, in angstrom, are infinite in float32"):
        kernel(atoms=atoms_of([(0, 0, 0, 1)]), nx=2, ny=2, nz=2, spacing=spacing)


def test_levels_end_at_one_cube_and_follow_each_other() -> None:
    levels_of = FAMILY.module.levels_of  # type: ignore[union-attr]
    assert [(level.first, level.cells) for level in levels_of((33, 8, 9), 8)] == [
        (0, 10),
        (10, 3),
        (13, 2),
        (15, 1),
    ]
    for counts in ((1, 1, 1), (585, 585, 585), (5000, 3, 1)):
        for cell in (8, 12, 16):
            room = FAMILY.sizes(
                {"atoms": (1,)}, {"bounds": "largest", **dict(zip(("nx", "ny", "nz"), counts, strict=True))}
            )
            last = levels_of(counts, cell)[-1]
            assert last.first + last.cells <= room["cube"]


def test_a_large_maps_reference_is_of_some_points(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = bound(random_atoms(50, 0, 9), (9, 8, 7), 1.0)
    options = {**inputs.scalars, **inputs.options}
    whole = EXACT.reference(inputs.arrays, options)
    monkeypatch.setattr(EXACT, "_WHOLE", 0)
    monkeypatch.setattr(EXACT, "_POINTS", 40)
    part = EXACT.reference(inputs.arrays, options)
    for name in ("potential", "bound"):
        there = ~np.isnan(part[name])
        assert 20 < there.sum() <= 40
        np.testing.assert_allclose(part[name][there], whole[name][there], rtol=1e-6)
    np.testing.assert_allclose(whole["bound"], 5e-7 * sums(inputs)[1], rtol=1e-6)


def test_no_point_has_less_than_the_least_size() -> None:
    inputs = bound(random_atoms(50, -3, 9), (9, 8, 7), 1.0)
    sizes = sums(inputs)[1]
    least = EXACT.least_size(inputs.arrays["atoms"], np.array([9, 8, 7]), 1.0)
    assert sizes.min() / 3 < least <= sizes.min()


PQR = "".join(
    f"ATOM {n} C ALA 1 {x} {y} {z} {q} 1.5\n"
    for n, (x, y, z, q) in enumerate([(0, 0, 0, 1), (2, 1, 0, -0.5)])
)


class Kernel:
    """What the run time would open."""

    device = "cpu"

    def __call__(self, **given_: Any) -> dict[str, np.ndarray]:
        assert given_["accuracy"] == 1e-5
        assert len(given_["atoms"]) == 2
        shape = tuple(int(given_[name]) for name in ("nz", "ny", "nx"))
        return {"potential": np.ones(shape, np.float32), "share": np.array([0.5], np.float32)}


def test_a_map_of_a_structure(tmp_path: Path) -> None:
    (tmp_path / "x.pqr").write_text(PQR)
    said: list[str] = []
    given_ = {"structure": str(tmp_path / "x.pqr"), "padding": "2", "accuracy": "1e-5"}
    RUN.run(given_, tmp_path / "m.npy", Kernel, said.append)
    assert said[-1] == "error        at most 5e-06 of a point's sum of |q| / r (1e-05 asked)"
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), np.ones((5, 6, 7)))


@pytest.mark.parametrize(
    ("item", "code", "said"),
    [
        ("accuracy=1e-8", 4, "accuracy is 1e-08: from 1e-06, which float32 can keep"),
        ("accuracy=some", 4, "accuracy is 'some': a share"),
        ("precision=float64", 2, "takes no precision: -i accuracy=A"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], item: str, code: int, said: str) -> None:
    words = ["run", "coulomb_map", "-i", "structure=x.pqr", "-i", item, "-o", "m.npy", "--device", "cpu"]
    assert main(words) == code
    assert said in capsys.readouterr().err


@pytest.mark.nvrtc
def test_expansions_compile_for_a_gpu() -> None:
    from autotune.compile.nvrtc import Nvrtc

    variant = Variant(FAMILY, FAMILY.space.configuration(TRIED[3]), (("bounds", "points"),))
    assert Nvrtc("sm_90").build(batch(FAMILY, (variant,))).symbols
