"""The eri family: its configurations on the cpu device, and its reference, against libcint through PySCF."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import compiled, covering
from eri_helpers import FAMILY, inputs, libcint, of_shells, part, results
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compile.variant import Variant
from autotune.declaration.workload import Inputs
from autotune.device.backend import Placed
from autotune.device.cpu.backend import CpuBackend, CpuPlaced
from autotune.device.resident import Resident
from autotune.layout.stored import Stored
from autotune.measure.reference import compute_expected

FASTEST = "granularity=block,order=subclass,pair_table=device,boys=loaded_rational,quotient_memory=constant"


SHARED = FASTEST.replace("order=subclass", "order=place") + ",roots=inverse,split=4"
TILED = FASTEST.replace("block,order=subclass", "tile,order=place") + ",roots=inverse"
COUNTS = (6, 3, 1, 3, 1, 3, 1)  # primitives of the s shells of a water in 6-31G


def largest_difference(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max())


def test_every_pair_of_policy_values_equals_libcint(backend: CpuBackend) -> None:
    molecules = [inputs({"waters": 1, "basis": basis}) for basis in ("6-31g", "sto-3g")]
    expected = [libcint.integrals(libcint.mole(given_.arrays)) for given_ in molecules]
    chosen = covering(FAMILY.space.configurations("full"), 2)
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in chosen} == set(policy.values)
    ran = 0
    for configuration, number, found in results(backend, chosen, molecules, "-O0"):
        assert largest_difference(found["integrals"], expected[number]) < 1e-12, configuration.id
        ran += 1
    assert ran == 2 * len(chosen)


def test_eight_waters_have_the_articles_subclasses_and_libcints_integrals(backend: CpuBackend) -> None:
    water8 = inputs({"waters": 8, "basis": "6-31g"})
    found = part("expansion").subclasses(water8.arrays["pairs"]["count"])
    assert list(found) == [1, 3, 6, 9, 18, 27, 36, 54, 81, 108, 162, 216, 324, 648, 1296]
    assert sum(found.values()) == water8.sizes["integral"] == 1_274_406
    assert sum(each * units for each, units in found.items()) == water8.scalars["components"] == 56_592_492
    ((_, _, outputs),) = results(backend, [FAMILY.space.configuration(FASTEST)], [water8])
    assert largest_difference(outputs["integrals"], libcint.integrals(libcint.mole(water8.arrays))) < 1e-12


class Counting(CpuBackend):
    """Adds up the bytes that are copied to the device."""

    copied = 0

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> CpuPlaced:
        self.copied += 0 if stored.buffer is None else stored.buffer.nbytes
        return super().place(stored, module, guard)

    def upload(self, placed: Placed, stored: Stored) -> None:
        assert stored.buffer is not None
        self.copied += stored.buffer.nbytes
        super().upload(placed, stored)


def test_transfer_bytes_are_what_is_copied_and_the_articles_figures() -> None:
    water1 = inputs({"waters": 1, "basis": "6-31g"})
    shells, primitives, pairs = 7 * 32, 18 * 24, 28 * 24
    products = sum(a * b for n, a in enumerate(COUNTS) for b in COUNTS[: n + 1])
    quartets = (products**2 + sum((a * b) ** 2 for n, a in enumerate(COUNTS) for b in COUNTS[: n + 1])) // 2
    molecule = shells + primitives + pairs
    expected = {
        "scheme-2": molecule + 32 * 406,
        "scheme-3": molecule + 36 * quartets,
        "scheme-4": molecule,
        "scheme-4-pairs": molecule,
        SHARED: molecule + 8 * 20,
        FASTEST: molecule + 8 * 20,
        TILED: molecule + 8 * 20 + 24 * len(water1.arrays["runs"]),
        "granularity=block,order=subclass,pair_table=host,boys=rational": molecule + 48 * products,
    }
    chosen = {text: FAMILY.space.configuration(text) for text in expected}
    found = {}
    with Counting() as backend:
        binaries = compiled(backend, [Variant.make(FAMILY, c, water1.options) for c in chosen.values()])
        for text, (variant, binary) in zip(chosen, binaries, strict=True):
            resident, backend.copied = Resident(backend, water1), 0
            execution = resident.execution(variant, backend.load(binary))
            execution.run()
            found[text] = execution.transfer_bytes
            assert found[text] == backend.copied, text
            execution.run()  # the lists again; what a call is charged with is one of them
            assert execution.transfer_bytes == found[text]
            names = {**water1.sizes, **water1.scalars}
            assert part("transfer").transfer(variant.configuration, names).sent == found[text]
            resident.close()
    assert found == expected


@pytest.mark.parametrize("basis", ["6-31g", "sto-3g", "cc-pvdz"])
def test_the_reference_equals_libcint(basis: str, tmp_path: Path) -> None:
    water2 = inputs({"waters": 2, "basis": basis})
    expected, _ = compute_expected(FAMILY, water2, tmp_path)
    assert largest_difference(expected["integrals"], libcint.integrals(libcint.mole(water2.arrays))) < 1e-12


WAYS = [
    "expansion=components,granularity=component",
    "expansion=work_units,granularity=component,order=subclass",
    "expansion=work_units,granularity=thread,pair_table=device",
    "granularity=component,order=schwarz,screening=schwarz",
    "granularity=thread,pair_table=host,boys=rational",
    f"{FASTEST},block_size=64",
]


def test_coulomb_and_exchange_matrices_equal_pyscfs(backend: CpuBackend) -> None:
    water2 = inputs({"waters": 2, "basis": "6-31g", "output": "coulomb_exchange", "seed": 5})
    coulomb, exchange = libcint.matrices(libcint.mole(water2.arrays), water2.arrays["density"])
    for configuration, _, found in results(backend, [*map(FAMILY.space.configuration, WAYS)], [water2]):
        assert largest_difference(found["coulomb"], coulomb) < 1e-9, configuration.id
        assert largest_difference(found["exchange"], exchange) < 1e-9, configuration.id
    expected = part("reference").reference(water2.arrays, water2.options)
    assert largest_difference(expected["coulomb"], coulomb) < 1e-9
    assert largest_difference(expected["exchange"], exchange) < 1e-9


@pytest.mark.parametrize(("accuracy", "within", "beyond"), [("float32", 1e-5, 1e-9), ("mixed", 1e-9, 1e-14)])
def test_lower_accuracy_is_as_accurate_as_it_says_and_no_more(
    backend: CpuBackend, accuracy: str, within: float, beyond: float
) -> None:
    water2 = inputs({"waters": 2, "basis": "6-31g"}, accuracy=accuracy)
    expected = libcint.integrals(libcint.mole(water2.arrays))
    ways = [*WAYS[3:], SHARED, TILED, "granularity=block,order=subclass,pair_table=host,boys=rational"]
    if accuracy == "float32":
        ways.append(WAYS[0])
    for configuration, _, found in results(backend, [*map(FAMILY.space.configuration, ways)], [water2]):
        assert beyond < largest_difference(found["integrals"], expected) < within, configuration.id


# ---- any shells


def shells(least: int = 1) -> st.SearchStrategy[list[tuple[tuple[float, ...], list[float], list[float]]]]:
    coordinate = st.floats(-6, 6).map(lambda x: round(x, 3))
    exponent = st.floats(-3, 6).map(lambda power: float(f"{10**power:.4g}"))
    coefficient = st.floats(0.05, 1).map(lambda c: round(c, 3))

    def contracted(count: int) -> st.SearchStrategy[tuple[tuple[float, ...], list[float], list[float]]]:
        lists = (st.lists(values, min_size=count, max_size=count) for values in (exponent, coefficient))
        return st.tuples(st.tuples(coordinate, coordinate, coordinate), *lists)

    return st.lists(st.integers(1, 6).flatmap(contracted), min_size=least, max_size=4)


def computed(backend: CpuBackend, given_: Inputs, way: str = FASTEST) -> np.ndarray:
    ((_, _, found),) = results(backend, [FAMILY.space.configuration(way)], [given_])
    return found["integrals"]


def square(integrals: np.ndarray, count: int) -> np.ndarray:
    """(ij|kl) as (i, j, k, l) from the canonical list."""
    number = np.zeros((count, count), int)
    i, j = np.tril_indices(count)
    number[i, j] = number[j, i] = np.arange(len(i))
    high = np.maximum(number[:, :, None, None], number)
    low = np.minimum(number[:, :, None, None], number)
    return integrals[high * (high + 1) // 2 + low]


@settings(max_examples=25, deadline=None)
@given(chosen=shells(), way=st.sampled_from([FASTEST, SHARED, TILED, WAYS[2]]))
def test_any_shells_equal_libcint_and_keep_schwarzs_inequality(
    backend: CpuBackend, chosen: list[tuple[tuple[float, ...], list[float], list[float]]], way: str
) -> None:
    given_ = of_shells(chosen)
    found = computed(backend, given_, way)
    expected = libcint.integrals(libcint.mole(given_.arrays))
    full = square(found, len(chosen))
    bounds = np.sqrt(np.einsum("ijij->ij", full))  # (ij|ij) is not negative
    assert (np.abs(found - expected) <= 1e-12 * max(1.0, float(np.abs(expected).max()))).all()
    assert (np.abs(full) <= bounds[:, :, None, None] * bounds * (1 + 1e-10) + 1e-14).all()
    np.testing.assert_allclose(
        given_.arrays["pairs"]["bound"], bounds[np.tril_indices(len(chosen))], atol=1e-12, rtol=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(chosen=shells(2), seed=st.integers(0, 1000))
def test_integrals_do_not_care_where_molecules_lie_or_how_shells_are_numbered(
    backend: CpuBackend, chosen: list[tuple[tuple[float, ...], list[float], list[float]]], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    moved = [(turn @ centre + generator.normal(), a, c) for centre, a, c in chosen]
    shift = generator.normal(size=3)
    moved = [(turn @ centre + shift, a, c) for centre, a, c in chosen]
    order = generator.permutation(len(chosen))
    here = square(computed(backend, of_shells(chosen)), len(chosen))
    there = square(computed(backend, of_shells([moved[n] for n in order])), len(chosen))
    scale = max(1.0, float(np.abs(here).max()))
    # Tight functions feel the last digit of a turned coordinate: 1e6 bohr^-2 times 1e-15 bohr times 1 bohr.
    np.testing.assert_allclose(there, here[np.ix_(order, order, order, order)], rtol=1e-8, atol=1e-9 * scale)
    for axes in ((1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)):
        np.testing.assert_array_equal(here, here.transpose(axes))


# ---- the edges of section 3.5: T = 0, the end of the table, tight and diffuse, far, equal, one and six primitives


def edge_cases() -> dict[str, list[tuple[tuple[float, float, float], list[float], list[float]]]]:
    six = [5484.67166, 825.234946, 188.046958, 52.9645, 16.8975704, 5.7996353]
    weights = [0.00183107443, 0.0139501722, 0.0684450781, 0.232714336, 0.470192898, 0.358520853]
    place = (0.3, -0.2, 0.1)
    near = [
        ((float(np.sqrt(x)), 0.0, 0.0), [1.0], [1.0])
        for x in (0, 27.9, 27.999999, 28.0, 28.000001, 28.1, 30.9, 31.1)
    ]
    return {
        "all centres equal": [(place, six, weights), (place, [0.5], [1.0]), (place, [0.1], [1.0])],
        "the same shell twice": [(place, six, weights), (place, six, weights)],
        "tight and diffuse": [(place, [1e6], [1.0]), ((0, 0, 1), [1e-3], [1.0]), ((1, 1, 0), [1e6, 1e-3], [0.5, 0.5])],
        "far apart": [((0, 0, 0), [1.3], [1.0]), ((300, 0, 0), six, weights), ((0, 4e5, 0), [0.2], [1.0])],
        "twelve primitives": [(place, [4.0 / 2**n for n in range(12)], [0.2] * 12), ((0, 1, 0), [0.3], [1.0])],
        "one and six primitives": [(place, [0.27], [1.0]), ((1, 0, 0), six, weights)],
        "around the end of the quotient": near,
    }  # fmt: skip


@pytest.mark.parametrize("name", list(edge_cases()))
def test_edges_equal_libcint_and_are_never_nan(name: str, backend: CpuBackend) -> None:
    given_ = of_shells(edge_cases()[name])
    expected = libcint.integrals(libcint.mole(given_.arrays))
    ways = ["granularity=thread", "granularity=thread,boys=rational", FASTEST, SHARED, TILED]
    for configuration, _, found in results(backend, [*map(FAMILY.space.configuration, ways)], [given_]):
        assert np.isfinite(found["integrals"]).all()
        scale = max(1.0, float(np.abs(expected).max()))
        assert largest_difference(found["integrals"], expected) < 1e-12 * scale, configuration.id
    if name == "far apart":  # pairs of functions that do not touch are zero, and functions are still charges
        full = square(found["integrals"], 3)
        assert full[1, 0, 1, 0] == 0
        assert abs(full[0, 0, 1, 1] - 1 / 300) < 1e-9
    if name == "all centres equal":
        assert full_is_positive(square(found["integrals"], 3))


def full_is_positive(full: np.ndarray) -> bool:
    """The integrals as a matrix over pairs have no negative eigenvalue."""
    size = len(full) ** 2
    return bool(np.linalg.eigvalsh(full.reshape(size, size)).min() > -1e-12)


def test_a_call_goes_where_its_arrays_are_now(backend: CpuBackend) -> None:
    water1 = inputs({"waters": 1, "basis": "6-31g"})
    variant = Variant.make(FAMILY, FAMILY.space.configuration(SHARED), water1.options)
    ((_, binary),) = compiled(backend, [variant])
    resident = Resident(backend, water1)
    execution = resident.execution(variant, backend.load(binary))
    execution.run()
    first = execution.restore("integrals", (406,))
    room = variant.layouts["integrals"].room((406,))
    execution.placed["integrals"] = backend.place(room)
    backend.fill(execution.placed["integrals"], 0xA5)
    execution.run()
    np.testing.assert_array_equal(execution.restore("integrals", (406,)), first)
    resident.close()


def test_what_a_call_prepared_goes_with_its_execution(backend: CpuBackend) -> None:
    water1 = inputs({"waters": 1, "basis": "6-31g"})
    listed = FAMILY.space.configuration("expansion=work_units,granularity=component,order=subclass")
    resident = Resident(backend, water1)
    ((variant, binary),) = compiled(backend, [Variant.make(FAMILY, listed, water1.options)])
    execution = resident.execution(variant, backend.load(binary))
    execution.run()
    seen = weakref.ref(execution)
    resident.close()
    del execution, resident
    gc.collect()
    assert seen() is None
