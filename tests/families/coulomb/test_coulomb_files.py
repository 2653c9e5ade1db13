"""Structures from files, the lattice around them, and `autotune run coulomb`."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.cli.commands import main
from autotune.declaration import family as families
from autotune.declaration.workload import find_data
from autotune.errors import UnknownName, WorkloadError

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

FAMILY = families.load_family("coulomb")
assert FAMILY.module is not None
STRUCTURES: Any = import_module(f"{FAMILY.module.__name__}.structures")
LATTICE: Any = import_module(f"{FAMILY.module.__name__}.lattice")
INPUTS: Any = import_module(f"{FAMILY.module.__name__}.inputs")

PQR = """REMARK  two atoms and one more
ATOM      1  N   MET     1      -6.406   5.469  -3.259 -0.30 1.85
HETATM    2 CA    CAL A  12   1.5 2.5 3.5 2.0 1.0
TER
ATOM 3 C A 1 2.0 0.0 0.25 -0.5 1.7
END
"""
PDB = (
    "ATOM      1  N   MET A   1      -6.406   5.469  -3.259  0.50 -0.30           N\n"
    "ENDMDL\n"
    "ATOM      1  N   MET A   1       1.000   1.000   1.000  0.50 -0.30           N\n"
)


def file(tmp_path: Path, text: str, name: str = "x.pqr") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def structure(positions: Any, charges: Any) -> Any:
    return STRUCTURES.Structure(np.array(positions, float).reshape(-1, 3), np.array(charges, float))


# ---- structures


def test_a_pqr_file(tmp_path: Path) -> None:
    read = STRUCTURES.read_structure(file(tmp_path, PQR))
    np.testing.assert_array_equal(
        read.positions, [[-6.406, 5.469, -3.259], [1.5, 2.5, 3.5], [2.0, 0.0, 0.25]]
    )
    np.testing.assert_array_equal(read.charges, [-0.3, 2.0, -0.5])


@pytest.mark.parametrize(("column", "charge"), [("beta", -0.3), ("occupancy", 0.5)])
def test_a_pdb_file_of_which_the_first_model_counts(tmp_path: Path, column: str, charge: float) -> None:
    read = STRUCTURES.read_structure(file(tmp_path, PDB, "x.pdb"), column)
    np.testing.assert_array_equal(read.positions, [[-6.406, 5.469, -3.259]])
    np.testing.assert_array_equal(read.charges, [charge])


def test_the_shipped_structure_has_its_known_net_charge() -> None:
    read = STRUCTURES.read_structure(find_data("1a63.pqr", Path()))
    assert len(read.charges) == 2065
    assert read.charges.sum() == pytest.approx(-1.0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.decimals(-999, 999, places=3)] * 4), min_size=1, max_size=8),
    st.booleans(),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], chain: bool
) -> None:
    name = "A 1" if chain else "1"
    text = "".join(f"ATOM {n} C GLY {name} {x} {y} {z} {q} 1.5\n" for n, (x, y, z, q) in enumerate(rows))
    read = STRUCTURES.read_structure(file(tmp_path_factory.mktemp("pqr"), text))
    table = np.array([[float(figure) for figure in row] for row in rows])
    np.testing.assert_array_equal(read.positions, table[:, :3])
    np.testing.assert_array_equal(read.charges, table[:, 3])


@pytest.mark.parametrize(
    "line",
    [
        "ATOM 1 N MET 1 1.0 2.0 3.0 0.5",  # no radius
        "ATOM 1 N MET A 1 1.0 2.0 3.0 0.5",  # nor here
        "ATOM 1 N MET 1 1.0 2.0-103.0 0.5 1.5 1.0x",  # run together
        "ATOM 1 N MET A 1 1.0 nan 3.0 0.5 1.5",
        "ATOM 1 N MET A 1 1.0 2.0 3.0 inf 1.5",
        "ATOM 1 N MET A 1 1.0 2.0 three 0.5 1.5",
        "ATOM",
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    path = file(tmp_path, f"REMARK\n{PQR}{line}\n")
    with pytest.raises(WorkloadError, match=r"x\.pqr, line 8: .*is no atom") as refused:
        STRUCTURES.read_structure(path)
    assert refused.value.exit_code == 4


def test_files_that_hold_no_atoms(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="holds no atoms"):
        STRUCTURES.read_structure(file(tmp_path, "REMARK nothing\nEND\n"))
    with pytest.raises(WorkloadError, match="cannot be read: No such file"):
        STRUCTURES.read_structure(tmp_path / "none.pqr")
    (tmp_path / "raw.pqr").write_bytes(b"ATOM \xff\xfe")
    with pytest.raises(WorkloadError, match="no text in ASCII"):
        STRUCTURES.read_structure(tmp_path / "raw.pqr")
    with pytest.raises(UnknownName, match="did you mean 'occupancy'"):
        STRUCTURES.read_structure(file(tmp_path, PDB, "x.pdb"), "ocupancy")
    with pytest.raises(WorkloadError, match="columns 31 to 54"):
        STRUCTURES.read_structure(file(tmp_path, PQR, "y.pdb"))


def test_replicas_do_not_overlap() -> None:
    one = structure([[0, 0, 0], [2, 1, 1]], [1, -2])
    many = STRUCTURES.replicated(one, (2, 1, 3), 4.0)
    assert many.charges.tolist() == [1, -2] * 6
    assert len(np.unique(many.positions, axis=0)) == 12
    np.testing.assert_array_equal(np.ptp(many.positions, axis=0), [8, 1, 11])


# ---- lattice


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(-100, 100)] * 3), min_size=1, max_size=6),
    st.floats(0.05, 40),
    st.floats(0, 30),
)
def test_the_lattice_holds_every_atom_with_its_padding(
    positions: list[tuple[float, float, float]], spacing: float, padding: float
) -> None:
    some = structure(positions, np.ones(len(positions)))
    size = np.ptp(some.positions, axis=0) + 2 * padding
    if np.prod(size / spacing + 2) > 1e8:
        return
    lattice = LATTICE.around(some, spacing, padding)
    low = np.array(lattice.origin)
    high = low + lattice.spacing * (np.array(lattice.counts) - 1)
    slack = 1e-5 * np.array(lattice.counts) * spacing  # the spacing is rounded to float32
    assert (some.positions - low >= padding - 1e-9).all()
    assert (high + slack - some.positions >= padding).all()
    assert (high - low <= size + lattice.spacing + slack).all()


@pytest.mark.parametrize(
    ("spacing", "padding", "said"),
    [
        (0, 1, "spacing is 0"),
        (-0.5, 1, "spacing is -0.5"),
        ("nan", 1, "spacing is nan"),
        ("wide", 1, "spacing is 'wide': a number"),
        (1, -2, "padding is -2"),
        (1, "inf", "padding is inf"),
        (0.01, 50, "fewer than 2,147,483,648 are possible"),
    ],
)
def test_figures_that_make_no_lattice(spacing: Any, padding: Any, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        LATTICE.around(structure([[0, 0, 0], [10, 10, 10]], [1, 1]), spacing, padding)


def test_a_lattice_larger_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LATTICE.os, "sysconf", lambda name: 1000)
    with pytest.raises(WorkloadError, match="takes 4,370,908 bytes, and this machine has 1,000,000"):
        LATTICE.around(structure([[0, 0, 0]], [1]), 1, 51)


@pytest.mark.parametrize("bad", [[[np.nan, 0, 0]], [[0, np.inf, 0]]])
def test_coordinates_that_are_no_numbers(bad: Any) -> None:
    lattice = LATTICE.Lattice((0.0, 0.0, 0.0), (2, 2, 2), 1.0)
    with pytest.raises(WorkloadError, match="not finite"):
        lattice.atoms(structure(bad, [1]))
    with pytest.raises(WorkloadError, match="is 200000 angstrom from"):
        lattice.atoms(structure([[2e5, 0, 0]], [1]))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"cloud": 5}, "do not make an input"),
        ({"structure": "1a63.pqr", "padding": 1, "sed": 3}, "do not make an input"),
        ({"structure": "1a63.pqr", "padding": 1, "first": 0}, "first must be a whole number"),
        ({"structure": "1a63.pqr", "padding": 1, "copies": 3}, "copies must be three"),
        ({"cloud": 5, "lattice": [1, 2]}, "lattice must be three"),
    ],
)
def test_parameters_that_make_no_input(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        INPUTS.inputs_of(parameters, Path())


# ---- autotune run coulomb


def dx(path: Path) -> tuple[list[int], list[float], list[float], np.ndarray]:
    """Counts, origin, spacings and values (x, y, z), as the OpenDX user's guide has them."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    start = next(n for n, words in enumerate(lines) if "follows" in words) + 1
    end = next(n for n, words in enumerate(lines) if words[0] == "attribute")
    counts = [int(n) for n in lines[0][-3:]]
    deltas = [[float(f) for f in words[1:]] for words in lines if words[0] == "delta"]
    values = np.array([float(f) for words in lines[start:end] for f in words])
    assert int(lines[start - 1][-3]) == values.size == np.prod(counts)
    assert np.count_nonzero(deltas) == 3
    origin = next([float(f) for f in words[1:]] for words in lines if words[0] == "origin")
    return counts, origin, np.diag(deltas).tolist(), values.reshape(counts)


