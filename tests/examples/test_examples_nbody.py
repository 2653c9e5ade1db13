"""The nbody example on the cpu device against float64, its plain kernel and its README."""

import re
from pathlib import Path
from typing import Any

import cpu_results
import numpy as np
import pytest
from numpy.typing import NDArray

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FOLDER = Path(__file__).parents[2] / "examples" / "nbody"
FAMILY = families.load_family(str(FOLDER))
MODULE: Any = FAMILY.module
SAMPLE = FAMILY.space.configurations()[::7]


def results(
    backend: CpuBackend, bodies: NDArray[Any], softening: float, texts: list[str]
) -> dict[str, NDArray[np.float32]]:
    inputs = bind(FAMILY, {"bodies": bodies}, {}, {"softening": softening})
    binaries = cpu_results.compiled(
        backend, [Variant(FAMILY, FAMILY.space.configuration(text), ()) for text in texts], 24, "-Og"
    )
    found = cpu_results.results(backend, binaries, inputs)
    return {variant.configuration.id: outputs["acceleration"] for variant, outputs in found}


def test_the_sample_has_every_value_of_every_policy() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in SAMPLE} == set(policy.values), policy.name
    kinds = {(c["records"], c["memory"], c["staging"]) for c in FAMILY.space.configurations()}
    assert {(c["records"], c["memory"], c["staging"]) for c in SAMPLE} == kinds


def test_the_sample_agrees_with_float64(backend: CpuBackend) -> None:
    bodies = MODULE.plummer(333, 3)  # neither blocks nor lanes divide it
    expected = MODULE.accelerations(bodies, float(np.float32(0.05)))
    scale = np.linalg.norm(expected, axis=1).max()
    made = results(backend, bodies, 0.05, [c.id for c in SAMPLE])
    assert len(made) == len(SAMPLE) > 25
    for configuration, acceleration in made.items():
        assert np.abs(acceleration - expected).max() < 2e-6 * scale, configuration


@pytest.mark.parametrize("count", [1, 2, 65])
def test_few_bodies(backend: CpuBackend, count: int) -> None:
    bodies = MODULE.plummer(count, 1)
    texts = [f"bodies_per_thread=4,records={records},staging=shared" for records in ("aos", "aosoa")]
    texts += [f"threads_per_body={threads},unroll=4" for threads in (8, 32)]
    expected = MODULE.accelerations(bodies, 0.5)
    for acceleration in results(backend, bodies, 0.5, texts).values():
        assert np.allclose(acceleration, expected, rtol=1e-5, atol=1e-6)


def test_the_reference_is_newtons_law() -> None:
    bodies = np.array([(0, 0, 0, 3), (2, 0, 0, 5), (0, 0, 4, 7)], MODULE.BODY)
    made = MODULE.accelerations(bodies, 1e-12)
    assert np.allclose(made[0], [5 / 2**2, 0, 7 / 4**2])
    assert np.allclose(made[2], [5 * 2 / 20**1.5, 0, -5 * 4 / 20**1.5 - 3 / 4**2])


def test_the_references_forces_add_up_to_none() -> None:
    bodies = MODULE.plummer(700, 5)
    made = MODULE.accelerations(bodies, 0.01)
    force = made * bodies["mass"][:, None].astype(np.float64)
    assert np.allclose(force.sum(axis=0), 0, atol=1e-15 * 700)  # every action has its reaction


def test_the_references_tiles_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = MODULE.plummer(333, 4)
    whole = MODULE.accelerations(bodies, 0.05)
    monkeypatch.setattr(MODULE, "_ROWS", 5)
    monkeypatch.setattr(MODULE, "_COLUMNS", 64)  # neither divides 333
    assert np.allclose(MODULE.accelerations(bodies, 0.05), whole, rtol=1e-12, atol=1e-15)


def test_half_a_plummer_spheres_mass_lies_within_1_3_lengths() -> None:
    bodies = MODULE.plummer(20_000, 2)
    radius = np.sqrt(sum(bodies[name].astype(np.float64) ** 2 for name in "xyz"))
    assert np.median(radius) == pytest.approx((0.4995 ** (-2 / 3) - 1) ** -0.5, rel=0.02)


@pytest.mark.parametrize("parameters", [{}, {"bodies": 0}, {"bodies": 2.5}, {"bodies": 3, "sed": 1}])
def test_parameters_that_make_no_bodies(parameters: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError, match="give bodies"):
        MODULE.inputs(parameters, Path())


@pytest.mark.parametrize("name", sorted(workloads.workloads(FAMILY)))
def test_each_workload_is_one(name: str) -> None:
    workload = workloads.load_workload(FAMILY, name)
    inputs = workloads.prepare(FAMILY, workload, Path())
    assert inputs.sizes["body"] == workload.parameters["bodies"]


@pytest.mark.filterwarnings("ignore::UserWarning")  # that nothing was tuned here
def test_the_readmes_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parents[1])
    (program,) = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    expected = MODULE.accelerations(names["bodies"], 0.01)
    assert np.allclose(names["acceleration"], expected, rtol=1e-4, atol=1e-5)
