"""The ion placement family on the cpu device: the same places in every configuration, and the right ones."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, executions, outputs
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.cli import run as running
from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind, find_data
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.errors import UnknownName, UsageError, WorkloadError

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

FAMILY = families.load_family("ion_placement")
assert FAMILY.module is not None
SPECIES: Any = import_module(f"{FAMILY.module.__name__}.species")
SOLUTE: Any = import_module(f"{FAMILY.module.__name__}.solute")
EXACT: Any = import_module(f"{FAMILY.module.__name__}.exact")
NOWHERE = EXACT.NOWHERE

# Every way to update and to launch, with every size of tile, and more blocks than tiles.
TRIED = (
    "update=eager,block_size=128", "update=fused,block_size=128",
    "update=lazy,tile=4,near=3,block_size=128,launch=persistent",
    "update=lazy,tile=6,block_size=256,launch=graph,tile_records=soa",
    "update=lazy,tile=8,block_size=128,launch=each,tile_records=soa,lazy_blocks=264",
)  # fmt: skip


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, FAMILY.space.configuration(text), ()) for text in TRIED], 6)


def bound(potential: Any, charges: Any, spacing: float = 1.0, exclusion: float = 2.0) -> Inputs:
    given_ = {"potential": np.asarray(potential, float), "charges": np.asarray(charges, float)}
    return bind(FAMILY, {**given_, "spacing": spacing, "exclusion": exclusion}, {}, {})


def runs(
    backend: CpuBackend, inputs: Inputs, binaries: list[Binary]
) -> Iterator[tuple[Execution, np.ndarray]]:
    for execution in executions(backend, binaries, inputs):
        yield execution, outputs(execution, inputs)["places"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_that_stay_place_ions_as_one_does(threads: int) -> None:
    potential = np.random.default_rng(threads).normal(size=(9, 11, 13))
    inputs = bound(potential, [1, -1, 1, 1, -1, -1, 1, -1, 1])
    with CpuBackend(threads) as backend:
        persistent = [Variant(FAMILY, FAMILY.space.configuration(TRIED[2]), ())]
        ((_, places),) = runs(backend, inputs, compiled(backend, persistent, 1))
    assert places.tolist() == slowly(inputs)


def slowly(inputs: Inputs) -> list[int]:
    """The places by plain loops over points."""
    potential = inputs.arrays["potential"].copy()
    points = list(np.ndindex(potential.shape))
    places = []
    for charge in inputs.arrays["charges"]:
        best, place = np.inf, NOWHERE
        for number, index in enumerate(points):
            score = potential[index] if charge > 0 else -potential[index]
            if score < best:
                best, place = score, number
        places.append(place)
        if place == NOWHERE:
            continue
        for index in points:
            squared = float(sum((a - b) ** 2 for a, b in zip(index, points[place], strict=True)))
            if squared <= inputs.scalars["exclusion2"]:
                potential[index] = np.nan
            else:
                potential[index] += charge / np.sqrt(inputs.scalars["spacing2"] * squared)
    return places


def protein() -> Inputs:
    return workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "1a63-ions"), Path())


# ---- the kernels


def test_every_way_places_ions_as_the_reference_does(backend: CpuBackend, binaries: list[Binary]) -> None:
    inputs = protein()
    assert FAMILY.module is not None
    expected = FAMILY.module.reference(inputs.arrays, inputs.scalars)["places"]
    assert len(set(expected.tolist())) == 20
    for execution, places in runs(backend, inputs, binaries):
        np.testing.assert_array_equal(places, expected, execution.variant.configuration.id)


def test_lazy_updates_leave_most_points_alone(backend: CpuBackend, binaries: list[Binary]) -> None:
    generator = np.random.default_rng(5)
    points = np.stack(np.indices((48, 50, 53)), axis=-1) * 0.5
    potential = np.zeros(points.shape[:3])
    for atom in generator.uniform(4, 20, (30, 3)):
        away = np.linalg.norm(points - atom, axis=-1)
        potential += generator.choice([-1, 1]) / np.maximum(away, 0.1)
        potential[away < 2.5] = np.nan
    inputs = bound(potential, [1] * 12 + [-1] * 6, 0.5, 3.0)
    expected = EXACT.placed(potential, inputs.arrays["charges"], 0.25, 36.0).tolist()
    (small,) = [pair for pair in binaries if pair[0].configuration["tile"] == 4]
    for execution, places in runs(backend, inputs, [small]):
        assert places.tolist() == expected
        assert 0 < int(execution.head("updates", 1)[0]) < 17 * potential.size / 4


def test_ions_of_both_signs_in_turn(backend: CpuBackend, binaries: list[Binary]) -> None:
    generator = np.random.default_rng(11)
    potential = generator.normal(size=(5, 9, 17))
    potential[generator.random(potential.shape) < 0.3] = np.nan
    inputs = bound(potential, [1, 1, -1, 2, -1, -1, 1])
    expected = slowly(inputs)
    for execution, places in runs(backend, inputs, binaries):
        assert places.tolist() == expected, execution.variant.configuration.id


def test_of_equal_points_the_first_and_nowhere_when_none_is_left(
    backend: CpuBackend, binaries: list[Binary]
) -> None:
    flat = np.full((2, 10, 20), -3.5)
    flat[0, 0, :4] = np.nan
    for _, places in runs(backend, bound(flat, [-1, 1, 1], exclusion=30), binaries):
        assert places.tolist() == [4, NOWHERE, NOWHERE]
    for _, places in runs(backend, bound(np.full((3, 3, 9), np.nan), [1, -1]), binaries):
        assert places.tolist() == [NOWHERE, NOWHERE]


whole = st.integers(-3, 3).map(float)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_places_on_maps_with_many_ties(
    backend: CpuBackend, binaries: list[Binary], data: st.DataObject
) -> None:
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 10)))
    size = int(np.prod(shape))
    values = data.draw(st.lists(st.one_of(whole, st.just(np.nan)), min_size=size, max_size=size))
    charges = data.draw(st.lists(st.sampled_from([1, 2, -1]), min_size=1, max_size=5))
    exclusion = data.draw(st.sampled_from([0.0, 1.0, 1.5, 3.0]))
    inputs = bound(np.reshape(values, shape), charges, 0.5, exclusion)
    expected = slowly(inputs)
    assert FAMILY.module is not None
    assert FAMILY.module.reference(inputs.arrays, inputs.scalars)["places"].tolist() == expected
    for _, places in runs(backend, inputs, binaries):
        assert places.tolist() == expected


# ---- the solute and the species


def test_points_near_atoms_are_excluded() -> None:
    generator = np.random.default_rng(2)
    atoms = np.zeros(7, [(name, np.float32) for name in "xyzq"])
    for name in "xyz":
        atoms[name] = generator.uniform(-2, 9, 7)
    made = SOLUTE.excluded_near(np.zeros((12, 13, 14)), atoms, 0.5, 2.0)
    k, j, i = np.indices(made.shape) * 0.5
    squared = [(i - float(a["x"])) ** 2 + (j - float(a["y"])) ** 2 + (k - float(a["z"])) ** 2 for a in atoms]
    np.testing.assert_array_equal(np.isnan(made), np.min(squared, axis=0) <= 4.0)


def test_ions_by_name() -> None:
    assert SPECIES.parse_ions("SOD:2, CLA:1") == ["SOD", "SOD", "CLA"]
    assert SPECIES.charges_of("CAL:1,CLA:2").tolist() == [2, -1, -1]
    with pytest.raises(UnknownName, match="did you mean 'SOD'"):
        SPECIES.parse_ions("SODI:2")
    for text in ("", "SOD", "SOD:0", "SOD:-1", "SOD:x", "SOD:1,", "SOD:100000"):
        with pytest.raises(UsageError, match="is not NAME:COUNT"):
            SPECIES.parse_ions(text)


# ---- autotune run ion_placement


def test_ions_around_a_structure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = find_data("1a63.pqr", Path())
    command = [
        "run",
        "ion_placement",
        "-i",
        f"structure={source}",
        "-i",
        "ions=SOD:4,CLA:3",
        "-i",
        "spacing=2.5",
    ]
    assert main([*command, "--device", "cpu", "-o", str(tmp_path / "ions.pdb")]) == 0
    assert "net charge -1.00 e; with the ions +0.00 e" in capsys.readouterr().out
    lines = (tmp_path / "ions.pdb").read_text().splitlines()
    assert [line[:6] for line in lines] == ["HETATM"] * 7 + ["END"]
    assert [line[12:16].strip() for line in lines[:7]] == ["SOD"] * 4 + ["CLA"] * 3
    ions = np.array([[float(line[30 + 8 * n : 38 + 8 * n]) for n in range(3)] for line in lines[:7]])
    coulomb = families.load_family("coulomb").module
    assert coulomb is not None
    read = import_module(f"{coulomb.__name__}.structures").read_structure(source)
    assert np.linalg.norm(ions[:, None] - read.positions, axis=2).min() >= 5 - 2e-3
    between = np.linalg.norm(ions[:, None] - ions, axis=2)
    assert between[np.triu_indices(7, 1)].min() > 5 - 2e-3


def test_the_map_is_made_on_the_same_device_with_the_same_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    class Noted(running.TunedKernel):
        def __init__(self, family: Any, device: Any, choosing: Any) -> None:
            opened.append((family.name, device, choosing.folders[0]))
            super().__init__(family, "cpu", choosing)

    monkeypatch.setattr(running, "TunedKernel", Noted)
    given_ = [f"structure={find_data('1a63.pqr', Path())}", "ions=SOD:1", "spacing=4"]
    items = [word for item in given_ for word in ("-i", item)]
    places = ["--device", "cuda:1", "--policies", str(tmp_path), "-o", str(tmp_path / "ions.pdb")]
    assert main(["run", "ion_placement", *items, *places]) == 0
    assert opened == [("ion_placement", "cuda:1", tmp_path), ("coulomb", "cuda:1", tmp_path)]


@pytest.mark.parametrize(
    ("given_", "code", "said"),
    [
        (["ions=SOD:1"], 2, "-i structure=FILE is needed"),
        (["structure=X"], 2, "-i ions=SOD:200,CLA:150 is needed"),
        (["structure=X", "ions=NAA:1"], 2, "unknown ion 'NAA'"),
        (["structure=X", "ions=SOD:1", "beetween=3"], 2, "did you mean 'between'"),
        (["structure=X", "ions=SOD:1", "between=-3"], 2, "angstrom of at least 0"),
        (
            ["structure=X", "ions=SOD:40", "between=50", "spacing=4"],
            4,
            "of 40 ions are placed and no point is left",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given_: list[str], code: int, said: str
) -> None:
    source = find_data("1a63.pqr", Path())
    items = [word for item in given_ for word in ("-i", item.replace("=X", f"={source}"))]
    assert main(["run", "ion_placement", *items, "--device", "cpu", "-o", str(tmp_path / "ions.pdb")]) == code
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_parameters_without_ions() -> None:
    assert FAMILY.module is not None
    with pytest.raises(WorkloadError, match="parameters have no ions"):
        FAMILY.module.inputs({"cloud": 3, "lattice": [2, 2, 2]}, Path())