def test_a_map_of_a_structure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = file(tmp_path, PQR)
    common = [
        "run",
        "coulomb",
        "-i",
        f"structure={source}",
        "-i",
        "spacing=0.8",
        "-i",
        "padding=3",
        "--device",
        "cpu",
    ]
    for name in ("map.dx", "map.npy", f"{'m' * 250}.npy"):
        assert main([*common, "-o", str(tmp_path / name)]) == 0
    said = capsys.readouterr().out
    assert "3 atoms, net charge +1.20 e" in said
    counts, origin, spacings, values = dx(tmp_path / "map.dx")
    array = np.load(tmp_path / "map.npy")
    assert array.dtype == np.float32
    np.testing.assert_array_equal(values.astype(np.float32), array.transpose(2, 1, 0))
    assert spacings == pytest.approx([0.8] * 3)
    read = STRUCTURES.read_structure(source)
    for index in ((0, 0, 0), (counts[0] - 1, 2, 5)):
        point = np.array(origin) + 0.8 * np.array(index)
        expected = (read.charges / np.linalg.norm(read.positions - point, axis=1)).sum()
        assert values[index] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("given_", "output", "code", "said"),
    [
        (["spacing=1"], "m.dx", 2, "-i structure=FILE is needed"),
        (["structure=PQR", "spacings=1"], "m.dx", 2, "did you mean 'spacing'"),
        (["structure=PQR", "precision=float16"], "m.dx", 2, "unknown value of precision"),
        (["structure=PQR", "spacing=0"], "m.dx", 4, "spacing is 0"),
        (["structure=PQR"], "m.cube", 2, "it must end in .dx or .npy"),
        (["structure=PQR"], None, 2, "name it with -o FILE.dx"),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    given_: list[str],
    output: str | None,
    code: int,
    said: str,
) -> None:
    source = file(tmp_path, PQR)
    items = [word for item in given_ for word in ("-i", item.replace("=PQR", f"={source}"))]
    place = ["-o", str(tmp_path / output)] if output else []
    assert main(["run", "coulomb", *items, *place, "--device", "cpu"]) == code
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.pqr"]
