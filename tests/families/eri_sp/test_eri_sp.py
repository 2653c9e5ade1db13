"""The eri_sp family: every class by configurations of all kinds, and its reference, against libcint through PySCF."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import eri_libcint as libcint
import numpy as np
import pytest
from cpu_results import Binary, compiled, outputs
from hypothesis import given, settings
from hypothesis import strategies as st
from screening import check_screened

from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident
from autotune.family import family_module

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

FAMILY = families.load_family("eri_sp")
MODULE: Any = FAMILY.module

# Every value of every policy.
BLOCKS = "order=place,classes=apart,granularity=block,bra_transform=once"
SCREENED = "order=schwarz,screening=schwarz,classes=apart,bra_transform=once"
THREADS = "classes=apart,pair_table=device,parts=3,bra_transform=once"
TRIED = (
    "control",
    "order=class,boys=quotient,pair_table=device,table_records=soa",
    f"{BLOCKS},pair_table=device,parts=3,boys=quotient,block_size=64,split=1,split_heavy=9",
    f"{THREADS},order=subclass,boys=quotient,boys_memory=texture,split=3,split_heavy=3",
    f"{THREADS},order=class,boys=erf,split_heavy=3,block_size=256",
    f"{BLOCKS},boys=quotient,boys_memory=readonly",
    f"{SCREENED},granularity=thread,pair_table=device,boys=quotient,parts=3,split=3,split_heavy=9,block_size=64",
    "order=decade,screening=schwarz,pair_table=device",
)
SCREENED_BLOCKS = (
    f"{SCREENED},granularity=block,pair_table=device,boys=quotient,parts=3,split_heavy=3,block_size=64"
)
MATRICES = (TRIED[2], *TRIED[6:], SCREENED_BLOCKS)
PLACE = (0.3, -0.2, 0.1)


part = partial(family_module, "eri_sp")


def contracted(exponents: Sequence[float], coefficients: Sequence[float], momentum: int) -> Any:
    made = family_module("eri", "basis").contracted(list(exponents), list(coefficients), "test", momentum)
    assert made.momentum == momentum
    return made


def of_shells(chosen: Sequence[tuple[Sequence[float], int, Sequence[float], Sequence[float]]]) -> Inputs:
    """Inputs of (centre in bohr, momentum, exponents, coefficients of normalised primitives)."""
    made = [(centre, contracted(a, c, momentum)) for centre, momentum, a, c in chosen]
    return bind(FAMILY, part("arrays").arrays_of(made), {}, {})


def of_waters(**parameters: Any) -> Inputs:
    options = {"output": parameters["output"]} if "output" in parameters else {}
    return bind(FAMILY, MODULE.inputs(parameters, Path()), options, {})


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> dict[str, list[Binary]]:
    """By output."""
    return {
        output: compiled(
            backend, [Variant.make(FAMILY, FAMILY.space.configuration(t), {"output": output}) for t in texts], 4, "-O0"
        )
        for output, texts in (("integrals", TRIED), ("coulomb_exchange", MATRICES))
    }  # fmt: skip


def found(
    backend: CpuBackend, made: Sequence[Binary], inputs: Inputs
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for variant, binary in made:
        resident = Resident(backend, inputs)
        yield (
            variant.configuration.id,
            outputs(resident.execution(variant, backend.load(binary)), inputs, calls=2),
        )
        resident.close()


def check_integrals(backend: CpuBackend, made: Sequence[Binary], inputs: Inputs) -> None:
    expected = libcint.integrals(libcint.mole(inputs.arrays))
    scale = max(1.0, float(np.abs(expected).max()))
    for name, results in found(backend, made, inputs):
        assert results["integrals"].shape == expected.shape
        assert np.abs(results["integrals"] - expected).max() < 1e-12 * scale, name


def test_every_policy_value_is_tried() -> None:
    chosen = [FAMILY.space.configuration(text) for text in TRIED]
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in chosen} == set(policy.values), policy.name


@pytest.mark.parametrize("basis", ["sto-3g", "6-31g"])
def test_water_equals_libcint(basis: str, backend: CpuBackend, binaries: dict[str, list[Binary]]) -> None:
    water = of_waters(waters=1, basis=basis)
    assert set(part("launches").CLASSES.values()) == {
        name for name, work in part("work").quartets_of_primitives(water.arrays["pairs"]).items() if work
    }
    check_integrals(backend, binaries["integrals"], water)


def test_functions_come_in_pyscfs_order(backend: CpuBackend, binaries: dict[str, list[Binary]]) -> None:
    """A molecule as PySCF itself builds it, with an element of the third row; its own digits of STO-3G are fewer."""
    from pyscf import gto

    places = (("Cl", (0.1, 0.2, -0.4)), ("H", (0.3, -0.6, 2.0)))
    theirs = gto.M(atom=places, basis="sto-3g", unit="Bohr", verbose=0).intor("int2e", aosym="s8")
    eri = partial(family_module, "eri")
    chosen = eri("basis").read("sto-3g", ["Cl", "H"], highest=1)
    placed = [(centre, shell) for element, centre in places for shell in chosen.shells[element]]
    inputs = bind(FAMILY, part("arrays").arrays_of(placed), {}, {})
    ((_, ours),) = found(backend, binaries["integrals"][2:3], inputs)
    np.testing.assert_allclose(ours["integrals"], theirs, rtol=0, atol=2e-5)
    check_integrals(backend, binaries["integrals"][2:3], inputs)


def hydrogen_chloride(x: float) -> Inputs:
    chosen = family_module("eri", "basis").read("6-31g", ["Cl", "H"], highest=1)
    places = (("Cl", (x, 0.25, -0.5)), ("H", (x + 0.375, -0.625, 2.0)))
    placed = [(centre, shell) for element, centre in places for shell in chosen.shells[element]]
    return bind(FAMILY, part("arrays").arrays_of(placed), {}, {})


@pytest.mark.parametrize("away", [3_000.0, 1e8])
def test_a_molecule_far_from_the_origin(
    away: float, backend: CpuBackend, binaries: dict[str, list[Binary]]
) -> None:
    """Its coordinates are there to the last bit, so its integrals are those that it has at the origin."""
    expected = libcint.integrals(libcint.mole(hydrogen_chloride(0).arrays))
    for name, results in found(backend, binaries["integrals"], hydrogen_chloride(away)):
        assert np.abs(results["integrals"] - expected).max() < 1e-13 * expected.max(), name


def test_what_is_zero_by_symmetry_is_zero(backend: CpuBackend, binaries: dict[str, list[Binary]]) -> None:
    """All shells but the first on one centre: an integral with an odd power of x, y or z among them."""
    contraction = ([2931.7, 411.3, 87.1], [-1.3, 0.7, 0.9])
    rows = [((0.0, 0.0, 0.0), 0, [1.0], [1.0]), *((PLACE, n % 2, *contraction) for n in range(4))]
    axes = [-1, -1, 0, 1, 2, -1, 0, 1, 2]  # of the functions; -1 is s, of which the very first is elsewhere
    pairs = [(i, j) for i in range(len(axes)) for j in range(i + 1)]
    odd = [
        min(*bra, *ket) > 0 and any([axes[f] for f in (*bra, *ket)].count(axis) % 2 for axis in range(3))
        for n, bra in enumerate(pairs)
        for ket in pairs[: n + 1]
    ]
    for name, results in found(backend, binaries["integrals"], of_shells(rows)):
        assert sum(odd) > 100
        assert not results["integrals"][odd].any(), name


def test_matrices_equal_pyscfs(backend: CpuBackend, binaries: dict[str, list[Binary]]) -> None:
    water = of_waters(waters=1, basis="6-31g", output="coulomb_exchange", seed=5)
    coulomb, exchange = libcint.matrices(libcint.mole(water.arrays), water.arrays["density"])
    for name, results in found(backend, binaries["coulomb_exchange"], water):
        assert np.abs(results["coulomb"] - coulomb).max() < 1e-9, name
        assert np.abs(results["exchange"] - exchange).max() < 1e-9, name
        assert results["integrals"].tolist() == [0]


# ---- screening


def of_functions(inputs: Inputs) -> Any:
    """Bounds (function, function)."""
    shells, pairs = inputs.arrays["shells"], inputs.arrays["pairs"]
    bounds = np.zeros((len(shells), len(shells)))
    bounds[pairs["i"], pairs["j"]] = bounds[pairs["j"], pairs["i"]] = pairs["bound"]
    owner = np.repeat(np.arange(len(shells)), 2 * shells["momentum"].astype(int) + 1)
    return bounds[np.ix_(owner, owner)]


def check_bounds(inputs: Inputs) -> None:
    full = libcint.mole(inputs.arrays).intor("int2e_sph")
    own, bounds = np.sqrt(np.einsum("ijij->ij", full).clip(0)), of_functions(inputs)
    assert (own <= bounds * (1 + 1e-6) + 1e-12).all()
    pairs, shells = inputs.arrays["pairs"], inputs.arrays["shells"]
    for pair in pairs:
        i, j = (
            slice(s["function"], s["function"] + 2 * s["momentum"] + 1)
            for s in shells[[pair["i"], pair["j"]]]
        )
        assert pair["bound"] == pytest.approx(own[i, j].max(), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("number", range(6, len(TRIED)))
def test_a_list_without_what_is_below_the_threshold(
    number: int, backend: CpuBackend, binaries: dict[str, list[Binary]]
) -> None:
    """At a threshold of 1e-3, where it shows: an integral is right to the last digits, or 0 and below its bound."""
    water = of_waters(waters=2, basis="sto-3g")
    water = replace(water, scalars={**water.scalars, "threshold": 1e-3})
    molecule, bounds = libcint.mole(water.arrays), of_functions(water)
    ((_, results),) = found(backend, binaries["integrals"][number : number + 1], water)
    i, j = np.tril_indices(len(bounds))
    bra, ket = np.tril_indices(len(i))
    is_kept = bounds[i, j][bra] * bounds[i, j][ket] >= 1e-3
    assert 0.1 < is_kept.mean() < 0.9
    assert np.abs(results["integrals"] - libcint.integrals(molecule))[is_kept].max() < 1e-12
    assert not results["integrals"][~is_kept].any()


@pytest.mark.parametrize("number", range(1, len(MATRICES)))
def test_screening_leaves_out_no_more_than_schwarzs_inequality_says(
    number: int, backend: CpuBackend, binaries: dict[str, list[Binary]]
) -> None:
    """Here at a threshold of 1e-3, where it shows."""
    water = of_waters(waters=2, basis="sto-3g", output="coulomb_exchange", seed=1)
    water = replace(water, scalars={**water.scalars, "threshold": 1e-3})
    ((_, results),) = found(backend, binaries["coulomb_exchange"][number : number + 1], water)
    check_screened(water.arrays, of_functions(water), results, 1e-3)


@pytest.mark.parametrize(("output", "basis"), [("integrals", "6-31g"), ("coulomb_exchange", "sto-3g")])
def test_the_reference_equals_libcint(output: str, basis: str) -> None:
    water = of_waters(waters=1, basis=basis, output=output, seed=3)
    made = MODULE.reference(water.arrays, {"output": output})
    molecule = libcint.mole(water.arrays)
    if output == "integrals":
        assert np.abs(made["integrals"] - libcint.integrals(molecule)).max() < 1e-12
    else:
        coulomb, exchange = libcint.matrices(molecule, water.arrays["density"])
        assert np.abs(made["coulomb"] - coulomb).max() < 1e-10
        assert np.abs(made["exchange"] - exchange).max() < 1e-10


# ---- any shells


def shells() -> st.SearchStrategy[list[Any]]:
    coordinate = st.floats(-6, 6).map(lambda x: round(x, 3))
    exponent = st.floats(-3, 6).map(lambda power: float(f"{10**power:.4g}"))
    coefficient = st.floats(0.05, 1).map(lambda c: round(c, 3))

    def of_primitives(count: int) -> st.SearchStrategy[Any]:
        lists = (st.lists(values, min_size=count, max_size=count) for values in (exponent, coefficient))
        return st.tuples(st.tuples(coordinate, coordinate, coordinate), st.integers(0, 1), *lists)

    return st.lists(st.integers(1, 3).flatmap(of_primitives), min_size=1, max_size=4)


@pytest.fixture
def with_libcint() -> None:
    """Leave a property test out before it begins: what it raises later is printed with all of its arguments."""
    import pyscf  # noqa: F401 - of the group heavy


@pytest.mark.usefixtures("with_libcint")
@settings(max_examples=20, deadline=None)
@given(chosen=shells(), way=st.integers(0, len(TRIED) - 1))
def test_any_shells_equal_libcint_and_have_their_bounds(
    backend: CpuBackend, binaries: dict[str, list[Binary]], chosen: list[Any], way: int
) -> None:
    inputs = of_shells(chosen)
    check_integrals(backend, binaries["integrals"][way : way + 1], inputs)
    check_bounds(inputs)


SIX = [5484.67166, 825.234946, 188.046958, 52.9645, 16.8975704, 5.7996353]
WEIGHTS = [0.00183107443, 0.0139501722, 0.0684450781, 0.232714336, 0.470192898, 0.358520853]
EDGES = {
    "one p shell": [(PLACE, 1, [0.8], [1.0])],
    "all centres equal": [(PLACE, 1, SIX, WEIGHTS), (PLACE, 0, [0.5], [1.0]), (PLACE, 1, [0.1], [1.0])],
    "the same shell twice": [(PLACE, 1, SIX, WEIGHTS), (PLACE, 1, SIX, WEIGHTS)],
    "tight and diffuse": [(PLACE, 1, [1e6], [1.0]), ((0, 0, 1), 0, [1e-3], [1.0]), ((1, 1, 0), 1, [1e-3, 1e6], [1, 1])],
    "far apart": [((0, 0, 0), 1, [1.3], [1.0]), ((300, 0, 0), 1, SIX, WEIGHTS), ((0, 4e5, 0), 1, [0.2], [1.0])],
    # T = x^2 is about the ends of the series and of the table, and at the end of a row.
    "around the ends of the table": [
        ((float(np.sqrt(x)), 0.0, 0.0), n % 2, [1.0], [1.0])
        for n, x in enumerate((0, 0, 4.999999, 5.0, 5.000001, 12.25, 39.9, 39.999999, 40.0, 40.000001))
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", list(EDGES))
def test_edges_equal_libcint(name: str, backend: CpuBackend, binaries: dict[str, list[Binary]]) -> None:
    check_integrals(backend, binaries["integrals"], of_shells(EDGES[name]))


@pytest.mark.parametrize("order", range(5))
def test_the_table_holds_the_boys_functions_to_their_last_digits(order: int) -> None:
    """Against the incomplete gamma function, Fn(T) = gamma(n + 1/2, T) / (2 T^(n + 1/2))."""
    from scipy.special import gamma, gammainc

    t = np.linspace(0.01, 39.99, 700)
    row = (4 * t).astype(int)
    rows = part("boys").table()[order][row]
    d = t - (row + 0.5) / 4
    found = sum(rows[f"c{power}"] * d**power for power in range(8))
    expected = gammainc(order + 0.5, t) * gamma(order + 0.5) / (2 * t ** (order + 0.5))
    np.testing.assert_allclose(found, expected, rtol=3e-14)


# ---- the command


class Kernel:
    """What the command opens, of binaries that are there."""

    device = "here"

    def __init__(self, backend: CpuBackend, made: Sequence[Binary]) -> None:
        self.backend, self.made = backend, made

    def bind(self, **given: Any) -> Inputs:
        options = {"output": given.pop("output")}
        return bind(FAMILY, given, options, {})

    def run(self, inputs: Inputs) -> Mapping[str, Any]:
        ((_, results),) = found(self.backend, self.made, inputs)
        return results

    def explain(self, _inputs: Inputs) -> Any:
        return SimpleNamespace(configuration=self.made[0][0].configuration, match="nearest"), None


@pytest.fixture
def water(tmp_path: Path) -> Path:
    path = tmp_path / "water.xyz"
    path.write_text("3\nwater\nO 0 0 0\nH 0.7569 0.0 0.5859\nH -0.7569 0.0 0.5859\n")
    return path


def test_a_molecule_with_p_shells(
    water: Path, tmp_path: Path, backend: CpuBackend, binaries: dict[str, list[Binary]]
) -> None:
    opened, told = [], []

    def open_kernel(name: str = "") -> Kernel:
        opened.append(name)
        return Kernel(backend, binaries["integrals"][2:3])

    given_ = {"geometry": str(water), "basis": "sto-3g", "shells": "all"}
    family_module("eri", "app.run").run(given_, tmp_path / "out.npz", open_kernel, told.append)
    assert opened == ["eri_sp"]
    assert told[0] == "shells       4 s and 1 p shells of 3 atoms in sto-3g"
    assert told[1] == "work         120 quartets of shells, 406 integrals"
    assert told[2].startswith("eri_sp on here: ")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        assert written["shell_momenta"].tolist() == [0, 0, 1, 0, 0]
        assert written["shell_atoms"].tolist() == [0, 0, 0, 1, 2]
        eri = partial(family_module, "eri")
        molecule = eri("molecules").read_xyz(water)
        basis = eri("basis").read("sto-3g", molecule.elements, highest=1)
        arrays = part("arrays").arrays_of(eri("shells").placed_shells(molecule, basis, "sp"))
        expected = libcint.integrals(libcint.mole(arrays))
        assert np.abs(written["integrals"] - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("given_", "code", "message"),
    [
        (["basis=sto-3g", "shells=sp", "accuracy=mixed"], 2, "with p shells there is float64 alone"),
        (["basis=sto-3g", "shells=p"], 2, "unknown shells 'p'"),
    ],
)
def test_a_bad_command_line_is_refused(
    given_: list[str], code: int, message: str, water: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for one in (f"geometry={water}", *given_) for word in ("-i", one)]
    assert main(["run", "eri", *words, "-o", str(water.with_suffix(".npz")), "--device", "cpu"]) == code
    assert message in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"waters": 1, "basis": "cc-pvdz"}, "O: 1 d"),
        ({"waters": 1, "basis": "sto-3g", "shells": "sp"}, "unknown parameter 'shells'"),
        ({"waters": 1, "basis": "sto-3g", "output": "fock"}, "unknown output 'fock'"),
        ({"basis": "sto-3g"}, "give basis, and either geometry"),
        ({"waters": 70, "basis": "sto-3g"}, "at most 4,294,967,295 can be listed"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    from autotune.errors import AutotuneError

    with pytest.raises(AutotuneError, match=message):
        MODULE.inputs(parameters, Path())


def test_a_density_must_be_symmetric_and_of_the_functions() -> None:
    from autotune.errors import WorkloadError

    placed = [((0.0, 0.0, 0.0), contracted([1.0], [1.0], 1))]
    for density, message in (
        (np.eye(1), r"\(1, 1\); the 3 functions need \(3, 3\)"),
        (np.triu(np.ones((3, 3))), "symmetric"),
    ):
        with pytest.raises(WorkloadError, match=message):
            part("arrays").arrays_of(placed, density)
