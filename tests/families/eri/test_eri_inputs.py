"""What the eri family takes: geometries, basis sets, parameters; and `autotune run eri`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eri_helpers import inputs, libcint, of_shells, part

from autotune.cli.commands import main
from autotune.errors import AutotuneError, UnknownName, WorkloadError

WATER = "3\nwater\nO 0 0 0\nh 0.7569 0.0 0.5859\nH\t-0.7569 0.0 0.5859\n"


def xyz(tmp_path: Path, text: str = WATER) -> Path:
    path = tmp_path / "molecule.xyz"
    path.write_text(text)
    return path


def test_the_same_water_from_a_file_and_from_the_grid(tmp_path: Path) -> None:
    read = part("molecules").read_xyz(xyz(tmp_path))
    made = part("molecules").water_cluster(1)
    assert read.elements == made.elements == ("O", "H", "H")
    np.testing.assert_allclose(read.positions, made.positions, atol=2e-4)  # bohr; the file has four digits


def test_a_cluster_is_a_grid_of_equal_waters() -> None:
    cluster = part("molecules").water_cluster(27)
    waters = cluster.positions.reshape(27, 3, 3) * part("molecules").BOHR
    np.testing.assert_allclose(np.linalg.norm(waters[:, 1:] - waters[:, :1], axis=2), 0.9572, atol=1e-12)
    distances = np.linalg.norm(waters[:, None, 0] - waters[None, :, 0], axis=2)
    assert np.sort(distances[distances > 0])[0] == pytest.approx(3.1)
    assert distances.max() == pytest.approx(3.1 * 2 * 3**0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with its number of atoms"),
        ("two\n\nH 0 0 0\nH 0 0 1\n", "line 1: 'two'"),
        ("0\n\n", "line 1: '0'"),
        ("3\n\nH 0 0 0\nH 0 0 1\n", "says 3 atoms, and 2 lines"),
        ("1\n\nH 0 0 0\nH 0 0 1\n", "says 1 atoms, and 2 lines"),
        ("1\n\nH 0 0\n", "line 3: 'H 0 0'"),
        ("1\n\nH 0 0 x\n", "line 3: 'H 0 0 x'"),
        ("1\n\nH 0 0 nan\n", "must be numbers"),
        ("1\n\nH 0 0 1e9\n", "within 1e6 angstrom"),
        ("2\n\nH 0 0 0\nHx 0 0 0\n", "unknown element 'Hx' in .*line 4"),
        ("1\n\nUuo 0 0 0\n", "unknown element 'Uuo'"),
    ],
)
def test_a_bad_geometry_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(AutotuneError, match=message):
        part("molecules").read_xyz(xyz(tmp_path, text))


def shell(momenta: list[int], exponents: list[str], *coefficients: list[str]) -> dict[str, Any]:
    return {"angular_momentum": momenta, "exponents": exponents, "coefficients": list(coefficients)}


def basis_file(tmp_path: Path, *shells: dict[str, Any]) -> str:
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"elements": {"1": {"electron_shells": list(shells)}}}))
    return str(path)


@pytest.mark.parametrize(
    ("shells", "message"),
    [
        ([shell([0], ["1.0", "-0.5"], ["1", "1"])], "exponent -0.5; an exponent is a number above 0"),
        ([shell([0], ["0"], ["1"])], "exponent 0;"),
        ([shell([0], ["inf"], ["1"])], "exponent inf"),
        ([shell([0], ["1.0"], ["nan"])], "they must be numbers"),
        ([shell([0], ["1.0", "2.0"], ["1"])], "2 exponents and 1 coefficients"),
        ([shell([0], [], [])], "at least one"),
        ([shell([0], ["1.0"], ["0"])], "a function that is zero"),
        ([shell([0], ["1.0", "1.0"], ["1", "-1"])], "a function that is zero"),
        ([shell([0], ["one"], ["1"])], "could not convert"),
        ([{"exponents": ["1"]}], "KeyError"),
        ([], "no shells for H"),
        ([shell([1], ["1.0"], ["1"])], "no s shell at all"),
    ],
)
def test_a_bad_basis_is_refused(shells: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    geometry = xyz(tmp_path, "1\n\nH 0 0 0\n")
    with pytest.raises(WorkloadError, match=message):
        inputs({"geometry": str(geometry), "basis": basis_file(tmp_path, *shells)})


def test_a_file_that_is_no_basis_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"elements": {}}', '{"elements": 3}'):
        (tmp_path / "own.json").write_text(text)
        with pytest.raises(WorkloadError, match=r"basis file .*own\.json"):
            part("basis").read(str(tmp_path / "own.json"), ["H"])


def test_shells_of_other_momenta_are_refused_by_name_or_left_out() -> None:
    read = part("basis").read
    water = part("molecules").water_cluster(1)
    placed = part("shells").placed_shells
    assert len(placed(water, read("cc-pVDZ", water.elements), "s")) == 3 + 2 + 2
    with pytest.raises(WorkloadError, match=r"O: 2 p, 1 d; H: 1 p.*shells=s"):
        placed(water, read("cc-pVDZ", water.elements), "all")
    with pytest.raises(WorkloadError, match=r"supported: O: 1 d\. Take shells=s or shells=sp"):
        placed(water, read("cc-pVDZ", water.elements, highest=1), "all")
    with_p = placed(water, read("cc-pVDZ", water.elements, highest=1), "sp")
    assert [shell.momentum for _, shell in with_p] == [0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1]
    with pytest.raises(UnknownName, match=r"allowed: s, sp, all"):
        placed(water, read("cc-pVDZ", water.elements), "spd")
    hydrogen = part("molecules").Molecule(("H",), np.zeros((1, 3)))
    assert len(placed(hydrogen, read("6-31g", ["H"]), "all")) == 2


def test_basis_sets_that_ship_are_the_exchanges_own() -> None:
    import basis_set_exchange as exchange

    for name in part("basis").SHIPPED:
        theirs = exchange.get_basis(name)["elements"]
        for element in ("H", "C", "N", "O", "Ar"):
            number = str(part("basis").SYMBOLS.index(element) + 1)
            ours = json.loads((Path(part("basis").__file__).parent / "basis" / f"{name}.json").read_text())
            assert ours["elements"][number]["electron_shells"] == theirs[number]["electron_shells"]


def test_a_name_beyond_those_is_read_from_the_exchange() -> None:
    import basis_set_exchange  # noqa: F401 - of the group heavy

    assert part("basis").read("6-311G", ["H"]).shells["H"]
    with pytest.raises(WorkloadError, match=r"unknown basis '6-31gg'; did you mean|unknown basis '6-31gg'"):
        part("basis").read("6-31gg", ["H"])


def test_without_the_exchange_a_name_beyond_those_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "basis_set_exchange", None)
    with pytest.raises(UnknownName, match="once basis_set_exchange is installed"):
        part("basis").read("6-311G", ["H"])


def test_an_element_that_a_basis_lacks_is_named() -> None:
    with pytest.raises(WorkloadError, match="basis 6-31g has no shells for Kr"):
        part("basis").read("6-31g", ["H", "Kr"])


def test_functions_are_normalised_and_zero_coefficients_dropped() -> None:
    made = of_shells([((0, 0, 0), [13.0, 1.9, 0.4], [0.2, 0.0, 0.9])])
    assert made.sizes["primitive"] == 2
    overlap = libcint.mole(made.arrays).intor("int1e_ovlp")
    np.testing.assert_allclose(overlap, 1, atol=1e-14)
    p = made.arrays["primitives"]
    norm = sum(
        a["coefficient"] * b["coefficient"] * (np.pi / (a["exponent"] + b["exponent"])) ** 1.5
        for a in p
        for b in p
    )
    assert norm == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"waters": 2}, "give basis"),
        ({"basis": "6-31g"}, "give basis, and either geometry"),
        ({"basis": "6-31g", "waters": 2, "geometry": "x.xyz"}, "either geometry"),
        ({"basis": "6-31g", "waters": 0}, "whole number from 1 to 4096, found 0"),
        ({"basis": "6-31g", "waters": 2.5}, "found 2.5"),
        ({"basis": "6-31g", "waters": True}, "found True"),
        ({"basis": "6-31g", "water": 2}, "did you mean 'waters'"),
        ({"basis": "6-31g", "waters": 2, "output": "fock"}, "unknown output 'fock'"),
        ({"basis": "6-31g", "waters": 2, "shells": "d"}, "unknown shells 'd'"),
        ({"basis": "6-31g", "waters": 2, "shells": "sp"}, "sp is family eri_sp's"),
        ({"basis": "6-31g", "geometry": "nowhere.xyz"}, "'nowhere.xyz' does not exist"),
        ({"basis": "6-31g", "waters": 64}, "5,057,816,176 integrals; at most 4,294,967,295"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(AutotuneError, match=message):
        inputs(parameters)


def test_what_is_too_much_to_list_can_be_digested() -> None:
    made = inputs({"basis": "6-31g", "waters": 64, "output": "coulomb_exchange"})
    assert made.scalars["work_units"] == 5_057_816_176
    assert made.sizes["integral"] == 1
    assert made.sizes["matrix"] == 448


def test_a_density_must_be_symmetric_and_of_the_shells() -> None:
    arrays, contracted = part("arrays"), part("basis").contracted([1.0], [1.0], "x")
    placed = [((0.0, 0.0, float(n)), contracted) for n in range(2)]
    for density, message in (
        (np.eye(3), r"\(3, 3\); the 2 shells need \(2, 2\)"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), "symmetric"),
        (np.full((2, 2), np.nan), "finite"),
    ):
        with pytest.raises(WorkloadError, match=message):
            arrays.arrays_of(placed, density)
    with pytest.raises(WorkloadError, match="nothing to integrate"):
        arrays.arrays_of([])


# ---- the command


Run = Callable[..., int]


pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*given: str, output: str = "out.npz") -> int:
        arguments = [word for one in given for word in ("-i", one)]
        return main(["run", "eri", *arguments, "-o", str(tmp_path / output), "--device", "cpu"])

    return command


def test_a_molecule_in_integrals_out(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"geometry={xyz(tmp_path)}", "basis=6-31g") == 0
    told = capsys.readouterr().out
    assert "O: 2 p" in told
    assert "406 work-units, 20,487 components" in told
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        expected = libcint.integrals(
            libcint.mole(inputs({"geometry": str(xyz(tmp_path)), "basis": "6-31g"}).arrays)
        )
        assert np.abs(written["integrals"] - expected).max() < 1e-12
        assert written["shell_atoms"].tolist() == [0, 0, 0, 1, 1, 2, 2]
        assert written["elements"].tolist() == ["O", "H", "H"]
        assert written["left_out"].tolist() == ["O: 2 p"]
        assert str(written["basis"]) == "6-31g"


def test_a_density_in_matrices_out(run: Run, tmp_path: Path) -> None:
    density = np.arange(49.0).reshape(7, 7)
    density += density.T
    np.save(tmp_path / "d.npy", density)
    assert run(f"geometry={xyz(tmp_path)}", "basis=6-31g", f"density={tmp_path / 'd.npy'}") == 0
    molecule = libcint.mole(inputs({"geometry": str(xyz(tmp_path)), "basis": "6-31g"}).arrays)
    coulomb, exchange = libcint.matrices(molecule, density)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as written:
        np.testing.assert_allclose(written["coulomb"], coulomb, atol=1e-9)
        np.testing.assert_allclose(written["exchange"], exchange, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["basis=6-31g"], 2, "-i geometry=FILE.xyz is needed"),
        (["geometry={xyz}"], 2, "-i basis=6-31g|cc-pvdz|sto-3g"),
        (["geometry={xyz}", "basis=6-31g", "densty=x"], 2, "did you mean 'density'"),
        (["geometry={xyz}", "basis=6-31g", "output=integrals", "density=x.npy"], 2, "integrals need none"),
        (["geometry={xyz}", "basis=6-31g", "output=fock"], 2, "unknown output 'fock'"),
        (["geometry={xyz}", "basis=cc-pvdz", "shells=all"], 4, "O: 1 d. Take shells=s or shells=sp"),
        (["geometry=nowhere.xyz", "basis=6-31g"], 4, "geometry nowhere.xyz cannot be read"),
        (["geometry={xyz}", "basis=6-31g", "density=nowhere.npy"], 4, "nowhere.npy"),
    ],
)
def test_a_bad_command_line_is_refused(
    run: Run, given: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(xyz(tmp_path))
    assert run(*(word.replace("{xyz}", place) for word in given)) == code
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out.npz").exists()


def test_where_a_molecule_is_does_not_matter() -> None:
    shells = [((0.25, -0.5, 1.0), [0.3, 40.0], [0.5, 0.5]), ((1.5, 0.125, -2.0), [1.1], [1.0])]
    away = [((x + 3000, y - 5e5, z + 1e8), *rest) for (x, y, z), *rest in shells]
    here, there = of_shells(shells).arrays, of_shells(away).arrays
    for name in ("shells", "pairs", "host_table"):
        assert here[name].tobytes() == there[name].tobytes()
