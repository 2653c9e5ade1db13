"""The programs of examples/programs on the cpu device: every family in every configuration against its reference, and
each program whole, as it is declared, against the same steps by numpy."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import check_verified, compiled
from numpy.typing import NDArray

from autotune.compile.variant import Variant
from autotune.declaration import workload as workloads
from autotune.declaration.family import Family, load_family
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError
from autotune.program import Given, Program, load_given, run_control
from autotune.program.bound import bind_program
from autotune.program.candidates import candidates

FOLDER = Path(__file__).parents[2] / "examples" / "programs"
FAMILIES = sorted(path.parent.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("family.yaml"))
PROGRAMS = sorted(path.parent.name for path in FOLDER.glob("*/program.yaml"))


on_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@cache
def family(name: str) -> Family:
    return load_family(str(FOLDER / name))


@cache
def program(name: str) -> Any:
    return Program.read(FOLDER / name)


# ---- families


def all_inputs(name: str) -> Iterator[Inputs]:
    """The small workload of a family and its ragged inputs, with every value of its options."""
    own = family(name)
    small = workloads.load_workload(own, "small")
    ragged = getattr(own.module, "ragged", lambda _: ())
    for values in product(*[option.values for option in own.options.values()]):
        options = dict(zip(own.options, values, strict=True))
        first = workloads.prepare(own, small, Path())
        yield bind(own, first.arrays, options, first.scalars)
        for parameters in ragged(small.parameters):
            yield bind(own, own.module.inputs(parameters, Path()), options, {})  # type: ignore[union-attr]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_configuration_gives_what_the_reference_does(backend: CpuBackend, name: str) -> None:
    check_family(backend, name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAMILIES)
def test_every_configuration_does_so_on_a_gpu(name: str) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        check_family(backend, name)


def check_family(backend: Any, name: str) -> None:
    own = family(name)
    reference: Any = getattr(own.module, "reference", None)
    known: dict[tuple[Any, ...], Any] = {}
    for inputs in all_inputs(name):
        options = tuple(inputs.options.items())
        if options not in known:
            variants = [Variant.make(own, each, inputs.options) for each in own.space.configurations()]
            known[options] = compiled(backend, variants, 24, "-Og")
        expected = reference(inputs.arrays, {**inputs.options, **inputs.scalars})
        check_verified(backend, known[options], inputs, expected, patterns=(0xA5,))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_large_workload_of_a_family_can_be_read(name: str) -> None:
    large = workloads.load_workload(family(name), "large")
    assert large.family == family(name).name


# ---- programs


def small(name: str) -> Given:
    return load_given(program(name), "small", Path())


def as_declared(name: str, device: str) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """What the program leaves on the device, and what its ``run`` by numpy does."""
    given = small(name)
    made = run_control(program(name), given.arrays, given.scalars, device)
    scalars = {**program(name).scalars, **given.scalars}
    return made, program(name).module.run(given.arrays, scalars)


@on_devices
def test_molecular_dynamics_is_that_of_all_pairs(device: str) -> None:
    made, expected = as_declared("md", device)
    back = np.argsort(made["ids"])
    assert (made["ids"] != np.arange(len(back))).any()  # sorted, and so in another order
    places, speeds = (
        np.stack([made[name][axis][back] for axis in "xyz"], axis=1) for name in ("positions", "velocities")
    )
    apart = places - expected["places"]
    box = small("md").scalars["box"]
    assert np.abs(apart - box * np.round(apart / box)).max() < 2e-5
    assert np.abs(speeds - expected["speeds"]).max() < 2e-4
    assert np.abs(made["force"]["energy"][back] - expected["energy"]).max() < 5e-4


@on_devices
def test_particles_in_cells_are_numpy_s(device: str) -> None:
    made, expected = as_declared("pic", device)
    back = np.argsort(made["ids"])
    assert (made["ids"] != np.arange(len(back))).any()
    sides = {"x": 24, "y": 16}
    for name in "xyuv":
        apart = made["particles"][name][back] - expected[name]
        side = sides.get(name, np.inf)
        apart -= side * np.round(apart / side) if name in sides else 0
        assert np.abs(apart).max() < 2e-5, name
    assert np.abs(made["potential"] - expected["potential"]).max() < 1e-5
    for axis in "xy":
        assert np.abs(made["field"][axis] - expected[f"field_{axis}"]).max() < 1e-5


@on_devices
def test_conjugate_gradients_are_scipy_s(device: str) -> None:
    made, expected = as_declared("cg", device)
    assert np.abs(made["x"] - expected["x"]).max() < 2e-4
    assert np.abs(made["residual"] - expected["residual"]).max() < 1e-4


@on_devices
def test_columns_are_numpy_s(device: str) -> None:
    made, expected = as_declared("column", device)
    assert np.abs(made["temperature"] - expected["temperature"]).max() < 2e-3
    assert np.abs(made["flux"] - expected["flux"]).max() < 1e-2


@on_devices
def test_images_are_scipy_s(device: str) -> None:
    made, expected = as_declared("image", device)
    assert np.abs(made["sharp"] - expected["sharp"]).max() < 5e-6


@on_devices
def test_the_flow_is_numpy_s(device: str) -> None:
    made, expected = as_declared("flow", device)
    assert np.abs(made["populations"] - expected["populations"]).max() < 2e-7
    for name in made["sums"].dtype.names or ():
        np.testing.assert_allclose(made["sums"][name], expected[name], rtol=2e-5, atol=2e-6, err_msg=name)


def test_all_programs_are_run() -> None:
    assert PROGRAMS == ["cg", "column", "flow", "image", "md", "pic"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_preset_holds_every_step_to_something_that_can_run(backend: CpuBackend, name: str) -> None:
    bound = bind_program(program(name), small(name))
    assert {"aos", "soa", "hand"} <= set(program(name).presets)
    for preset in program(name).presets:
        held = program(name).get_held(preset)
        for step, calls in bound.calls.items():
            found = candidates(calls[0], backend.device.limits, 96, held.get(step))
            assert found, f"{preset}: {step}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_preset_stores_each_array_in_one_way(backend: CpuBackend, name: str) -> None:
    """All of one kind means that nothing is converted: the steps that share an array agree about it."""
    bound = bind_program(program(name), small(name))
    for preset in ("aos", "soa"):
        held = program(name).get_held(preset)
        forms: dict[str, set[Any]] = {}
        for step, calls in bound.calls.items():
            (group, *_) = candidates(calls[0], backend.device.limits, 96, held.get(step)).values()
            for data, array in calls[0].arrays.items():
                forms.setdefault(array, set()).add(group[0].forms[data])
        assert {array for array, found in forms.items() if len(found) > 1} == set(), preset


# ---- the programs by numpy are what they say


def test_atoms_keep_their_momentum_and_energy() -> None:
    module: Any = program("md").module
    arrays = module.inputs({"edge": 4, "seed": 2}, Path())
    scalars = {"box": 6.0, "cutoff": 2.5, "dt": 0.001, "steps": 1}
    energies = []
    for steps in (2, 40):
        found = module.run(arrays, {**scalars, "rebuilds": steps})
        before = module.run(arrays, {**scalars, "rebuilds": steps - 1})["speeds"]
        assert np.abs(found["speeds"].sum(axis=0)).max() < 1e-4
        middle = (found["speeds"] + before) / 2  # at the time of the places that the energies are of
        energies.append(found["energy"].sum() + (middle**2).sum() / 2)
    assert abs(energies[1] - energies[0]) < 0.004 * abs(energies[0])  # what a pair has at the cutoff is lost


def test_conjugate_gradients_solve_the_system() -> None:
    module: Any = program("cg").module
    given = module.inputs(
        {"matrix": "elastic", "pqr": "1a63.pqr", "cutoff": 8, "atoms": 30, "sides": 2, "width": 4}, Path()
    )
    found = module.run(given, {"iterations": 90})
    matrix = module.elastic({"pqr": "1a63.pqr", "cutoff": 8, "atoms": 30}, Path())
    assert abs(matrix - matrix.T).max() < 1e-12
    np.testing.assert_allclose(matrix @ found["x"], given["residual"], atol=1e-4)
    drift = np.tile(np.eye(3), (30, 1))  # moving all atoms stretches no spring but the 0.1 that hold each
    np.testing.assert_allclose(matrix @ drift, 0.1 * drift, atol=1e-12)


@pytest.mark.parametrize("side", [3, 5])
def test_both_formats_hold_the_matrix(side: int) -> None:
    module: Any = program("cg").module
    matrix = module.laplacian({"side": side}, Path())
    found = module.formats(matrix.astype(np.float32))
    back = np.zeros(matrix.shape)
    for place, row in enumerate(found["row_of"]):
        begin, end = found["slices"][place // 32 : place // 32 + 2]
        mine = found["slots"][begin + place % 32 : end : 32]
        if row < len(back):
            np.add.at(back[row], mine["column"], mine["value"])
        else:
            assert not mine["value"].any()
    assert (back == matrix.toarray()).all()
    inverse = module.inverses(matrix, 6)
    assert np.allclose(inverse[0] @ matrix.toarray()[:6, :6], np.eye(6), atol=1e-6)


def test_a_matrix_that_is_none_is_refused() -> None:
    with pytest.raises(WorkloadError, match="give one of elastic, laplacian"):
        program("cg").module.inputs({"matrix": "laplcian"}, Path())


def test_electrons_and_background_are_neutral_and_momentum_stays() -> None:
    module: Any = program("pic").module
    arrays = module.inputs({"rows": 8, "columns": 12, "each": 5, "seed": 3}, Path())
    found = module.run(arrays, {"steps": 4, "sweeps": 3, "dt": 0.1, "weight": 1 / 5})
    assert abs(found["potential"].mean()) < 1e-6
    for name in "uv":
        assert abs(found[name].mean() - arrays["particles"][name].mean()) < 0.02


def test_air_as_warm_as_the_ground_is_in_balance_deep_inside() -> None:
    module: Any = program("column").module
    arrays = module.inputs({"columns": 2, "levels": 10, "seed": 1}, Path())
    arrays = {
        **arrays,
        "temperature": np.full((2, 10), 280, np.float32),
        "ground": np.full(2, 280, np.float32),
    }
    found = module.run(
        {**arrays, "path": 1e6 * arrays["path"]}, {"steps": 1, "radiation": 1, "dt": 600, "layer_mass": 1e3}
    )
    assert np.abs(found["flux"][:, 0]).max() < 1e-6  # black air
    np.testing.assert_allclose(found["flux"][:, -1], module.STEFAN_BOLTZMANN * 280**4, rtol=1e-3)
    np.testing.assert_allclose(found["temperature"][:, :8], 280, atol=1e-3)


def test_the_flow_keeps_its_mass() -> None:
    module: Any = program("flow").module
    arrays = module.inputs({"rows": 9, "columns": 14, "seed": 1}, Path())
    found = module.run(arrays, {"steps": 6, "often": 2, "omega": 1.7})
    assert np.isclose(found["populations"].sum(), arrays["populations"].astype(float).sum(), atol=1e-9)
    np.testing.assert_allclose(found["density"].mean(), 3, atol=1e-3)  # turns 0, 2, 4


# ---- what the pages say


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_readme_names_every_family_and_every_layout_policy(name: str) -> None:
    text = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    bound = bind_program(program(name), small(name))
    for call in (call for calls in bound.calls.values() for call in calls):
        assert f"[{call.family.name}](" in text
        if not call.held:
            for policy in call.family.space.policies:
                assert not policy.layout or f"`{policy.name}`" in text, f"{call.step}: {policy.name}"
    for preset in program(name).presets:
        assert preset in ("aos", "soa") or f"`{preset}`" in text, preset
    for workload in {path.stem for path in (FOLDER / name / "workloads").glob("*.yaml")} - {"small"}:
        assert f"--workload {workload}" in text


def test_the_index_names_every_program() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        assert f"| [{name}]({name}/README.md) |" in text
